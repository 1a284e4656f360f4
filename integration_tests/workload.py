"""Writers and readers that run while a cluster is being broken, and what must be true afterwards.

A writer appends numbered payloads, one batch after the other, and notes what became of each: it was
acknowledged at an LSN, or its outcome is unknown. A follower reads along from the beginning. `verify`
then reads everything again with a client of its own and holds both readers to the promises.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from integration_tests.cluster import PATIENCE_MS, Cluster
from logdevice.client.arrow_batches import RecordsBatch
from logdevice.client.blocking import Client
from logdevice.errors import OutcomeUnknownError, UnavailableError
from logdevice.types import LSN_OLDEST, Gap, GapType, Lsn

BATCH = 3  # payloads of one append
END = b"the end"


@dataclass
class Writer:
    """Appends until it is stopped. What was refused for the moment is offered again."""

    client: Client
    log: str
    name: str = "w"
    acknowledged: dict[bytes, Lsn] = field(default_factory=dict)
    unknown: set[bytes] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_stopped: bool = False
    _problem: Exception | None = None

    def run(self) -> None:
        try:
            number = 0
            while not self._is_stopped:
                self._append([f"{self.name}{number + index:07d}".encode() for index in range(BATCH)])
                number += BATCH
            self._append([END])
        except Exception as problem:
            self._problem = problem
        finally:
            with self._changed:
                self._is_stopped = True
                self._changed.notify_all()

    def stop(self) -> None:
        self._is_stopped = True

    def wait_for(self, batches: int) -> None:
        """Until so many more batches have been acknowledged."""
        with self._changed:
            wanted = len(self.acknowledged) + batches * BATCH
            done = self._changed.wait_for(
                lambda: self._is_stopped or len(self.acknowledged) >= wanted, PATIENCE_MS / 1000
            )
            assert done, f"only {len(self.acknowledged)} of {wanted} records were acknowledged in time"
        self.check()

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _append(self, payloads: list[bytes]) -> None:
        while True:
            try:
                lsn = self.client.append_many(self.log, payloads)
            except OutcomeUnknownError:
                self.unknown.update(payloads)
                if payloads != [END]:
                    return
                payloads = [END + b" indeed"]  # there must be one that is certainly there
            except UnavailableError:
                continue  # nothing was changed
            else:
                with self._changed:
                    self.acknowledged |= dict.fromkeys(payloads, lsn)
                    self._changed.notify_all()
                return


@dataclass
class Reading:
    """What a reader was given, in order."""

    entries: list[tuple[Lsn, int, bytes]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    position: Lsn = LSN_OLDEST

    def note(self, item: RecordsBatch | Gap) -> None:
        assert item.start == self.position, f"{item.start} follows {self.position}"
        self.position = item.end
        if isinstance(item, RecordsBatch):
            self.entries += [(entry.lsn, entry.batch_offset, entry.payload) for entry in item.entries()]
        elif self.gaps and (self.gaps[-1].type, self.gaps[-1].end) == (item.type, item.start):
            # How a stretch of nothing is cut into pieces is nobody's promise.
            self.gaps[-1] = Gap(item.type, self.gaps[-1].start, item.end)
        else:
            self.gaps.append(item)

    @property
    def has_ended(self) -> bool:
        return bool(self.entries) and self.entries[-1][2].startswith(END)


@dataclass
class Follower:
    """Reads along, from the beginning to the writer's last word."""

    client: Client
    log: str
    reading: Reading = field(default_factory=Reading)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _problem: Exception | None = None

    def run(self) -> None:
        try:
            with self.client.read(self.log, LSN_OLDEST, follow=True) as reader:
                for item in reader:
                    with self._changed:
                        self.reading.note(item)
                        self._changed.notify_all()
                    if self.reading.has_ended:
                        return
        except Exception as problem:
            self._problem = problem

    def wait_for(self, lsn: Lsn) -> None:
        """Until the record there has been read."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._problem is not None or self.reading.position > lsn, PATIENCE_MS / 1000
            )
        self.check()
        assert done, f"{lsn} was acknowledged, and the reader is still at {self.reading.position}"

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem


@dataclass
class Work:
    """A log that is being written and read."""

    writer: Writer
    follower: Follower

    def goes_on(self, batches: int) -> None:
        """Until so many more batches have been acknowledged, and read, whatever is broken now."""
        self.writer.wait_for(batches)
        self.follower.wait_for(max(self.writer.acknowledged.copy().values()))


@contextmanager
def working(cluster: Cluster, log: str) -> Iterator[Work]:
    """A new log that is written and read while the block runs; afterwards the promises are checked."""
    with cluster.client() as writing, cluster.client() as following:
        # A copyset for every record, so that every node matters.
        writing.create_log(log, {"sticky_copyset_bytes_max": 0})
        work = Work(Writer(writing, log), Follower(following, log))
        sides: tuple[Writer | Follower, ...] = (work.writer, work.follower)
        threads = [threading.Thread(target=side.run, daemon=True) for side in sides]
        for thread in threads:
            thread.start()
        work.goes_on(5)
        yield work
        work.writer.stop()
        for thread, side in zip(threads, sides, strict=True):
            thread.join(PATIENCE_MS / 1000)
            side.check()
            assert not thread.is_alive(), f"the {type(side).__name__.lower()} of {log} hangs"
    verify(cluster, log, work.writer, work.follower.reading)


def verify(cluster: Cluster, log: str, writer: Writer, *others: Reading) -> None:
    """Every acknowledged record once and in order, nothing invented, nothing called lost; all agree."""
    reading = read_all(cluster, log)
    payloads = [payload for _, _, payload in reading.entries]
    positions = [(lsn, offset) for lsn, offset, _ in reading.entries]
    assert positions == sorted(set(positions)), "out of order, or twice"
    found = {payload: lsn for lsn, _, payload in reading.entries}
    missing = writer.acknowledged.items() - found.items()
    assert not missing, f"acknowledged and not where they should be: {sorted(missing)[:5]}"
    twice = [payload for payload, count in Counter(payloads).items() if count > 1]
    assert not twice, f"there more than once: {twice[:5]}"
    invented = found.keys() - writer.acknowledged.keys() - writer.unknown
    assert not invented, f"nobody appended these: {sorted(invented)[:5]}"
    assert payloads == sorted(payloads, key=lambda payload: (payload.startswith(END), payload))
    assert [gap for gap in reading.gaps if gap.type is GapType.DATALOSS] == []
    for other in others:
        common = min(reading.position, other.position)
        assert [e for e in reading.entries if e[0] < common] == other.entries
        assert [gap for gap in reading.gaps if gap.end <= common] == other.gaps


def read_all(cluster: Cluster, log: str) -> Reading:
    """Everything that is in the log now, by a client of its own."""
    reading = Reading()
    with cluster.client() as client, client.read(log, LSN_OLDEST) as reader:
        for item in reader:
            reading.note(item)
    return reading
