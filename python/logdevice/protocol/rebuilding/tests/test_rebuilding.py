"""Copying one log on one donor: what is read, sent, amended and repeated. Rules P62 to P66."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Ask, Lost
from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd, ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.rebuilding.copy_budget import CopyBudget
from logdevice.protocol.rebuilding.log import (
    Copies,
    DonorContext,
    EndRebuilding,
    Event,
    LogRebuilding,
    RebuildTask,
)
from logdevice.protocol.rebuilding.plan import Losses, MovePlan
from logdevice.settings import RebuildSettings
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    nodes,
)

LOG = LogId(7)
ALL = nodes((1, 2, 3, 4))
N1, N2, N3, N4 = ALL
BODY = b"x" * 936  # with its header 1000 bytes
OK, AGAIN = CopiesStatus.OK, CopiesStatus.AGAIN
BACK = Losses(frozenset({N3}), frozenset({N3}), frozenset())
AWAY = Losses(frozenset({N3}), frozenset(), frozenset({N3}))
LEAVING = Losses(frozenset(), frozenset(), frozenset({N1}))
DRAINED, CORRUPT = int(RecordFlags.DRAINED), int(RecordFlags.CORRUPT)


def lsn(text: str) -> Lsn:
    return Lsn.parse(text)


def record(at: str, copyset: tuple[NodeId, ...] = (N1, N2, N3), flags: int = 0, byte_end: int = 0) -> Record:
    return Record(lsn(at), 5, copyset, BODY, flags=flags, entries=1, byte_end=byte_end)


class Donor:
    """N1, a donor that copies its records in [e1n1, e3n0)."""

    def __init__(
        self, losses: Losses = BACK, *, end: str = "e3n0", settings: RebuildSettings | None = None
    ) -> None:
        self.losses = losses
        task = RebuildTask(LOG, 9, lsn("e1n1"), lsn(end), losses)
        settings = settings or RebuildSettings()
        self.budget = CopyBudget(settings)
        self.now_ms = 100
        self.shared: Effects[Any] = Effects()
        self.effects = self.shared.begin(self.now_ms)
        context = DonorContext(N1, settings, self.budget, self.shared, count(1).__next__)
        self.machine = LogRebuilding(task, self.plan, context)

    def plan(self, epoch: Epoch) -> MovePlan:
        metadata = EpochMetadata(Epoch(1), ALL, Replication.parse("3"))
        return MovePlan(N1, self.losses, metadata, dict.fromkeys(ALL, Location()), frozenset(ALL))

    def feed(self, event: Event) -> list[Any]:
        self.effects = self.shared.begin(self.now_ms)
        self.machine.handle(event)
        return self.effects

    def read(self, *records: Record, next: str, end: ReadEnd = ReadEnd.BYTES) -> list[Any]:
        (order,) = self.reads
        assert self.machine.is_waiting_for(order.read_id)
        return self.feed(RecordsRead(order.read_id, records, lsn(next), end))

    def answer(self, sent: Ask[Copies], status: CopiesStatus = OK) -> list[Any]:
        assert self.machine.is_waiting_for(sent.id)
        return self.feed(Answered(sent.node, CopiesStored(status), sent.id))

    def wait(self, duration_ms: int) -> list[Any]:
        self.now_ms += duration_ms
        self.effects = self.shared.begin(self.now_ms)
        self.machine.wake()
        return self.effects

    @property
    def sent(self) -> list[Ask[Copies]]:
        return [effect for effect in self.effects if isinstance(effect, Ask)]

    @property
    def reads(self) -> list[StoreRead]:
        return [effect for effect in self.effects if isinstance(effect, StoreRead)]

    @property
    def end(self) -> EndRebuilding | None:
        return self.machine.outcome


def test_a_donor_reads_its_own_copies_epoch_by_epoch() -> None:
    """P62: each epoch may have another nodeset."""
    donor = Donor()
    (order,) = donor.reads
    assert (order.start, order.end, order.gap_end) == (lsn("e1n1"), lsn("e2n1"), lsn("e3n0"))
    assert order.bytes_max == RebuildSettings().rebuild_chunk_bytes
    assert order.filter.ships((N1, N2, N3), 0)
    assert not order.filter.ships((N2, N1, N3), 0)
    donor.read(next="e2n1", end=ReadEnd.LIMIT)
    (order,) = donor.reads
    assert (order.start, order.end) == (lsn("e2n1"), lsn("e3n0"))
    donor.read(next="e3n0", end=ReadEnd.LIMIT)
    assert donor.end == EndRebuilding(True)
    assert donor.wait(1) == []


def test_a_log_with_nothing_to_read_is_done_at_once() -> None:
    assert Donor(end="e1n1").end == EndRebuilding(True)


def test_a_node_that_is_back_gets_its_copies_and_other_nodes_get_nothing() -> None:
    """P62: the copyset does not change."""
    donor = Donor()
    donor.read(record("e1n1"), record("e1n2"), next="e3n0")
    (put,) = donor.sent
    assert put.node == N3
    assert put.request == PutCopies(LOG, 9, (record("e1n1"), record("e1n2")))
    donor.answer(put)
    assert donor.end == EndRebuilding(True)
    assert donor.machine.bytes_copied == 2 * record("e1n1").size


def test_holders_get_a_new_copyset_once_the_copies_are_stored_this_node_last() -> None:
    """P62."""
    donor = Donor(AWAY)
    donor.read(record("e1n1"), next="e3n0")
    new = (N1, N2, N4)
    (put,) = donor.sent
    assert (put.node, put.request) == (N4, PutCopies(LOG, 9, (record("e1n1", new),)))
    donor.answer(put)
    header = replace(record("e1n1", new), body=b"")
    (amend,) = donor.sent
    assert (amend.node, amend.request) == (N2, AmendCopies(LOG, 9, (header,)))
    donor.answer(amend)
    (amend,) = donor.sent
    assert (amend.node, amend.request) == (N1, AmendCopies(LOG, 9, (header,)))
    donor.answer(amend)
    assert donor.end == EndRebuilding(True)


def test_with_extras_copies_name_all_possible_holders_until_all_are_stored() -> None:
    """P63: a copyset of R nodes would say that all of these hold the record."""
    donor, wide = Donor(AWAY), (N1, N2, N3, N4)
    donor.read(record("e1n1", wide), next="e3n0")
    assert {sent.node: sent.request.records[0].copyset for sent in donor.sent} == {N2: wide, N4: wide}
    for _ in range(2):
        for sent in donor.sent:
            donor.answer(sent)
    assert {sent.node: sent.request.records[0].copyset for sent in donor.sent} == {N1: (N1, N2, N4)}


def test_a_copy_on_a_node_that_leaves_is_marked() -> None:
    """P64: a new copy made from it is not."""
    donor = Donor(LEAVING)
    donor.read(record("e1n1", flags=DRAINED), next="e3n0")
    (put,) = donor.sent
    assert put.request.records[0].flags == 0
    donor.answer(put)
    assert {sent.node: sent.request.records[0].flags for sent in donor.sent} == {N2: 0, N3: 0}
    for sent in donor.sent:
        donor.answer(sent)
    assert {sent.node: sent.request.records[0].flags for sent in donor.sent} == {N1: DRAINED}


def test_the_number_of_chunks_on_their_way_is_limited() -> None:
    """P66."""
    donor = Donor(settings=RebuildSettings(rebuild_chunks_max=2))
    donor.read(record("e1n1"), next="e1n2")
    (first,) = donor.sent
    donor.read(record("e1n2"), next="e1n3")
    assert donor.reads == [], "both places are taken"
    assert donor.wait(1000) == []
    donor.answer(first)
    assert len(donor.reads) == 1


def test_copying_keeps_to_its_rate() -> None:
    """P66: 1000 bytes take a second."""
    size = record("e1n1").size
    donor = Donor(settings=RebuildSettings(rebuild_bytes_per_s_max=size))
    donor.read(record("e1n1"), record("e1n2"), next="e1n3")
    assert donor.machine.deadline_ms == 100 + 2_000
    assert donor.wait(1_999) == []
    donor.wait(1)
    assert len(donor.reads) == 1


def test_while_the_node_serves_readers_it_copies_one_chunk_at_a_time_and_rests_after_it() -> None:
    """P66: also after a read that found nothing."""
    donor = Donor(settings=RebuildSettings(rebuild_busy_percent_max=10, rebuild_bytes_per_s_max=1 << 40))
    donor.budget.measure(0, 0)
    donor.budget.measure(1 << 30, donor.now_ms)
    donor.read(record("e1n1"), next="e1n2")
    assert donor.reads == []
    (put,) = donor.sent
    donor.now_ms += 20
    assert donor.answer(put) == []
    assert donor.machine.deadline_ms == 120 + 180
    donor.wait(180)
    assert len(donor.reads) == 1
    donor.now_ms += 10
    donor.budget.measure(2 << 30, donor.now_ms)
    assert donor.read(next="e1n9") == []
    assert donor.machine.deadline_ms == 310 + 90


def test_copies_that_could_not_be_stored_are_sent_again_after_a_while() -> None:
    """P65: the first pause is short, because a node that has just come back needs only a moment."""
    donor = Donor(settings=RebuildSettings(rebuild_retry_ms=480, rebuild_attempts_max=3))
    donor.read(record("e1n1"), next="e3n0")
    (put,) = donor.sent
    assert donor.answer(put, AGAIN) == []
    assert donor.machine.deadline_ms == 100 + 30
    assert donor.wait(29) == []
    assert donor.wait(1) == [put]
    assert donor.feed(Lost(put.node, put.request, True, put.id)) == [], "it may have been stored"
    assert donor.machine.deadline_ms == 130 + 60
    assert donor.wait(60) == [put]
    donor.answer(put, AGAIN)
    assert donor.end == EndRebuilding(False), "a new attempt may use other nodes"


def test_a_donor_with_an_outdated_event_log_begins_again() -> None:
    """P57, P65."""
    for status in (CopiesStatus.OUTDATED, CopiesStatus.NO_SPACE, CopiesStatus.FAILED):
        donor = Donor()
        donor.read(record("e1n1"), next="e3n0")
        donor.answer(donor.sent[0], status)
        assert donor.end == EndRebuilding(False)


def test_a_disk_that_cannot_be_read_ends_the_copying() -> None:
    """P65."""
    donor = Donor()
    donor.feed(ReadFailed(donor.reads[0].read_id))
    assert donor.end == EndRebuilding(False)


def test_records_that_cannot_be_read_are_counted() -> None:
    """P59: then it is not certain that nothing was lost."""
    donor = Donor()
    donor.read(record("e1n1", flags=CORRUPT), next="e3n0")
    assert donor.end == EndRebuilding(True, unreadable=1)


def test_a_range_in_which_the_store_may_have_lost_records_is_counted() -> None:
    """P59: the lost copy may have been the only one."""
    donor = Donor()
    read = donor.reads[0]
    donor.feed(RecordsRead(read.read_id, (), lsn("e3n0"), ReadEnd.LIMIT, under_replicated=True))
    assert donor.end == EndRebuilding(True, unreadable=1)


def test_items_that_are_not_records_are_passed() -> None:
    donor = Donor()
    order = donor.reads[0]
    donor.feed(
        RecordsRead(order.read_id, (FilteredOut(lsn("e1n1"), lsn("e1n2")),), lsn("e3n0"), ReadEnd.LIMIT)
    )
    assert donor.end == EndRebuilding(True)


def test_records_for_which_there_are_too_few_nodes_are_left_as_they_are_and_counted() -> None:
    """P61: a copy that was marked as drained would not be checked again."""
    donor = Donor(replace(LEAVING, lost=frozenset({N4}), gone=frozenset({N1, N4})))
    donor.read(record("e1n1"), record("e1n2", (N1, N2, N4)), next="e3n0")
    assert donor.sent == []
    assert donor.end == EndRebuilding(True, short=2)


def test_the_progress_through_the_log_is_known() -> None:
    """It comes from the counters of records, because most records in between are not read."""
    donor = Donor()
    donor.read(record("e1n1", byte_end=5_936), next="e1n2")
    assert donor.machine.bytes_passed == 936
    donor.read(record("e1n9", byte_end=15_000), next="e3n0")
    assert donor.machine.bytes_passed == 10_000
