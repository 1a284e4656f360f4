"""Each checker of the whole cluster notices a planted violation, and reports nothing where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.log_state.store_write import AmendRecord, PutRecord, PutState
from logdevice.protocol.log_state.stored_log import SealPoint, StoredLog
from logdevice.protocol.messages.write import Append, Release
from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.simulation.cluster import checkers
from logdevice.simulation.cluster.ledger import AppendAttempt, AppendOutcome, Ledger, Promises
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Gap,
    GapType,
    Location,
    LogPoint,
    Lsn,
    LsnRange,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    WriterTag,
    nodes,
)

N0, N1, N2, N3, N4 = NODES = nodes(range(5))
R3 = Replication.parse("3")
METADATA = EpochMetadata(Epoch(1), NODES, R3)
STATE = EpochState(epoch=Epoch(3), last_clean=Epoch(1), metadata=METADATA, tail=LogPoint(entry_end=5))
RECOVERED = int(RecordFlags.BY_RECOVERY)


def lsn(esn: int, epoch: int = 1) -> Lsn:
    return Lsn.of(epoch, esn)


def ledger() -> Ledger:
    """a at e1n1 and b at e1n2 are acknowledged and released, e1n3 is a hole; c was sent."""
    book = Ledger(dict.fromkeys(NODES, Location()))
    book.epochs = {Epoch(number): METADATA for number in (1, 2, 3)}
    for body in (b"a", b"b", b"c"):
        book.sent(Append(log=LOG, body=body, entries=1))
    for number, body in enumerate((b"a", b"b"), start=1):
        book.acknowledged(body, lsn(number))
        book.note(lsn(number), body)
    book.note(lsn(3), None)
    book.released_end = lsn(4)
    return book


def test_released_content_that_changes_is_noticed() -> None:
    book = ledger()
    assert checkers.changed_content(book, lsn(1), b"a") is None
    assert checkers.changed_content(book, lsn(1), b"x") is not None
    assert checkers.changed_content(book, lsn(1), None) is not None
    book.trim_end = lsn(2)
    assert checkers.changed_content(book, lsn(1), None) is None
    assert checkers.changed_content(book, lsn(1), b"x") is not None


def test_a_tail_before_what_was_acknowledged_is_noticed() -> None:
    """U19."""
    assert checkers.early_tail(lsn(4), lsn(3)) is None
    for acknowledged in (lsn(4), lsn(1, epoch=2)):
        assert checkers.early_tail(lsn(4), acknowledged) is not None


def test_a_hole_that_becomes_data_is_noticed() -> None:
    book = ledger()
    assert checkers.changed_content(book, lsn(3), None) is None
    assert checkers.changed_content(book, lsn(3), b"c") is not None


def test_data_where_a_reader_was_told_of_a_bridge_is_noticed() -> None:
    book = ledger()
    assert checkers.changed_content(book, lsn(6), b"c") is None
    book.empty.append(LsnRange(lsn(4), lsn(1, 2)))
    assert checkers.changed_content(book, lsn(6), b"c") is not None


def test_a_record_that_is_there_twice_or_was_refused_or_never_appended_is_noticed() -> None:
    book = ledger()
    assert checkers.strange_record(book, lsn(4), b"c") is None
    assert checkers.strange_record(book, lsn(4), b"a") is not None
    assert checkers.strange_record(book, lsn(4), b"never appended") is not None
    book.refused(b"c")
    assert checkers.strange_record(book, lsn(4), b"c") is not None


def test_an_acknowledged_record_that_is_changed_or_missing_is_noticed() -> None:
    book = ledger()
    assert checkers.broken_acknowledgement(book, lsn(1), b"a") is None
    assert checkers.broken_acknowledgement(book, lsn(2), None) is not None
    assert checkers.missing_append(book, lsn(1)) is None
    book.acknowledged(b"c", lsn(9))
    assert checkers.missing_append(book, lsn(9)) is not None
    book.trim_end = lsn(10)
    assert checkers.missing_append(book, lsn(9)) is None


def test_too_few_copies_are_noticed() -> None:
    places = dict.fromkeys(NODES, Location())
    assert checkers.too_few_copies(lsn(1), [N0, N1, N2], R3, places) is None
    assert checkers.too_few_copies(lsn(1), [N0, N1], R3, places) is not None
    racks = {node: Location.parse(f"r.d.c.w.k{int(node) // 3}") for node in NODES}
    both = Replication.parse("node: 3, rack: 2")
    assert checkers.too_few_copies(lsn(1), [N0, N1, N2], both, racks) is not None
    assert checkers.too_few_copies(lsn(1), [N0, N1, N3], both, racks) is None


def test_an_acknowledgement_of_an_append_that_came_after_the_seal_is_noticed() -> None:
    attempt = AppendAttempt(Append(log=LOG, body=b"c", entries=1), AppendOutcome.PENDING, arrived_ms=100)
    assert checkers.late_acknowledgement(attempt, lsn(1), None) is None
    assert checkers.late_acknowledgement(attempt, lsn(1), 100) is None
    assert checkers.late_acknowledgement(attempt, lsn(1), 99) is not None


def test_a_store_after_the_seal_is_noticed() -> None:
    record = Record(lsn(1, 2), 0, (N0,), b"c")
    assert checkers.stored_after_seal(PutRecord(LOG, record), Epoch(1)) is None
    assert checkers.stored_after_seal(PutRecord(LOG, record), Epoch(2)) is not None
    recovered = replace(record, flags=RECOVERED, wave=4)
    assert checkers.stored_after_seal(PutRecord(LOG, recovered), Epoch(4)) is None
    assert checkers.stored_after_seal(PutRecord(LOG, recovered), Epoch(5)) is not None
    assert checkers.stored_after_seal(AmendRecord(LOG, lsn(1, 2), (N0,), 0, 2), Epoch(2)) is not None
    assert checkers.stored_after_seal(PutState(LOG, "seal", b""), Epoch(9)) is None


@pytest.mark.parametrize(
    "promises",
    [Promises(seal=Epoch(3)), Promises(trim_end=lsn(3)), Promises(recovered={Epoch(1), Epoch(2)})],
)
def test_a_node_that_forgets_what_it_promised_is_noticed(promises: Promises) -> None:
    stored = StoredLog(seal=SealPoint(Epoch(2), N0), trim_end=lsn(2), recovered={Epoch(1): (lsn(1), lsn(4))})
    kept = Promises(seal=Epoch(2), trim_end=lsn(2), recovered={Epoch(1)})
    assert checkers.broken_promise(kept, stored) is None
    assert checkers.broken_promise(promises, stored) is not None


@pytest.mark.parametrize(
    "after",
    [
        replace(STATE, epoch=Epoch(2)),
        replace(STATE, epoch=Epoch(5)),
        replace(STATE, last_clean=Epoch(0)),
        replace(STATE, last_clean=Epoch(3)),
        replace(STATE, epoch=Epoch(4), last_clean=Epoch(2)),
        replace(STATE, tail=LogPoint(entry_end=4)),
    ],
)
def test_an_epoch_store_that_goes_back_or_skips_is_noticed(after: EpochState) -> None:
    assert checkers.epoch_store_went_back(STATE, replace(STATE, epoch=Epoch(4))) is None
    assert checkers.epoch_store_went_back(STATE, replace(STATE, last_clean=Epoch(2))) is None
    assert checkers.epoch_store_went_back(STATE, after) is not None


def test_an_early_release_is_noticed() -> None:
    book = ledger()
    assert checkers.early_release(book, Release(LOG, lsn(5, 2), N0), STATE, [METADATA]) is None
    assert checkers.early_release(book, Release(LOG, lsn(5, 3), N0), STATE, [METADATA]) is not None
    assert checkers.early_release(book, Release(LOG, lsn(5, 2), N0), STATE, []) is not None
    other = replace(METADATA, nodeset=(N0, N1, N2))
    assert checkers.early_release(book, Release(LOG, lsn(5, 2), N0), STATE, [other]) is not None


def test_a_release_that_goes_back_and_a_delivery_before_it_are_noticed() -> None:
    assert checkers.release_went_back(lsn(1), lsn(2)) is None
    assert checkers.release_went_back(lsn(2), lsn(2)) is not None
    assert checkers.unreleased(ledger(), lsn(3)) is None
    assert checkers.unreleased(ledger(), lsn(4)) is not None


def test_times_and_counters_that_go_back_are_noticed() -> None:
    book = ledger()
    before = Record(lsn(1), 100, (N0,), b"a", entries=1, entry_end=4, byte_end=10)
    good = Record(lsn(2), 100, (N0,), b"b", entries=1, entry_end=5, byte_end=11)
    assert checkers.went_back(book, None, good) is None
    assert checkers.went_back(book, before, good) is None
    assert checkers.went_back(book, before, replace(good, timestamp_ms=99)) is not None
    assert checkers.went_back(book, before, replace(good, entry_end=4)) is not None
    assert checkers.went_back(book, before, replace(good, byte_end=10)) is not None


def test_counters_of_an_epoch_that_could_not_learn_the_tail_are_excused() -> None:
    book = ledger()
    before = Record(lsn(1), 100, (N0,), b"a", entries=1, entry_end=4)
    low = Record(lsn(1, 2), 100, (N0,), b"b", entries=1, entry_end=1, byte_end=9)
    assert checkers.went_back(book, before, low) is None
    book.tails_known.add(Epoch(2))
    assert checkers.went_back(book, before, low) is not None


@pytest.mark.parametrize("kind", [GapType.HOLE, GapType.BRIDGE, GapType.DATALOSS, GapType.TRIM])
def test_a_gap_that_hides_a_record_is_noticed(kind: GapType) -> None:
    book = ledger()
    assert checkers.untrue_gap(book, Gap(kind, lsn(2), lsn(4))) is not None
    book.trim_end = lsn(3)
    assert checkers.untrue_gap(book, Gap(kind, lsn(2), lsn(4))) is None


def test_a_loss_is_noticed_even_where_no_record_is_known() -> None:
    assert checkers.untrue_gap(ledger(), Gap(GapType.BRIDGE, lsn(3), lsn(1, 2))) is None
    assert checkers.untrue_gap(ledger(), Gap(GapType.DATALOSS, lsn(7), lsn(8))) is not None


def test_an_epoch_without_its_one_bridge_is_noticed() -> None:
    book = ledger()
    enough: list[NodeId] = [N0, N1, N2]
    assert checkers.wrong_bridges(book, Epoch(1), {lsn(4): enough}, R3) is None
    assert checkers.wrong_bridges(book, Epoch(1), {}, R3) is not None
    assert checkers.wrong_bridges(book, Epoch(1), {lsn(4): enough, lsn(5): enough}, R3) is not None
    assert checkers.wrong_bridges(book, Epoch(1), {lsn(2): enough}, R3) is not None
    assert checkers.wrong_bridges(book, Epoch(1), {lsn(4): [N0, N1]}, R3) is not None


def written(*made: tuple[int, int]) -> Ledger:
    """A log with these appends of one ordered writer, given as life and number, in this order."""
    book = ledger()
    for number, each in enumerate(made, start=10):
        body = b"%d-%d" % each
        book.tagged.made[body] = 7, True, each
        book.note(lsn(number), body)
    return book


def test_appends_of_a_writer_that_are_mixed_up_are_noticed() -> None:
    assert not list(checkers.mixed_up_writes(written((1, 1), (1, 2), (2, 3), (2, 4)), may_forget=False))
    assert list(checkers.mixed_up_writes(written((1, 2), (1, 1)), may_forget=True))
    late = written((1, 1), (2, 3), (1, 2))
    assert list(checkers.mixed_up_writes(late, may_forget=False))
    assert not list(checkers.mixed_up_writes(late, may_forget=True))


def test_an_append_that_was_acknowledged_without_a_position_and_is_missing_is_noticed() -> None:
    book = written((1, 1))
    book.sent(Append(log=LOG, body=b"1-1", entries=1))
    book.settled(b"1-1", Lsn(0))
    assert not list(checkers.missing_writes(book))
    book.sent(Append(log=LOG, body=b"1-2", entries=1))
    book.settled(b"1-2", Lsn(0))
    assert list(checkers.missing_writes(book))
    book.trim_end = lsn(99)
    assert not list(checkers.missing_writes(book))


def tagged(esn: int, seq: int, *, flags: int = 0, wave: int = 1) -> Record:
    return Record(lsn(esn), 0, (N0,), b"x", flags=flags, wave=wave, tag=WriterTag(7, 1, seq, 1, 0))


def table(*seqs: int) -> bytes:
    made = ReceivedTable()
    for seq in seqs:
        made.note(WriterTag(7, 1, seq, 1, 0), lsn(seq + 1))
    return made.encode()


def test_a_received_table_that_does_not_match_the_log_is_noticed() -> None:
    hole = int(RecordFlags.HOLE) | RECOVERED
    copies = [tagged(1, 0), tagged(2, 1), tagged(3, 2), tagged(3, 2, flags=hole, wave=4)]
    assert checkers.wrong_table(copies, table(0, 1)) is None
    assert checkers.wrong_table(copies, table(0)) is not None
    assert checkers.wrong_table(copies, table(0, 1, 2)) is not None
    assert checkers.wrong_table(copies, b"") is not None
    bridged = [*copies, Record(lsn(3), 0, (N0,), flags=hole | int(RecordFlags.BRIDGE), wave=5), tagged(4, 2)]
    assert checkers.wrong_table(bridged, table(0, 1)) is None
    given_up = Record(lsn(5), 0, (N0,), flags=hole | int(RecordFlags.BRIDGE), wave=4)
    assert checkers.wrong_table([*bridged, given_up], table(0, 1)) is None
    forgotten = ReceivedTable()
    forgotten.forget_all(lsn(9))
    assert checkers.wrong_table(copies, forgotten.encode()) is None
    again = [*copies, tagged(5, 1)]
    reused = ReceivedTable()
    for seq, esn in ((0, 1), (1, 2), (1, 5)):
        reused.note(WriterTag(7, 1, seq, 1, 0), lsn(esn))
    assert checkers.wrong_table(again, reused.encode()) is None
    assert checkers.wrong_table(again, table(0, 1)) is not None


def test_a_metadata_log_with_a_missing_or_wrong_entry_is_noticed() -> None:
    newer = replace(METADATA, first_epoch=Epoch(2))
    assert checkers.missed_entry((METADATA,), (METADATA, newer)) is None
    assert checkers.missed_entry((METADATA, newer), (METADATA,)) is not None
    assert checkers.other_entry(ledger(), METADATA) is None
    assert checkers.other_entry(ledger(), replace(METADATA, nodeset=nodes([0]))) is not None
    assert checkers.other_entry(ledger(), replace(METADATA, first_epoch=Epoch(9))) is not None
