"""Tests of the memory store beyond those of `test_log_store`: the faults that the simulator needs."""

from __future__ import annotations

import pytest

from logdevice.protocol.log_state.store_read import ReadEnd
from logdevice.protocol.messages.read import ReadMode
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.storage.tests.storing import LOG, THEIRS, put, read, record, write
from logdevice.types import Lsn, LsnRange, Record, RecordFlags, TimeRange


def store(*records: Record, entries_examined_max: int | None = None) -> MemoryLogStore:
    filled = MemoryLogStore(entries_examined_max=entries_examined_max)
    write(filled, *put(*records))
    return filled


def test_a_scan_stops_when_it_has_examined_enough() -> None:
    copies = (record(1, copyset=THEIRS), record(2, copyset=THEIRS), record(3), record(9))
    result = store(*copies, entries_examined_max=3).scan(read(mode=ReadMode.SCD))
    assert (result.items, result.next, result.end) == ((record(3),), 9, ReadEnd.TIME)


def test_a_scan_that_stops_before_an_under_replicated_range_does_not_report_it() -> None:
    thin = store(record(1), record(4), entries_examined_max=1)
    thin.mark_under_replicated(LOG, LsnRange(Lsn(5), Lsn(7)))
    assert not thin.scan(read()).under_replicated


def test_a_damaged_record_is_returned_as_corrupt_and_without_its_body() -> None:
    damaged = store(record(1, b"abc"))
    damaged.corrupt(LOG, Lsn(1))
    assert damaged.is_corrupt(LOG, Lsn(1))
    (found,) = damaged.scan(read(time_range=TimeRange(0, 1))).items
    assert isinstance(found, Record)
    assert (found.lsn, found.body, found.flags) == (1, b"", RecordFlags.CORRUPT)


def test_a_damaged_record_is_whole_again_once_it_is_written_anew() -> None:
    damaged = store(record(1, b"abc"))
    damaged.corrupt(LOG, Lsn(1))
    write(damaged, *put(record(1, b"abc")))
    assert damaged.scan(read()).items == (record(1, b"abc"),)


def test_a_missing_record_cannot_be_damaged() -> None:
    with pytest.raises(AssertionError, match="there is no e0n1"):
        store().corrupt(LOG, Lsn(1))


def test_copies_can_be_amended_and_removed_directly() -> None:
    moved = store(record(1), record(2))
    moved.amend(LOG, Lsn(1), THEIRS, RecordFlags.DRAINED)
    moved.remove(LOG, Lsn(2))
    moved.remove(LOG, Lsn(2))
    assert moved.get(LOG, Lsn(1)) == record(1, copyset=THEIRS, flags=RecordFlags.DRAINED)
    assert (moved.lsns(LOG), moved.get(LOG, Lsn(2))) == ((1,), None)


def test_a_wiped_store_is_empty() -> None:
    wiped = store(record(1))
    wiped.wipe()
    assert wiped.lsns(LOG) == ()
