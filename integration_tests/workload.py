"""Writers and readers that run while a cluster is being broken, and the checks afterwards.

A writer has several hands. Each hand appends numbered payloads, one batch after the other, and notes the
result: acknowledged at an LSN, or outcome unknown. A follower reads the log from its beginning meanwhile.
`verify` then reads everything again with a new client, and checks the promises for both readers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from integration_tests.cluster import PATIENCE_MS, Cluster
from logdevice.client.blocking import Client
from logdevice.client.blocking_streams import BlockingReader
from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.errors import OutcomeUnknownError, UnavailableError
from logdevice.types import LSN_OLDEST, Gap, GapType, Lsn

BATCH = 3  # payloads of one append
PAUSE_S = 0.02  # of a hand between two appends, so that processes that start get a processor too
HANDS = "abcd"  # each has one append in flight; payloads begin with the letter of their hand
END = b"the end"


@dataclass
class Writer:
    """Appends until it is stopped. Appends that are refused for the moment are tried again."""

    client: Client
    log: str
    others: Sequence[Client] = ()  # with these, every hand may have its own client
    acknowledged: dict[bytes, Lsn] = field(default_factory=dict)
    unknown: set[bytes] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_stopped: bool = False
    _problem: Exception | None = None

    def run(self, hand: str) -> None:
        try:
            number = 0
            clients = (self.client, *self.others)
            client = clients[HANDS.index(hand) % len(clients)]
            while not self._is_stopped:
                self._append([f"{hand}{number + index:07d}".encode() for index in range(BATCH)], client)
                number += BATCH
                time.sleep(PAUSE_S)
        except Exception as problem:
            with self._changed:
                self._problem = problem
                self._is_stopped = True
                self._changed.notify_all()

    def stop(self) -> None:
        self._is_stopped = True

    def say_the_end(self) -> None:
        """Called when all hands have stopped."""
        self._append([END], self.client)

    def wait_for(self, batches: int) -> None:
        """Waits until this many more batches have been acknowledged."""
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

    def _append(self, payloads: list[bytes], client: Client) -> None:
        while True:
            try:
                lsn = client.append_many(self.log, payloads)
            except OutcomeUnknownError:
                self.unknown.update(payloads)
                if payloads != [END]:
                    return
                payloads = [END + b" indeed"]  # one append after the last must be certain to be in the log
            except UnavailableError:
                continue  # nothing was changed
            else:
                with self._changed:
                    self.acknowledged |= dict.fromkeys(payloads, lsn)
                    self._changed.notify_all()
                return


@dataclass
class Reading:
    """What a reader has delivered, in order."""

    entries: list[tuple[Lsn, int, bytes]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    position: Lsn = LSN_OLDEST

    def note(self, item: RecordsBatch | Gap) -> None:
        assert item.start == self.position, f"{item.start} follows {self.position}"
        self.position = item.end
        if isinstance(item, RecordsBatch):
            self.entries += [(entry.lsn, entry.batch_offset, entry.payload) for entry in item.entries()]
        elif self.gaps and (self.gaps[-1].type, self.gaps[-1].end) == (item.type, item.start):
            # No promise says how a gap is divided into pieces.
            self.gaps[-1] = Gap(item.type, self.gaps[-1].start, item.end)
        else:
            self.gaps.append(item)

    @property
    def has_ended(self) -> bool:
        return bool(self.entries) and self.entries[-1][2].startswith(END)


@dataclass
class Follower:
    """Reads the log from its beginning to the writer's last append, while it is written."""

    client: Client
    log: str
    reading: Reading = field(default_factory=Reading)
    _reader: BlockingReader | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _problem: Exception | None = None

    def run(self) -> None:
        try:
            with self.client.read(self.log, LSN_OLDEST, follow=True) as self._reader:
                for item in self._reader:
                    with self._changed:
                        self.reading.note(item)
                        self._changed.notify_all()
                    if self.reading.has_ended:
                        return
        except Exception as problem:
            self._problem = problem

    def wait_for(self, lsn: Lsn) -> None:
        """Waits until the record at this LSN has been read."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._problem is not None or self.reading.position > lsn, PATIENCE_MS / 1000
            )
        self.check()
        health = None if self._reader is None else self._reader.health()
        assert done, f"{lsn} was acknowledged, and the reader is still at {self.reading.position}: {health}"

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem


@dataclass
class Work:
    """A log that is being written and read."""

    writer: Writer
    follower: Follower

    def goes_on(self, batches: int) -> None:
        """Waits until this many more batches have been acknowledged and read, although nodes are broken."""
        self.writer.wait_for(batches)
        self.follower.wait_for(max(self.writer.acknowledged.copy().values()))

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Runs writer and readers while the block runs, and ends them in order after it."""
        hands = [threading.Thread(target=self.writer.run, args=(hand,), daemon=True) for hand in HANDS]
        following = threading.Thread(target=self.follower.run, daemon=True)
        for thread in (*hands, following):
            thread.start()
        yield
        self.writer.stop()
        _join(hands, "a hand of the writer")
        self.writer.check()
        self.writer.say_the_end()
        _join([following], "the follower")
        self.follower.check()


def _join(threads: Iterable[threading.Thread], name: str) -> None:
    for thread in threads:
        thread.join(PATIENCE_MS / 1000)
        assert not thread.is_alive(), f"{name} hangs"


@contextmanager
def working(
    cluster: Cluster, log: str, attributes: Mapping[str, int | str] | None = None, *, clients: int = 1
) -> Iterator[Work]:
    """A new log that is written and read while the block runs. Checks the promises afterwards."""
    with ExitStack() as stack:
        writing, following, *others = [stack.enter_context(cluster.client()) for _ in range(1 + clients)]
        # Every record has its own copyset, so that every node stores some records.
        writing.create_log(log, {"sticky_copyset_bytes_max": 0} | dict(attributes or {}))
        work = Work(Writer(writing, log, others), Follower(following, log))
        with work.begun():
            work.goes_on(5)
            yield work
    verify(cluster, log, work.writer, work.follower.reading)


def verify(cluster: Cluster, log: str, writer: Writer, *others: Reading) -> None:
    """Reads everything once more, and checks the promises for all readers."""
    reading = read_all(cluster, log)
    check(reading, writer.acknowledged, writer.unknown)
    for other in others:
        check_same(reading, other)


def check(reading: Reading, acknowledged: dict[bytes, Lsn], unknown: set[bytes]) -> None:
    """Checks that every acknowledged record was read once, in order and at its LSN, and that no record was
    invented or reported as lost.
    """
    payloads = [payload for _, _, payload in reading.entries]
    positions = [(lsn, offset) for lsn, offset, _ in reading.entries]
    assert positions == sorted(set(positions)), "positions do not increase"
    found = {payload: lsn for lsn, _, payload in reading.entries}
    missing = acknowledged.items() - found.items()
    assert not missing, f"acknowledged, but not in their place: {sorted(missing)[:5]}"
    twice = [payload for payload, count in Counter(payloads).items() if count > 1]
    assert not twice, f"there more than once: {twice[:5]}"
    invented = found.keys() - acknowledged.keys() - unknown
    assert not invented, f"these were never appended: {sorted(invented)[:5]}"
    by_hand = sorted(payloads, key=lambda payload: payload[:1])  # keeps the order within a hand
    assert by_hand == sorted(payloads), "not in the order of the appends"
    lost = [gap for gap in reading.gaps if gap.type is GapType.DATALOSS]
    assert not lost, f"reported as lost: {lost}"


def check_same(reading: Reading, other: Reading) -> None:
    """Checks that two readers agree about everything that both have read."""
    common = min(reading.position, other.position)
    for one, two in ((reading, other), (other, reading)):
        strangers = {entry for entry in one.entries if entry[0] < common} - set(two.entries)
        assert not strangers, f"only one reader got {sorted(strangers)[:5]}"
    assert [gap for gap in reading.gaps if gap.end <= common] == [
        gap for gap in other.gaps if gap.end <= common
    ]


def read_all(cluster: Cluster, log: str) -> Reading:
    """Reads everything that is in the log now, with a new client."""
    reading = Reading()
    with cluster.client() as client, client.read(log, LSN_OLDEST) as reader:
        try:
            while (item := reader.next(PATIENCE_MS)) is not None:
                reading.note(item)
        except TimeoutError:
            raise AssertionError(f"a reader of {log} stands still: {reader.health()}") from None
    return reading
