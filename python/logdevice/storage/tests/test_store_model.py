"""The store on disk and the store in memory answer alike after the same changes.

The changes are random, from a seed. Among them are reopening, a lost index, and crashes: the files as they
are at some moment, with the last write torn anywhere. Afterwards every write that was answered is there, a
write that was torn is not, and nothing else has changed.
"""

from __future__ import annotations

import contextlib
import copy
import random
import shutil
from pathlib import Path

import pytest

from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    Persist,
    PutRecord,
    PutState,
    StoreWrite,
    TrimLog,
)
from logdevice.protocol.messages.read import ReadMode
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.storage.tests.model_store import ModelStore
from logdevice.storage.tests.storing import HastyDisk, mark_under_replicated, read, segment_paths, small_store
from logdevice.types import LogId, Lsn, LsnRange, NodeId, Record, RecordFlags, TimeRange, WriterTag, nodes

LOGS = (LogId(1), LogId(2), LogId(1 << 40))
ESNS = 40
HOLE, BRIDGE = int(RecordFlags.HOLE), int(RecordFlags.HOLE | RecordFlags.BRIDGE)


class Pair:
    """Both stores, and the random generator of the test."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.dice = random.Random(seed)
        self.root = directory
        self.lives = 0
        self.directory = directory / "0"
        self.disk: SegmentLogStore = small_store(self.directory, HastyDisk())
        self.memory = ModelStore()
        self.write_id = 0

    def step(self) -> None:
        actions = (self.write, self.write, self.write, self.mark, self.reclaim)
        rare = (self.reopen, self.crash, self.crash_in_write, self.lose_index)
        self.dice.choice(rare if self.dice.random() < 0.07 else actions)()

    def write(self) -> None:
        batches = [self.batch() for _ in range(self.dice.randint(1, 3))]
        assert self.disk.write(batches) == self.memory.write(batches)

    def mark(self) -> None:
        if self.dice.random() < 0.1:
            log, (start, end) = self.log(), sorted([self.lsn(), self.lsn()])
            known = self.disk._index.known(log).under_replicated
            mark_under_replicated(self.disk, log, *known, LsnRange(start, end))
            self.memory.mark_under_replicated(log, LsnRange(start, end))

    def reclaim(self) -> None:
        self.disk.reclaim()

    def reopen(self) -> None:
        self.disk.close()
        self.disk = small_store(self.directory, HastyDisk())

    def lose_index(self) -> None:
        self.disk.close()
        shutil.rmtree(self.directory / "index")
        self.disk = small_store(self.directory, HastyDisk())

    def crash(self) -> None:
        self.continue_with(self.copied())

    def crash_in_write(self) -> None:
        before = copy.deepcopy(self.memory)
        known = self.disk.stats()
        newest_before = segment_paths(self.directory)[-1:]
        self.write()
        newest = segment_paths(self.directory)[-1]
        if [newest] != newest_before:
            return  # the write began a new segment, so where it starts is not known here
        size = self.disk.stats().bytes_written - known.bytes_written
        end = self.disk._segments.position.offset
        copied = self.copied()
        self.tear(segment_paths(copied)[-1], end - size, end)
        self.memory = before
        self.continue_with(copied)

    def tear(self, path: Path, start: int, end: int) -> None:
        """Cuts the last write short, or zeroes some of its sectors, as if they had not reached the disk."""
        with path.open("r+b") as file:
            if self.dice.random() < 0.5:
                file.truncate(self.dice.randrange(start, max(start + 1, end - 512)))
                return
            sectors = range(start, end, 512)
            for offset in {self.dice.choice(sectors), *self.dice.sample(sectors, len(sectors) // 2)}:
                file.seek(offset)
                file.write(bytes(512))

    def copied(self) -> Path:
        self.lives += 1
        target = self.root / str(self.lives)
        for path in sorted(self.directory.rglob("*")):
            # RocksDB removes files in the background, also while they are copied here.
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                copied = target / path.relative_to(self.directory)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copied)
        return target

    def continue_with(self, directory: Path) -> None:
        self.disk.close()
        shutil.rmtree(self.directory)
        self.directory = directory
        self.disk = small_store(directory, HastyDisk())

    def batch(self) -> Persist:
        self.write_id += 1
        return Persist(self.write_id, tuple(self.change() for _ in range(self.dice.randint(1, 5))))

    def change(self) -> StoreWrite:
        log, kind = self.log(), self.dice.random()
        if kind < 0.75:
            return PutRecord(log, self.record())
        if kind < 0.85:
            return AmendRecord(
                log, self.lsn(), self.copyset(), self.dice.choice([0, 8]), self.dice.randint(0, 9)
            )
        if kind < 0.90:
            start = self.lsn()
            return DeleteRecords(log, start, Lsn(start + self.dice.randint(0, 5)))
        if kind < 0.96:
            return PutState(log, self.dice.choice(["seal", "release"]), self.dice.randbytes(9))
        return TrimLog(log, Lsn.of(self.dice.randint(1, 2), self.dice.randint(1, ESNS // 2)))

    def record(self) -> Record:
        lsn = self.lsn()
        flags = self.dice.choice([0] * 30 + [HOLE, BRIDGE])
        body = b"" if flags else self.dice.randbytes(self.dice.choice([0, 10, 300, 3000]))
        tag = WriterTag(5, 1, lsn.esn, 2, lsn.esn - 1) if self.dice.random() < 0.3 else None
        count = lsn.epoch * ESNS + lsn.esn
        return Record(lsn, count * 100, self.copyset(), body, flags, 1, 2, count * 2, count * 4000, tag)

    def log(self) -> LogId:
        return self.dice.choice(LOGS)

    def lsn(self) -> Lsn:
        return Lsn.of(self.dice.randint(1, 3), self.dice.randint(1, ESNS))

    def copyset(self) -> tuple[NodeId, ...]:
        return self.dice.choice([nodes([1, 2]), nodes([2, 1]), nodes([2, 3]), nodes([3, 1, 4])])

    def compare(self) -> None:
        assert self.disk.logs() == self.memory.logs()
        for log in LOGS:
            self.compare_log(log)

    def compare_log(self, log: LogId) -> None:
        disk, memory = self.disk, self.memory
        assert disk.trim_end(log) == memory.trim_end(log)
        assert disk.tail(log) == memory.tail(log)
        assert disk.states(log) == memory.states(log)
        assert [item.lsn for item in disk.newest(log)] == [item.lsn for item in memory.newest(log)]
        assert disk.scan(read(log=log)) == memory.scan(read(log=log))
        start, end, gap_end = sorted([self.lsn(), self.lsn(), self.lsn()])
        request = read(
            start, end, log=log, gap_end=gap_end, bytes_max=self.dice.choice([1, 500, 5000]),
            mode=self.dice.choice([ReadMode.SCD, ReadMode.ALL_SEND_ALL]),
            time_range=self.dice.choice([None, TimeRange(6000, 9000)]), headers_only=self.dice.random() < 0.2,
        )  # fmt: skip
        assert disk.scan(request) == memory.scan(request), request
        time_ms, count = self.dice.randint(0, 20_000), self.dice.randint(0, 60)
        assert disk.find_time(log, time_ms) == memory.find_time(log, time_ms)
        for limits in ({}, {"entries": count}, {"entries": count, "body_bytes": count * 99}):
            assert disk.find_record(log, start, **limits) == memory.find_record(log, start, **limits)
        assert disk.size(log, start, end) == memory.size(log, start, end)


@pytest.mark.parametrize("seed", range(6))
def test_the_store_on_disk_answers_like_the_store_in_memory(seed: int, tmp_path: Path) -> None:
    pair = Pair(seed, tmp_path)
    for _ in range(100):
        pair.step()
        pair.compare()
    pair.disk.close()
