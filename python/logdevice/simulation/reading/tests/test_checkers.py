"""Each checker notices a planted violation, and reports nothing where there is none."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.read import ReadMode, Records, Start, StatusNotice
from logdevice.protocol.read_stream.events import ReadRequest
from logdevice.protocol.read_stream.health import StreamHealth, Waiting
from logdevice.simulation.reading import checkers
from logdevice.simulation.reading.oracle import LOG, is_f_majority
from logdevice.simulation.reading.truth import DirtyRange, SlotKind, Truth
from logdevice.simulation.reading.view import ReaderView
from logdevice.simulation.reading.witness import ReadWitness
from logdevice.simulation.world import World
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Gap,
    GapType,
    Location,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    TimeRange,
    nodes,
)

N0, N1, N2, N3, N4 = nodes(range(5))
HOLE = int(RecordFlags.HOLE)


def lsn(esn: int) -> Lsn:
    return Lsn.of(1, esn)


def log() -> Truth:
    """Records 1 to 5 on N0 N1 N2, a hole at 6, a bridge at 7; five nodes, three copies."""
    truth = Truth({node: Location() for node in nodes(range(5))})
    truth.metadata.append(EpochMetadata(Epoch(1), nodes(range(5)), Replication.parse("3")))
    for esn in range(1, 6):
        record = Record(lsn(esn), 100 * esn, (N0, N1, N2), f"body {esn}".encode())
        truth.write(SlotKind.DATA, record, (N0, N1, N2), 0)
    truth.write(SlotKind.HOLE, Record(lsn(6), 600, (N0, N1, N2), flags=HOLE), (N0, N1, N2), 0)
    bridge = HOLE | int(RecordFlags.BRIDGE)
    truth.write(SlotKind.BRIDGE, Record(lsn(7), 700, (N0, N1, N2), flags=bridge), (N0, N1, N2), 0)
    truth.released_end = lsn(8)
    return truth


def start(**changes: object) -> Start:
    usual = Start(
        log=LOG,
        filter_version=1,
        start=lsn(1),
        end=lsn(9),
        window_end=lsn(9),
        window_bytes=1000,
        replication=3,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def reader(mode: ReadMode = ReadMode.ALL_SEND_ALL, *, asked_ms: int = 10) -> ReaderView:
    view = ReaderView("reader", ReadRequest(log=LOG, start=lsn(1), end=lsn(9)))
    for node in nodes(range(5)):
        view.reading.note(node, start(mode=mode), asked_ms)
    view.reading.mode_before = view.reading.mode
    return view


def loss(first: int, end: int, kind: GapType = GapType.DATALOSS) -> Gap:
    return Gap(kind, lsn(first), lsn(end))


def test_a_skipped_lsn_is_out_of_order() -> None:
    view = reader()
    assert checkers.out_of_order(view, log().slots[lsn(1)].record) is None
    assert checkers.out_of_order(view, log().slots[lsn(2)].record) == "expected e1n1 next, got record e1n2"


def test_a_second_delivery_is_out_of_order() -> None:
    witness, view = ReadWitness(log(), World(0)), reader()
    witness.accepted(view, log().slots[lsn(1)].record)
    witness.accepted(view, loss(2, 4))
    assert witness.violations == []
    witness.accepted(view, log().slots[lsn(3)].record)
    assert witness.violations == ["0 ms reader: expected e1n4 next, got record e1n3"]


def test_an_empty_gap_and_a_gap_past_the_end_are_out_of_order() -> None:
    assert checkers.out_of_order(reader(), loss(1, 1)) is not None
    assert checkers.out_of_order(reader(), loss(1, 10)) is not None


def test_another_body_is_wrong_content() -> None:
    truth, view = log(), reader()
    record = truth.slots[lsn(1)].record
    assert checkers.wrong_content(truth, view, record) is None
    assert checkers.wrong_content(truth, view, replace(record, body=b"noise")) is not None
    assert checkers.wrong_content(truth, view, replace(record, flags=int(RecordFlags.CORRUPT))) is not None
    assert checkers.wrong_content(truth, view, truth.slots[lsn(6)].record) is not None
    assert checkers.wrong_content(truth, view, replace(record, lsn=lsn(99))) is not None


def test_a_record_outside_the_time_range_is_wrong_content() -> None:
    truth, view = log(), reader()
    view.request = replace(view.request, time_range=TimeRange(0, 100))
    assert checkers.wrong_content(truth, view, truth.slots[lsn(1)].record) is not None


def test_what_is_not_released_is_noticed() -> None:
    truth = log()
    truth.released_end = lsn(3)
    assert checkers.unreleased(truth, truth.slots[lsn(2)].record) is None
    assert checkers.unreleased(truth, truth.slots[lsn(3)].record) is not None
    assert checkers.unreleased(truth, loss(1, 3)) is None
    assert checkers.unreleased(truth, loss(1, 4)) is not None
    assert checkers.unreleased(truth, loss(3, 9, GapType.BRIDGE)) is not None
    assert checkers.unreleased(truth, loss(2, 9, GapType.BRIDGE)) is None
    assert checkers.unreleased(truth, Gap(GapType.BRIDGE, Lsn.of(2, 0), Lsn.of(2, 1))) is None


def test_a_gap_of_the_wrong_type_is_untrue() -> None:
    truth, view = log(), reader()
    truth.trim_end = lsn(3)
    true = [loss(1, 3, GapType.TRIM), loss(6, 7, GapType.HOLE), loss(1, 4), loss(7, 9, GapType.BRIDGE)]
    assert [checkers.untrue_gap(truth, view, gap) for gap in true] == [None] * 4
    untrue = [
        loss(1, 4, GapType.TRIM),
        loss(5, 7, GapType.HOLE),
        loss(7, 8, GapType.HOLE),
        loss(1, 2, GapType.FILTERED_OUT),
        loss(8, 20),
        loss(1, 9, GapType.ACCESS),
    ]
    assert all(checkers.untrue_gap(truth, view, gap) for gap in untrue)


def test_only_records_outside_the_time_range_are_filtered_out() -> None:
    truth, view = log(), reader()
    view.request = replace(view.request, time_range=TimeRange(300, 400))
    assert checkers.untrue_gap(truth, view, loss(1, 3, GapType.FILTERED_OUT)) is None
    assert checkers.untrue_gap(truth, view, loss(2, 4, GapType.FILTERED_OUT)) is not None


def test_a_record_on_nodes_that_count_is_never_lost() -> None:
    truth, view = log(), reader()
    complaint = checkers.invented_loss(truth, view, loss(2, 3))
    assert complaint == "DATALOSS [e1n2, e1n3) covers e1n2, which N0 and N1 and N2 had all the time"
    assert checkers.invented_loss(truth, view, loss(2, 9, GapType.BRIDGE)) is not None
    assert checkers.invented_loss(truth, view, loss(7, 9, GapType.BRIDGE)) is None
    assert checkers.invented_loss(truth, view, loss(2, 3, GapType.TRIM)) is None


def test_one_copy_proves_a_record_while_the_nodes_without_one_are_no_f_majority() -> None:
    truth, view = log(), reader()
    truth.lose(N0, lsn(2))
    truth.lose(N1, lsn(2))
    # N0, N1, N3 and N4 have nothing: an f-majority of five nodes with three copies.
    assert checkers.invented_loss(truth, view, loss(2, 3)) is None
    truth.dirty[N0] = [DirtyRange(lsn(1), lsn(9), 0)]
    truth.rebuilding_since_ms[N1] = 0
    assert checkers.invented_loss(truth, view, loss(2, 3)) is not None


def test_a_node_with_a_spoiled_copy_neither_has_the_record_nor_votes() -> None:
    truth, view = log(), reader()
    truth.spoil(N0, lsn(2))
    truth.spoil(N1, lsn(2))
    assert checkers.invented_loss(truth, view, loss(2, 3)) is not None
    view.spoiled.add((1, N2, lsn(2)))
    assert checkers.invented_loss(truth, view, loss(2, 3)) is None


def test_what_every_node_had_trimmed_is_not_lost() -> None:
    truth, view = log(), reader(asked_ms=10)
    truth.trim_end = lsn(3)
    truth.trimmed = dict.fromkeys(nodes(range(5)), (lsn(3), 5))
    assert checkers.mistaken_trim(truth, view, loss(2, 3)) is not None
    assert checkers.mistaken_trim(truth, view, loss(3, 4)) is None
    truth.trimmed[N4] = (lsn(3), 11)
    assert checkers.mistaken_trim(truth, view, loss(2, 3)) is None


def test_copies_made_after_the_reader_asked_do_not_count() -> None:
    truth, view = log(), reader(asked_ms=10)
    for node in (N0, N1, N2):
        truth.restore(node, lsn(2), 50)
    assert checkers.invented_loss(truth, view, loss(2, 3)) is None


def test_nodes_that_were_given_up_are_not_waited_for() -> None:
    truth, view = log(), reader()
    gone = AuthoritativeStatus.UNDERREPLICATION
    view.learn_status(StatusNotice(2, ((N0, gone), (N1, gone), (N2, gone))))
    assert checkers.invented_loss(truth, view, loss(2, 3)) is None
    view.learn_status(StatusNotice(1, ()))
    assert checkers.invented_loss(truth, view, loss(2, 3)) is None
    view.learn_status(StatusNotice(3, ((N0, AuthoritativeStatus.UNAVAILABLE),)))
    assert checkers.invented_loss(truth, view, loss(2, 3)) is not None


def test_an_f_majority_leaves_no_room_for_a_copyset() -> None:
    places, three = log().locations, Replication.parse("3")
    nodes = (N0, N1, N2, N3, N4)
    assert not is_f_majority((N0, N1), nodes, three, places)
    assert is_f_majority((N0, N1, N2), nodes, three, places)
    assert is_f_majority((N0, N1), (N0, N1, N2, N3), three, places)
    # If no copyset fits into the nodes, only all nodes together are an f-majority.
    assert not is_f_majority((N0,), (N0, N1), three, places)
    assert is_f_majority((N0, N1), (N0, N1), three, places)


def test_silence_proves_nothing_in_single_copy_delivery() -> None:
    truth = log()
    for mode in (ReadMode.SCD, ReadMode.LOCAL_SCD):
        assert checkers.gap_by_silence_in_scd(truth, reader(mode), loss(2, 3)) is not None
        assert checkers.gap_by_silence_in_scd(truth, reader(mode), loss(2, 9, GapType.BRIDGE)) is not None
        assert checkers.gap_by_silence_in_scd(truth, reader(mode), loss(7, 9, GapType.BRIDGE)) is None
        assert checkers.gap_by_silence_in_scd(truth, reader(mode), loss(0, 1, GapType.BRIDGE)) is None
        assert checkers.gap_by_silence_in_scd(truth, reader(mode), loss(6, 7, GapType.HOLE)) is None
    assert checkers.gap_by_silence_in_scd(truth, reader(), loss(2, 3)) is None


def test_two_readers_that_disagree_without_a_loss_are_noticed() -> None:
    truth, first, second = log(), reader(), reader()
    first.records[lsn(2)] = truth.slots[lsn(2)].record
    second.gaps += [loss(6, 7, GapType.HOLE), loss(2, 3)]
    assert checkers.disagreement(truth, first, second) is not None
    assert checkers.disagreement(truth, second, first) is not None
    truth.lose(N0, lsn(2))
    assert checkers.disagreement(truth, first, second) is None


def health(waiting: Waiting, *, waiting_for: str = "", head: int = 3, violations: int = 0) -> StreamHealth:
    return StreamHealth(
        mode=ReadMode.SCD,
        head=lsn(head),
        released_end=lsn(8),
        waiting=waiting,
        waiting_for=waiting_for,
        waiting_since_ms=0,
        is_healthy=True,
        known_down=(),
        slow=(),
        rewinds=0,
        rewind_reasons={},
        bytes_by_node={},
        records_by_node={},
        duplicates=0,
        violations=violations,
    )


def stall(state: StreamHealth, *, has_unread: bool = False, is_settled: bool = True) -> str | None:
    return checkers.stall_without_cause(
        state, has_unread=has_unread, released_end=lsn(8), is_settled=is_settled
    )


def test_a_stall_names_a_cause_that_is_true() -> None:
    assert stall(health(Waiting.APPLICATION)) is not None
    assert stall(health(Waiting.APPLICATION), has_unread=True) is None
    assert stall(health(Waiting.ENDED)) is not None
    assert stall(health(Waiting.RELEASE)) is not None
    assert stall(health(Waiting.RELEASE), is_settled=False) is None
    assert stall(health(Waiting.RELEASE, head=8)) is None
    assert stall(health(Waiting.NODES)) is not None
    assert stall(health(Waiting.NODES, waiting_for="N1")) is None
    assert stall(health(Waiting.NODES, waiting_for="N1", violations=1)) is not None


def test_a_reader_that_stops_short_has_not_converged() -> None:
    truth, view = log(), reader()
    assert checkers.not_converged(truth, view) == "is still at e1n1, released is e1n8"
    view.next = lsn(8)
    assert checkers.not_converged(truth, view) is None
    view.next = lsn(9)
    assert checkers.not_converged(truth, view) == "has everything up to e1n9, but did not end"
    view.is_ended = True
    assert checkers.not_converged(truth, view) is None
    view.next = lsn(8)
    assert checkers.not_converged(truth, view) == "ended at e1n8 before e1n9"


def test_a_record_that_was_sent_twice_is_noticed() -> None:
    view = reader()
    view.records[lsn(1)] = log().slots[lsn(1)].record
    assert checkers.wasted_copies(view, {lsn(1): 1}, rewinds=0) is None
    assert checkers.wasted_copies(view, {lsn(1): 2}, rewinds=0) == "e1n1 crossed the wire 2 times"
    assert checkers.wasted_copies(view, {lsn(1): 1}, rewinds=1) is not None


def test_one_failing_node_is_no_reason_for_all_send_all() -> None:
    view = reader(ReadMode.SCD)
    assert checkers.left_scd_needlessly(view, N1, copies=2) is None
    view.reading.note(N0, start(mode=ReadMode.ALL_SEND_ALL), 20)
    assert checkers.left_scd_needlessly(view, N1, copies=2) is not None
    assert checkers.left_scd_needlessly(view, N1, copies=1) is None


def test_a_node_that_is_back_but_still_listed_is_noticed() -> None:
    state = health(Waiting.NODES, waiting_for="N1")
    assert checkers.not_forgiven(N1, state) is None
    assert checkers.not_forgiven(N1, replace(state, known_down=(N1,))) is not None


def test_a_window_that_runs_ahead_of_the_application_is_noticed() -> None:
    view = reader()
    view.window_lsns = 8
    witness = ReadWitness(log(), World(0))
    witness.asked(view, start(window_end=lsn(9)))
    assert witness.violations == []
    witness.asked(view, start(window_end=lsn(10)))
    assert witness.violations == ["0 ms reader: window to e1n10, consumed e1n1"]


def test_a_reader_is_turned_away_only_for_a_reason() -> None:
    truth, view = log(), reader()
    gap = loss(1, 9, GapType.NOTINCONFIG)
    assert checkers.untrue_gap(truth, view, gap) is not None
    view.ends_by = GapType.NOTINCONFIG
    assert checkers.untrue_gap(truth, view, gap) is None
    assert checkers.unreleased(truth, gap) is None


def send_twice(view: ReaderView, *, second: NodeId = N1, truth: Truth | None = None) -> list[str]:
    truth = truth or log()
    witness = ReadWitness(truth, World(0))
    message = Records(LOG, 1, (truth.slots[lsn(1)].record,))
    witness.sent(view, N0, message)
    witness.sent(view, second, message)
    return witness.violations


def test_two_nodes_that_send_the_same_record_are_noticed_in_single_copy_delivery() -> None:
    assert send_twice(reader(ReadMode.SCD)) == ["0 ms reader: e1n1 sent by N0 and N1 under version 1"]
    assert send_twice(reader(ReadMode.SCD), second=N0) == []
    assert send_twice(reader(ReadMode.ALL_SEND_ALL)) == []


def test_a_second_copy_has_excuses() -> None:
    known_down, extras, moved = reader(ReadMode.SCD), reader(ReadMode.SCD), log()
    known_down.reading.latest = start(mode=ReadMode.SCD, known_down=(N0,))
    extras.reading.latest = start(mode=ReadMode.SCD, replication=2)
    moved.slots[lsn(1)].is_moved = True
    assert send_twice(known_down) == []
    assert send_twice(extras) == []
    assert send_twice(reader(ReadMode.SCD), truth=moved) == []
