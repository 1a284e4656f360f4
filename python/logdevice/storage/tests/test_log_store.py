"""The promises of every LogStore, tested on the store in memory and on the store on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd, RecordsRead
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    Persist,
    Persisted,
    PutState,
    TrimLog,
)
from logdevice.protocol.messages.read import ReadMode
from logdevice.storage.log_store import LogStore
from logdevice.storage.tests.model_store import ModelStore
from logdevice.storage.tests.storing import (
    LOG,
    OTHER_LOG,
    OURS,
    THEIRS,
    HastyDisk,
    held,
    lsns,
    mark_under_replicated,
    put,
    read,
    record,
    scanned,
    small_store,
    write,
)
from logdevice.types import (
    RECORD_HEADER_BYTES,
    CountedRecord,
    LogId,
    Lsn,
    LsnRange,
    RecordFlags,
    TimeRange,
    WriterTag,
    epoch_start,
    nodes,
)

HOLE, BRIDGE = int(RecordFlags.HOLE), int(RecordFlags.HOLE | RecordFlags.BRIDGE)
DRAINED = int(RecordFlags.DRAINED)
COMPACTED, PURGED = int(RecordFlags.COMPACTED), int(RecordFlags.PURGED)


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LogStore]:
    opened: LogStore = ModelStore() if request.param == "memory" else small_store(tmp_path, HastyDisk())
    yield opened
    opened.close()


def test_batches_written_together_are_answered_one_by_one_in_order(store: LogStore) -> None:
    batches = [Persist(4, put(record(1))), Persist(9, put(record(2))), Persist(5, put(record(3)))]
    assert store.write(batches) == [Persisted(4), Persisted(9), Persisted(5)]
    assert lsns(store) == [1, 2, 3]


def test_changes_take_effect_in_the_order_in_which_they_were_written(store: LogStore) -> None:
    first = Persist(1, (*put(record(1, b"old")), DeleteRecords(LOG, Lsn(1), Lsn(2)), *put(record(2))))
    second = Persist(2, (*put(record(1, b"new")), AmendRecord(LOG, Lsn(1), THEIRS, DRAINED, 4)))
    store.write([first, second])
    assert held(store) == [record(1, b"new", copyset=THEIRS, flags=DRAINED, wave=4), record(2)]


def test_a_record_is_read_as_it_was_put(store: LogStore) -> None:
    tagged = record(5, bytes(range(256)), copyset=nodes([3, 1, 65535]), flags=4, wave=7)
    full = type(tagged)(
        tagged.lsn, 1 << 41, tagged.copyset, tagged.body, 4, 7, 3, 1 << 40, 1 << 50, WriterTag(1, 2, 3, 4, 5)
    )
    write(store, *put(full))
    assert held(store) == [full]


def test_a_copy_that_is_put_again_replaces_the_first(store: LogStore) -> None:
    write(store, *put(record(1, b"first")))
    write(store, *put(record(1, b"second")))
    assert held(store) == [record(1, b"second")]


def test_amending_changes_the_header_and_keeps_the_body(store: LogStore) -> None:
    write(store, *put(record(1, b"stays")))
    write(store, AmendRecord(LOG, Lsn(1), nodes([4, 5]), flags=DRAINED, wave=3))
    assert held(store) == [record(1, b"stays", copyset=nodes([4, 5]), flags=DRAINED, wave=3)]


def test_amending_keeps_the_flags_that_describe_the_body(store: LogStore) -> None:
    """K23: the copy of the node that amends may be dropped and this one not, or the other way round."""
    write(store, *put(record(1, b"marks", flags=COMPACTED), record(2, b"says something")))
    for number, flags in ((1, DRAINED), (2, DRAINED | COMPACTED | PURGED)):
        write(store, AmendRecord(LOG, Lsn(number), nodes([4, 5]), flags=flags, wave=3))
    assert [(copy.flags, copy.body) for copy in held(store)] == [
        (DRAINED | COMPACTED, b"marks"),
        (DRAINED, b"says something"),
    ]


def test_amending_or_deleting_a_record_that_does_not_exist_changes_nothing(store: LogStore) -> None:
    write(store, *put(record(1)))
    write(store, AmendRecord(LOG, Lsn(2), OURS, 0, 1), DeleteRecords(LOG, Lsn(2), Lsn(9)))
    assert held(store) == [record(1)]


def test_deleting_a_range_removes_its_start_and_keeps_its_end(store: LogStore) -> None:
    write(store, *put(*map(record, range(1, 7))))
    write(store, DeleteRecords(LOG, Lsn(2), Lsn(5)))
    assert lsns(store) == [1, 5, 6]


def test_logs_do_not_see_each_other(store: LogStore) -> None:
    write(store, *put(record(1)), *put(record(1, b"other"), log=OTHER_LOG))
    write(store, TrimLog(LOG, Lsn(9)), PutState(LOG, "seal", b"3"))
    assert held(store, OTHER_LOG) == [record(1, b"other")]
    assert (store.trim_end(OTHER_LOG), store.states(OTHER_LOG).get("seal")) == (0, None)


def test_a_state_is_what_was_last_put_under_its_name(store: LogStore) -> None:
    write(store, PutState(LOG, "seal", b"1"), PutState(LOG, "release", b""), PutState(LOG, "seal", b"2"))
    assert [store.states(LOG).get(name) for name in ("seal", "release", "other")] == [b"2", b"", None]


def test_all_states_of_a_log_can_be_asked_for_at_once(store: LogStore) -> None:
    write(
        store, PutState(LOG, "seal", b"1"), PutState(LOG, "release", b"2"), PutState(OTHER_LOG, "seal", b"3")
    )
    assert store.states(LOG) == {"seal": b"1", "release": b"2"}


def test_the_newest_records_are_the_last_of_every_epoch_newest_first(store: LogStore) -> None:
    places = [Lsn.of(epoch, esn) for epoch, esn in ((0, 3), (1, 1), (1, 7), (4, 2))]
    write(store, *put(*map(record, places)))
    assert [item.lsn for item in store.newest(LOG)] == [Lsn.of(4, 2), Lsn.of(1, 7), Lsn.of(0, 3)]
    write(store, TrimLog(LOG, Lsn.of(1, 8)))
    assert [item.lsn for item in store.newest(LOG)] == [Lsn.of(4, 2)]
    assert store.newest(OTHER_LOG) == []


def test_a_log_is_listed_once_it_has_a_record_a_state_or_a_trim_point(
    store: LogStore,
) -> None:
    write(store, *put(record(1), log=LogId(3)), PutState(LogId(1), "seal", b""), TrimLog(LogId(2), Lsn(5)))
    store.tail(LogId(9))
    scanned(store, read(log=LogId(9)))
    store.find_time(LogId(9), 5)
    assert store.logs() == (1, 2, 3)


def test_a_trim_removes_what_is_below_its_end_and_never_moves_back(store: LogStore) -> None:
    write(store, *put(*map(record, range(1, 6))))
    write(store, TrimLog(LOG, Lsn(4)), TrimLog(LOG, Lsn(2)))
    assert (lsns(store), store.trim_end(LOG), store.tail(LOG)) == ([4, 5], 4, 5)


def test_a_record_below_the_trim_point_is_accepted_and_dropped(store: LogStore) -> None:
    write(store, TrimLog(LOG, Lsn(5)))
    write(store, *put(record(4), record(5)))
    assert lsns(store) == [5]


def test_trimming_a_bridge_trims_the_rest_of_its_epoch(store: LogStore) -> None:
    """S15"""
    write(store, *put(record(Lsn.of(2, 3)), record(Lsn.of(2, 4), b"", flags=BRIDGE), record(Lsn.of(3, 1))))
    write(store, TrimLog(LOG, Lsn.of(2, 4)))
    assert store.trim_end(LOG) == Lsn.of(2, 4)
    write(store, TrimLog(LOG, Lsn.of(2, 5)))
    assert store.trim_end(LOG) == epoch_start(3)
    assert lsns(store) == [Lsn.of(3, 1)]


def test_a_read_that_starts_after_the_bridge_of_its_epoch_says_so(store: LogStore) -> None:
    """S15"""
    write(store, *put(record(Lsn.of(2, 4), b"", flags=BRIDGE)))
    starts = [Lsn.of(2, 4), Lsn.of(2, 5), Lsn.of(3, 1)]
    assert [scanned(store, read(start)).is_behind_bridge for start in starts] == [False, True, False]
    write(store, *put(record(Lsn.of(2, 4), b"a record after all")))
    assert not scanned(store, read(Lsn.of(2, 5))).is_behind_bridge
    write(store, *put(record(Lsn.of(3, 4), b"", flags=BRIDGE)))
    assert scanned(store, read(Lsn.of(3, 5))).is_behind_bridge
    write(store, DeleteRecords(LOG, Lsn.of(3, 4), Lsn.of(3, 5)))
    assert not scanned(store, read(Lsn.of(3, 5))).is_behind_bridge


def test_a_scan_stops_before_the_record_that_does_not_fit_but_takes_a_first_one_of_any_size(
    store: LogStore,
) -> None:
    write(store, *put(record(1, bytes(1000)), record(2, bytes(10)), record(3, bytes(10))))
    result = scanned(store, read(bytes_max=1))
    assert ([item.lsn for item in held(store)], result.items) == ([1, 2, 3], (record(1, bytes(1000)),))
    assert (result.next, result.end) == (2, ReadEnd.BYTES)
    result = scanned(store, read(2, bytes_max=2 * (10 + RECORD_HEADER_BYTES)))
    assert (len(result.items), result.end) == (2, ReadEnd.LIMIT)


def test_a_scan_sends_only_what_the_filter_ships(store: LogStore) -> None:
    write(store, *put(record(1), record(2, copyset=THEIRS), record(3, copyset=THEIRS, flags=HOLE), record(4)))
    result = scanned(store, read(mode=ReadMode.SCD))
    assert [item.lsn for item in result.items if not isinstance(item, FilteredOut)] == [1, 3, 4]


def test_a_scan_looks_ahead_to_the_next_record_even_if_another_node_sends_it(store: LogStore) -> None:
    write(store, *put(record(1), record(50, copyset=THEIRS)))
    assert scanned(store, read(1, 10, gap_end=100, mode=ReadMode.SCD)).next == 50
    assert scanned(store, read(1, 10, gap_end=30, mode=ReadMode.SCD)).next == 30


def test_records_of_another_time_become_filtered_out_ranges(store: LogStore) -> None:
    write(store, *put(*map(record, (1, 2, 3, 4)), record(5, b"", flags=HOLE)))
    result = scanned(store, read(time_range=TimeRange(300, 400)))
    expected = (
        FilteredOut(Lsn(1), Lsn(3)),
        record(3),
        FilteredOut(Lsn(4), Lsn(5)),
        record(5, b"", flags=HOLE),
    )
    assert result.items == expected


def test_records_that_other_nodes_send_are_not_reported_as_filtered_out(store: LogStore) -> None:
    write(store, *put(record(1), record(2, copyset=THEIRS), record(3)))
    result = scanned(store, read(mode=ReadMode.SCD, time_range=TimeRange(0, 1)))
    assert result.items == (FilteredOut(Lsn(1), Lsn(2)), FilteredOut(Lsn(3), Lsn(4)))


def test_headers_only_leaves_bodies_out(store: LogStore) -> None:
    write(store, *put(record(1, b"not wanted"), record(2, bytes(500))))
    item, _ = scanned(store, read(headers_only=True, bytes_max=2 * RECORD_HEADER_BYTES)).items
    assert not isinstance(item, FilteredOut)
    assert (item.lsn, item.body, item.byte_end) == (1, b"", 10)


def test_a_region_that_may_have_lost_records_is_reported_until_it_is_cleared(store: LogStore) -> None:
    write(store, *put(record(1), record(20)))
    mark_under_replicated(store, LOG, LsnRange(Lsn(5), Lsn(10)))
    assert scanned(store, read(1, 3, gap_end=100)) == RecordsRead(3, (record(1),), Lsn(5), ReadEnd.LIMIT)
    assert scanned(store, read(6, 7, gap_end=100)) == RecordsRead(3, (), Lsn(10), ReadEnd.LIMIT, True)
    spans = ((1, 5), (1, 6), (9, 11), (10, 11))
    assert [scanned(store, read(*span)).under_replicated for span in spans] == [False, True, True, False]
    mark_under_replicated(store, LOG)
    assert not scanned(store, read(6, 7)).under_replicated


def test_find_time_finds_the_last_record_that_is_older(store: LogStore) -> None:
    write(store, *put(*map(record, (2, 4, 6))))  # at 200, 400 and 600 ms
    assert [store.find_time(LOG, time) for time in (0, 400, 401, 601)] == [0, 2, 4, 6]
    write(store, TrimLog(LOG, Lsn(4)))
    assert store.find_time(LOG, 0) == 3
    assert store.find_time(OTHER_LOG, 0) == 0


def test_a_record_is_found_by_the_counters_of_the_log(store: LogStore) -> None:
    assert store.find_record(LOG, Lsn(1)) is None
    far = Lsn.of(2, 1)
    late = type(record(1))(far, 900, OURS, b"12345", entries=3, entry_end=9, byte_end=13)
    write(store, *put(record(2), record(3), late))  # entries 3, 4 | 5, 6 | 7, 8, 9

    def found(start: int, entries: int | None = None, body_bytes: int | None = None) -> Lsn | None:
        answer = store.find_record(LOG, Lsn(start), entries=entries, body_bytes=body_bytes)
        return None if answer is None else answer.lsn

    assert [found(start) for start in (1, 2, 3, 4, far + 1)] == [2, 2, 3, far, None]
    assert [found(1, entries) for entries in (0, 3, 4, 5, 6, 8, 9)] == [2, 2, 3, 3, far, far, None]
    assert [found(3, entries) for entries in (0, 3, 9)] == [3, 3, None]
    assert [found(1, body_bytes=size) for size in (0, 7, 8, 12, 13)] == [2, 2, 3, far, None]
    assert found(1, entries=6, body_bytes=8) == 3
    assert store.find_record(LOG, far) == CountedRecord(
        lsn=far, timestamp_ms=900, entry_start=6, entry_end=9, byte_start=8, byte_end=13
    )
    write(store, TrimLog(LOG, Lsn(3)))
    assert [found(1), found(1, entries=0)] == [3, 3]


def test_the_body_of_a_bridge_is_not_counted(store: LogStore) -> None:
    flags = int(RecordFlags.HOLE | RecordFlags.BRIDGE | RecordFlags.BY_RECOVERY)
    write(store, *put(type(record(1))(Lsn.of(3, 1), 900, OURS, b"a table of 13", flags=flags)))
    assert store.find_record(LOG, Lsn(1)) == CountedRecord(
        lsn=Lsn.of(3, 1), timestamp_ms=900, entry_start=0, entry_end=0, byte_start=0, byte_end=0
    )


def test_size_is_a_difference_of_counters(store: LogStore) -> None:
    write(store, *put(*map(record, (2, 3, 9))))  # 4 bytes for every ESN
    assert [store.size(LOG, Lsn(1), Lsn(end)) for end in (2, 3, 4, 100)] == [0, 4, 8, 32]
    write(store, TrimLog(LOG, Lsn(3)))
    assert store.size(LOG, Lsn(1), Lsn(4)) == 4
    assert store.size(LOG, Lsn(2), Lsn(1)) == 0


def test_reclaiming_comes_to_an_end_and_changes_no_answer(store: LogStore) -> None:
    write(store, *put(*map(record, range(1, 50))))
    write(store, TrimLog(LOG, Lsn(40)))
    while store.reclaim():
        pass
    assert (lsns(store), store.trim_end(LOG)) == (list(range(40, 50)), 40)


def test_stats_count_logs_and_what_can_be_read(store: LogStore) -> None:
    write(store, *put(record(1, bytes(500))), *put(record(1, bytes(500)), log=OTHER_LOG))
    stats = store.stats()
    assert stats.logs == 2
    assert stats.live_bytes >= 1000
