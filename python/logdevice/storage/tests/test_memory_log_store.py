"""The memory store: what it keeps, and how far one scan looks."""

from __future__ import annotations

import pytest

from logdevice.protocol.copy_selection import CopyFilter
from logdevice.protocol.messages import ReadMode, Start
from logdevice.protocol.store_read import FilteredOut, ReadEnd, RecordsRead, StoreRead
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import (
    LSN_MAX,
    RECORD_HEADER_BYTES,
    LogId,
    Lsn,
    LsnRange,
    NodeId,
    Record,
    RecordFlags,
    TimeRange,
    epoch_start,
    nodes,
)

LOG = LogId(1)
OURS, THEIRS = nodes([1, 2]), nodes([2, 1])


def record(lsn: int, *, copyset: tuple[NodeId, ...] = OURS, body: bytes = b"", flags: int = 0) -> Record:
    return Record(Lsn(lsn), timestamp_ms=lsn * 100, copyset=copyset, body=body, flags=flags)


def store(*records: Record, entries_examined_max: int | None = None) -> MemoryLogStore:
    filled = MemoryLogStore(entries_examined_max=entries_examined_max)
    for item in records:
        filled.put(LOG, item)
    return filled


def read(
    start: int = 1,
    end: int = 100,
    *,
    gap_end: int | None = None,
    bytes_max: int = 10_000,
    time_range: TimeRange | None = None,
    headers_only: bool = False,
) -> StoreRead:
    request = Start(
        log=LOG,
        filter_version=1,
        start=Lsn(1),
        end=LSN_MAX,
        window_end=LSN_MAX,
        window_bytes=0,
        mode=ReadMode.SCD,
    )
    return StoreRead(
        read_id=3,
        log=LOG,
        start=Lsn(start),
        end=Lsn(end),
        gap_end=Lsn(end if gap_end is None else gap_end),
        bytes_max=bytes_max,
        time_ms_max=1000,
        filter=CopyFilter(NodeId(1), request, {}),
        time_range=time_range,
        headers_only=headers_only,
    )


def lsns(result: RecordsRead) -> list[int]:
    return [int(item.lsn) for item in result.items if isinstance(item, Record)]


def test_a_scan_returns_the_records_of_its_range_in_order() -> None:
    result = store(record(7), record(3), record(9), record(5)).scan(read(4, 9))
    assert result == RecordsRead(3, (record(5), record(7)), Lsn(9), ReadEnd.LIMIT)


def test_a_log_that_was_never_written_is_empty() -> None:
    assert store().scan(read()) == RecordsRead(3, (), Lsn(100), ReadEnd.LIMIT)


def test_a_scan_passes_over_what_others_send() -> None:
    assert lsns(store(record(1), record(2, copyset=THEIRS), record(3)).scan(read())) == [1, 3]


def test_a_scan_stops_before_the_record_that_does_not_fit() -> None:
    records = [record(lsn, body=b"x" * 36) for lsn in (1, 2, 5)]
    result = store(*records).scan(read(bytes_max=200))
    assert (lsns(result), result.next, result.end) == ([1, 2], 5, ReadEnd.BYTES)


def test_a_first_record_of_any_size_is_returned() -> None:
    result = store(record(1, body=b"x" * 500), record(2)).scan(read(bytes_max=1))
    assert (lsns(result), result.next, result.end) == ([1], 2, ReadEnd.BYTES)


def test_a_scan_stops_when_it_has_examined_enough() -> None:
    copies = [record(lsn, copyset=THEIRS) for lsn in (1, 2)] + [record(3), record(9)]
    result = store(*copies, entries_examined_max=3).scan(read())
    assert (lsns(result), result.next, result.end) == ([3], 9, ReadEnd.TIME)


def test_without_bodies_more_records_fit() -> None:
    records = [record(lsn, body=b"x" * 500) for lsn in (1, 2)]
    result = store(*records).scan(read(bytes_max=2 * RECORD_HEADER_BYTES, headers_only=True))
    assert result.items == (record(1), record(2))


def test_consecutive_records_outside_of_the_time_range_are_one_item() -> None:
    copies = [record(lsn) for lsn in (1, 2, 4, 5, 6)]
    result = store(*copies).scan(read(time_range=TimeRange(500, 600)))
    assert result.items == (
        FilteredOut(Lsn(1), Lsn(3)),
        FilteredOut(Lsn(4), Lsn(5)),
        record(5),
        FilteredOut(Lsn(6), Lsn(7)),
    )


def test_what_others_send_is_not_filtered_out_by_this_node() -> None:
    copies = [record(1), record(2, copyset=THEIRS), record(3)]
    result = store(*copies).scan(read(time_range=TimeRange(0, 1)))
    assert result.items == (FilteredOut(Lsn(1), Lsn(2)), FilteredOut(Lsn(3), Lsn(4)))


def test_holes_and_bridges_are_returned_whatever_the_time() -> None:
    hole = record(1, copyset=THEIRS, flags=RecordFlags.HOLE)
    assert store(hole).scan(read(time_range=TimeRange(0, 1))).items == (hole,)


def test_a_damaged_record_is_returned_as_corrupt_and_without_its_body() -> None:
    damaged = store(record(1, body=b"abc"))
    damaged.corrupt(LOG, Lsn(1))
    assert damaged.is_corrupt(LOG, Lsn(1))
    assert damaged.scan(read(time_range=TimeRange(0, 1))).items == (record(1, flags=RecordFlags.CORRUPT),)


def test_a_damaged_record_is_whole_again_once_it_is_written_anew() -> None:
    damaged = store(record(1, body=b"abc"))
    damaged.corrupt(LOG, Lsn(1))
    damaged.put(LOG, record(1, body=b"abc"))
    assert damaged.scan(read()).items == (record(1, body=b"abc"),)


def test_what_is_not_there_cannot_be_damaged() -> None:
    with pytest.raises(AssertionError, match="there is no e0n1"):
        store().corrupt(LOG, Lsn(1))


def test_an_amended_copyset_decides_who_sends() -> None:
    amended = store(record(1))
    amended.amend(LOG, Lsn(1), THEIRS)
    assert amended.scan(read()).items == ()
    amended.amend(LOG, Lsn(1), OURS, RecordFlags.DRAINED)
    assert amended.get(LOG, Lsn(1)) == record(1, flags=RecordFlags.DRAINED)
    assert amended.scan(read()).items == ()


def test_a_removed_record_is_gone_and_removing_it_again_does_nothing() -> None:
    thinned = store(record(1), record(2))
    thinned.remove(LOG, Lsn(1))
    thinned.remove(LOG, Lsn(1))
    assert thinned.lsns(LOG) == (2,)
    assert thinned.get(LOG, Lsn(1)) is None


def test_trim_removes_everything_below_and_never_goes_back() -> None:
    trimmed = store(record(1), record(2), record(3))
    trimmed.trim(LOG, Lsn(3))
    trimmed.trim(LOG, Lsn(2))
    assert trimmed.lsns(LOG) == (3,)
    assert trimmed.trim_end(LOG) == 3


def test_a_wiped_store_is_empty() -> None:
    wiped = store(record(1))
    wiped.wipe()
    assert wiped.lsns(LOG) == ()


def test_a_scan_that_touches_an_under_replicated_range_says_so() -> None:
    thin = store(record(1), record(9))
    thin.mark_under_replicated(LOG, LsnRange(Lsn(5), Lsn(7)))
    assert [thin.scan(read(*span)).under_replicated for span in ((1, 5), (1, 6), (6, 9), (7, 9))] == [
        False,
        True,
        True,
        False,
    ]
    thin.clear_under_replicated(LOG)
    assert not thin.scan(read()).under_replicated


def test_a_scan_that_stopped_in_front_of_an_under_replicated_range_says_nothing_of_it() -> None:
    thin = store(record(1), record(4), entries_examined_max=1)
    thin.mark_under_replicated(LOG, LsnRange(Lsn(5), Lsn(7)))
    assert not thin.scan(read()).under_replicated


def test_a_scan_that_came_to_its_end_tells_where_the_next_copy_is() -> None:
    result = store(record(1), record(50, copyset=THEIRS)).scan(read(1, 10, gap_end=80))
    assert (lsns(result), result.next, result.end) == ([1], 50, ReadEnd.LIMIT)


def test_without_another_copy_there_is_nothing_as_far_as_was_asked() -> None:
    assert store(record(1)).scan(read(1, 10, gap_end=80)).next == 80
    assert store(record(90)).scan(read(1, 10, gap_end=80)).next == 80


def test_a_scan_that_stopped_early_does_not_look_ahead() -> None:
    assert store(record(1), record(2)).scan(read(1, 10, gap_end=80, bytes_max=1)).next == 2


@pytest.mark.parametrize(("lost", "next_lsn", "thin"), [((20, 30), 20, False), ((5, 30), 30, True)])
def test_looking_ahead_stops_where_records_may_have_been_lost(
    lost: tuple[int, int], next_lsn: int, thin: bool
) -> None:
    holed = store(record(1))
    holed.mark_under_replicated(LOG, LsnRange(Lsn(lost[0]), Lsn(lost[1])))
    result = holed.scan(read(1, 10, gap_end=80))
    assert (result.next, result.under_replicated) == (next_lsn, thin)


BRIDGE = int(RecordFlags.HOLE | RecordFlags.BRIDGE)


def test_a_read_behind_the_bridge_of_its_epoch_is_told_so() -> None:
    """S15"""
    closed = store(record(1), record(5, flags=BRIDGE))
    assert not closed.scan(read(start=5)).is_behind_bridge
    assert closed.scan(read(start=6)).is_behind_bridge
    assert not closed.scan(read(start=epoch_start(1))).is_behind_bridge


def test_a_bridge_that_is_gone_closes_nothing() -> None:
    closed = store(record(1), record(5, flags=BRIDGE))
    closed.remove(LOG, Lsn(1))
    assert closed.scan(read(start=6)).is_behind_bridge
    closed.remove(LOG, Lsn(5))
    assert not closed.scan(read(start=6)).is_behind_bridge


def test_a_trim_that_takes_a_bridge_takes_the_rest_of_its_epoch_with_it() -> None:
    """S15: nothing was ever there, and nobody could say so any more."""
    closed = store(record(1), record(5, flags=BRIDGE), record(epoch_start(1)))
    closed.trim(LOG, Lsn(5))
    assert closed.trim_end(LOG) == 5
    closed.trim(LOG, Lsn(6))
    assert closed.trim_end(LOG) == epoch_start(1)
    assert closed.lsns(LOG) == (epoch_start(1),)
