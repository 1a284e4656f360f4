"""What a node reads from its store after a crash: the states of a log, and the last record of each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logdevice.protocol.log_state.store_write import Persist, PutRecord, PutState, TrimLog
from logdevice.storage.log_store import LogStore
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.storage.tests.model_store import ModelStore
from logdevice.types import LogId, Lsn, NodeId, Record

LOG, OTHER = LogId(5), LogId(6)


@pytest.fixture(params=["memory", "segments"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LogStore]:
    made: LogStore = ModelStore() if request.param == "memory" else SegmentLogStore(tmp_path)
    yield made
    made.close()


def put(log: LogId, epoch: int, esn: int) -> PutRecord:
    record = Record(
        lsn=Lsn.of(epoch, esn), timestamp_ms=epoch, copyset=(NodeId(1),), body=b"x", entries=1, entry_end=esn
    )
    return PutRecord(log, record)


def test_the_newest_record_of_every_epoch_is_found_newest_epoch_first(store: LogStore) -> None:
    writes = (
        put(LOG, 1, 1),
        put(LOG, 1, 9),
        put(LOG, 4, 2),
        put(LOG, 4, 1),
        put(LOG, 7, 1),
        put(OTHER, 9, 1),
    )
    store.write([Persist(1, writes)])
    newest = store.newest(LOG)
    assert [record.lsn for record in newest] == [Lsn.of(7, 1), Lsn.of(4, 2), Lsn.of(1, 9)]
    assert [record.entry_end for record in newest] == [1, 2, 9]
    assert store.newest(LogId(77)) == []


def test_a_trimmed_record_is_not_the_newest_of_its_epoch(store: LogStore) -> None:
    store.write([Persist(1, (put(LOG, 1, 1), put(LOG, 4, 1), TrimLog(LOG, Lsn.of(4, 0))))])
    assert [record.lsn for record in store.newest(LOG)] == [Lsn.of(4, 1)]


def test_all_states_of_a_log_are_found_by_name(store: LogStore) -> None:
    writes = (PutState(LOG, "seal", b"1"), PutState(LOG, "recovered/7", b"2"), PutState(OTHER, "seal", b"3"))
    store.write([Persist(1, writes), Persist(2, (PutState(LOG, "seal", b"4"),))])
    assert store.states(LOG) == {"seal": b"4", "recovered/7": b"2"}
    assert store.states(LogId(77)) == {}
