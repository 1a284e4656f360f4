"""What a node reports when it has its data back, and when it is drained. Rules P74 and P79."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.log_state.store_read import ReadEnd, ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import (
    DeleteRecords,
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
)
from logdevice.protocol.metadata_log.log import MetadataLogsAdopted
from logdevice.protocol.rebuilding.donor_events import (
    AwaitQuiet,
    EventLogMoved,
    EventRecorded,
    Quiet,
    RecordEvent,
)
from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind, NodeCase, NodeEvent
from logdevice.protocol.rebuilding.own_data import Effect, Event, OwnData
from logdevice.protocol.rebuilding.tests.donating import BACK, N1, N2, N3, SETTINGS, case_events, record
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import LSN_MAX, LogId, Lsn, RecordFlags

RESTORED = EventLogMoved(case_events(replace(BACK, is_settled=True)))
ACKNOWLEDGED = NodeEvent(kind=EventKind.ACKNOWLEDGED, node=N3, version=5)
LEAVING = NodeCase(node=N3, mode=CaseMode.DRAIN, is_ready=True)
FENCED = EventLogMoved(case_events(LEAVING))
DRAINED = EventLogMoved(case_events(replace(LEAVING, is_settled=True)))
AGAIN = NodeEvent(kind=EventKind.DRAIN, node=N3, version=5)
LOGS = (LogId(7), LogId(8))


def test_a_node_that_has_everything_back_acknowledges_it_once() -> None:
    """P79."""
    node = OwnData(N3, SETTINGS)
    assert node.handle(MetadataLogsAdopted(True), 0) == []
    assert node.handle(EventLogMoved(case_events(BACK)), 0) == [], "donors are not done"
    assert node.handle(RESTORED, 0) == [RecordEvent(ACKNOWLEDGED)]
    assert node.handle(RESTORED, 0) == node.handle(EventRecorded(ACKNOWLEDGED, True), 0) == []
    assert node.handle(EventLogMoved(case_events()), 0) == []


def test_a_node_without_the_metadata_logs_does_not_count_yet() -> None:
    """P79: other nodes would ask it for the history of logs."""
    node = OwnData(N3, SETTINGS)
    assert node.handle(RESTORED, 0) == []
    assert node.handle(MetadataLogsAdopted(True), 0) == [RecordEvent(ACKNOWLEDGED)]


def test_only_a_node_that_runs_and_was_lost_has_its_data_back() -> None:
    """P79."""
    for case in (
        replace(BACK, is_settled=True, is_ready=False),
        replace(BACK, is_settled=True, mode=CaseMode.CHECK),
        replace(BACK, is_settled=True, node=N2),
    ):
        node = OwnData(N3, SETTINGS)
        node.handle(MetadataLogsAdopted(True), 0)
        assert node.handle(EventLogMoved(case_events(case)), 0) == []


def test_an_acknowledgement_that_could_not_be_recorded_is_repeated() -> None:
    """P79."""
    node = OwnData(N3, SETTINGS)
    node.handle(MetadataLogsAdopted(True), 0)
    node.handle(RESTORED, 0)
    assert node.handle(EventRecorded(ACKNOWLEDGED, False), 0) == [WakeAt(500)]
    assert node.handle(Woken(), 500) == [RecordEvent(ACKNOWLEDGED)]


class Leaver:
    """N3, which is drained."""

    def __init__(self) -> None:
        self.machine = OwnData(N3, SETTINGS)

    def feed(self, event: Event, now_ms: int = 0) -> list[Effect]:
        return self.machine.handle(event, now_ms)

    def read_first(self) -> StoreRead:
        (wait,) = self.feed(FENCED)
        assert isinstance(wait, AwaitQuiet)
        (read,) = self.feed(Quiet(wait.id, LOGS))
        assert isinstance(read, StoreRead)
        return read

    def nothing_in(self, read: StoreRead, *, up_to: Lsn = LSN_MAX) -> list[Effect]:
        return self.feed(RecordsRead(read.read_id, (), up_to, ReadEnd.LIMIT))


def test_a_drained_node_checks_all_of_its_copies() -> None:
    """P74: a copy that names the node and is not marked as drained is not elsewhere."""
    leaver = Leaver()
    read = leaver.read_first()
    assert (read.log, read.start, read.end, read.headers_only) == (7, Lsn(0), LSN_MAX, True)
    assert read.filter.ships((N1, N3), 0)
    assert not read.filter.ships((N1, N3), int(RecordFlags.DRAINED))
    assert not read.filter.ships((N1, N2), 0)
    (more,) = leaver.nothing_in(read, up_to=Lsn(50))
    assert isinstance(more, StoreRead)
    assert (more.log, more.start) == (7, Lsn(50))
    (other,) = leaver.nothing_in(more)
    assert isinstance(other, StoreRead)
    assert (other.log, other.start) == (8, Lsn(0))
    assert leaver.nothing_in(other) == [RecordEvent(ACKNOWLEDGED)]


def test_a_copy_that_no_donor_has_copied_makes_the_drain_begin_again() -> None:
    """P74: so does a disk that cannot be read, which may hold such copies."""
    leaver = Leaver()
    read = leaver.read_first()
    found = RecordsRead(read.read_id, (record("e1n1", N1, N3),), Lsn(50), ReadEnd.BYTES)
    assert leaver.feed(found) == [RecordEvent(AGAIN)]
    assert leaver.feed(EventRecorded(AGAIN, True)) == []
    leaver = Leaver()
    assert leaver.feed(ReadFailed(leaver.read_first().read_id)) == [RecordEvent(AGAIN)]


def test_a_drained_node_deletes_all_of_its_copies_at_once() -> None:
    """P74: so copies that come after an UNDRAIN are not deleted."""
    leaver = Leaver()
    (wait,) = leaver.feed(DRAINED)
    assert isinstance(wait, AwaitQuiet)
    deletes = leaver.feed(Quiet(wait.id, LOGS))
    assert [delete.writes for delete in deletes if isinstance(delete, Persist)] == [
        (DeleteRecords(log, Lsn(0), LSN_MAX),) for log in LOGS
    ]
    assert leaver.feed(Persisted(2)) == leaver.feed(DRAINED) == []


def test_copies_that_could_not_be_removed_are_removed_later() -> None:
    """P74."""
    leaver = Leaver()
    (wait,) = leaver.feed(DRAINED)
    assert isinstance(wait, AwaitQuiet)
    leaver.feed(Quiet(wait.id, LOGS))
    assert leaver.feed(PersistFailed(2, PersistError.IO_ERROR)) == [WakeAt(500)]
    assert leaver.feed(Woken(), 499) == []
    (wait,) = leaver.feed(Woken(), 500)
    assert isinstance(wait, AwaitQuiet)


def test_a_drain_that_was_taken_back_removes_nothing() -> None:
    """P74: the node takes copies again, and these would be deleted, too."""
    leaver = Leaver()
    (wait,) = leaver.feed(DRAINED)
    assert isinstance(wait, AwaitQuiet)
    assert leaver.feed(EventLogMoved(case_events(NodeCase(node=N3, mode=CaseMode.CHECK), version=6))) == []
    assert leaver.feed(Quiet(wait.id, LOGS)) == []
    leaver = Leaver()
    read = leaver.read_first()
    leaver.feed(EventLogMoved(case_events(version=6)))
    assert leaver.nothing_in(read) == []


def test_a_drained_node_whose_report_was_not_recorded_checks_and_reports_again() -> None:
    """P74."""
    leaver = Leaver()
    leaver.feed(ReadFailed(leaver.read_first().read_id))
    assert leaver.feed(EventRecorded(AGAIN, False)) == [WakeAt(500)]
    (wait,) = leaver.feed(Woken(), 500)
    assert isinstance(wait, AwaitQuiet)
