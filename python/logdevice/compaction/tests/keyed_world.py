"""A simulated keyed log on a few nodes, with random faults: the real compaction over real log states.

Nodes are LogState machines over stores in memory. They crash in the middle of a drop, miss orders, lose their
disks, and get their copies back from other nodes, dropped ones or not. Readers take any copy of each record.
The world stands in for the client of a Compaction, and may do anything before it answers a request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

from logdevice.client.client import AsyncClient
from logdevice.client.read.arrow_batches import assemble
from logdevice.compaction.run import Compaction
from logdevice.protocol.dropped_record import COMPACTED, Marks, marks_of
from logdevice.protocol.io import Asked, Reply
from logdevice.protocol.log_state.events import Answer, Effect, Event
from logdevice.protocol.log_state.state import LogState
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist
from logdevice.protocol.log_state.stored_log import StoredLog, restore
from logdevice.protocol.messages.rebuilding import AmendCopies, PutCopies
from logdevice.protocol.messages.write import Drop, Dropped, DropStatus, Release, Store
from logdevice.records.batch import Codec, decode, encode, from_entries
from logdevice.settings import BatchSettings, RecoverySettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.types import Gap, GapType, LogId, Lsn, NodeId, Record, epoch_start

LOG = LogId(1)
NODES, COPIES, KEYS = 4, 2, 5
BATCH = BatchSettings()
STEP_BYTES = 200  # of headers: a drop of more than three records takes several steps


class SimNode:
    def __init__(self, number: int, rng: random.Random) -> None:
        self.id = NodeId(number)
        self.store = MemoryLogStore()
        self.is_up = True
        self._rng = rng
        self._requests = 0
        self.machine = self._machine(StoredLog())

    def _machine(self, stored: StoredLog) -> LogState:
        return LogState(LOG, self.id, RecoverySettings(digest_bytes_max=STEP_BYTES), stored)

    def restart(self, released_end: Lsn) -> None:
        self.is_up = True
        self.machine = self._machine(restore(self.store.states(LOG), self.store.newest(LOG), Lsn(0)))
        self.ask(Release(LOG, released_end, NodeId(0)))

    def ask(self, request: Any, *, crash_share: float = 0.0) -> Any:
        """The answer; None if the node crashed before it gave one."""
        self._requests += 1
        waiting: list[Event] = [Asked(self._requests, request)]
        answer = None
        while waiting:
            for effect in self.machine.handle(waiting.pop(0), 0):
                if self._rng.random() < crash_share:
                    self.is_up = False
                    return None
                found = self._perform(effect)
                answer = found.answer if isinstance(found, Reply) else answer
                waiting += [] if found is None or isinstance(found, Reply) else [found]
        return answer

    def _perform(self, effect: Effect) -> Event | Reply[Answer] | None:
        match effect:
            case Persist():
                return self.store.write([effect])[0]
            case StoreRead():
                return self.store.scan(effect)
            case Reply():
                return effect
        return None


@dataclass
class Consumer:
    """A reader that brings its view of the log up to date from time to time."""

    next: Lsn = epoch_start(1)
    purged_seen: Lsn = Lsn(0)
    view: dict[bytes, bytes] = field(default_factory=dict)
    has_begun: bool = False
    rebuilds: int = 0


class KeyedWorld:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.nodes = [SimNode(number, self.rng) for number in range(1, NODES + 1)]
        self.next = epoch_start(1)
        self.purged_end = Lsn(0)
        self.events = 0
        self.lacking: SimNode | None = None  # the node that lost its disk and was not restored yet
        self.truth: dict[bytes, bytes] = {}
        self.purged = 0
        self.is_calm = False
        self.consumer = Consumer()

    async def run(self, steps: int) -> None:
        for _ in range(steps):
            act = self.rng.choice(
                [self.append, self.append, self.crash, self.lose_disk, self.restore_all, self.move]
            )
            act()
            if self.rng.random() < 0.15:
                await self.compact()
            if self.rng.random() < 0.2:
                self.follow()
            self.check()

    # ---- what happens to the log and its nodes ----------------------------------------------------

    def append(self) -> None:
        able = [node for node in self.nodes if node.is_up and node is not self.lacking]
        if len(able) < COPIES:
            return
        keys = [b"%d" % self.rng.randrange(KEYS) for _ in range(self.rng.choice([1, 1, 2]))]
        values = [b"" if self.rng.random() < 0.4 else b"at %d" % self.next for _ in keys]
        body = encode(from_entries(keys, values), Codec.NONE, BATCH)
        holders = self.rng.sample(able, COPIES)
        copyset = tuple(node.id for node in holders)
        record = Record(self.next, int(self.next.esn), copyset, body, wave=1, entries=len(keys))
        for node in holders:
            node.ask(Store(log=LOG, record=record, good_end=self.next, sequencer=NodeId(0)))
        self.next = self.next.next
        for node in self.nodes:
            if node.is_up:
                node.ask(Release(LOG, self.next, NodeId(0)))
        for key, value in zip(keys, values, strict=True):
            self.truth.pop(key, None)
            if value:
                self.truth[key] = value

    def crash(self) -> None:
        """Crashes a node, or restarts all; every record always has a copy that can be read."""
        up = [node for node in self.nodes if node.is_up]
        if len(up) == NODES and self.lacking is None:
            self.rng.choice(up).is_up = False
        else:
            self.wake()

    def wake(self) -> None:
        for node in self.nodes:
            if not node.is_up:
                node.restart(self.next)

    def lose_disk(self) -> None:
        self.wake()
        if self.lacking is None:
            self.lacking = self.rng.choice(self.nodes)
            self.lacking.store.wipe()
            self.lacking.restart(self.next)
            self.events += 1

    def restore_all(self) -> None:
        """The node that lost its disk gets its copies from every other holder, as they have them."""
        self.wake()
        lost = self.lacking
        if lost is None:
            return
        for node in self.nodes:
            for lsn in () if node is lost else node.store.lsns(LOG):
                record = node.store.get(LOG, lsn)
                assert record is not None
                if lost.id in record.copyset:
                    lost.ask(PutCopies(LOG, 1, (record,)))
        self.lacking = None
        self.events += 1

    def move(self) -> None:
        """Moves a copy of a record to another node, which also amends the header of the other copy."""
        if self.lacking is not None or not all(node.is_up for node in self.nodes):
            return
        giver = self.rng.choice(self.nodes)
        lsns = giver.store.lsns(LOG)
        record = giver.store.get(LOG, self.rng.choice(lsns)) if lsns else None
        if record is None or giver.id not in record.copyset:
            return
        other = next(node for node in record.copyset if node != giver.id)
        taker = self.rng.choice([node for node in self.nodes if node.id not in record.copyset])
        moved = replace(record, copyset=(other, taker.id))
        taker.ask(PutCopies(LOG, 1, (moved,)))
        self.node(other).ask(AmendCopies(LOG, 1, (replace(moved, body=b""),)))
        giver.store.remove(LOG, record.lsn)
        self.events += 1

    def node(self, number: NodeId) -> SimNode:
        return next(node for node in self.nodes if node.id == number)

    # ---- readers ----------------------------------------------------------------------------------

    def copies(self, lsn: Lsn) -> list[Record]:
        found = [node.store.get(LOG, lsn) for node in self.nodes if node.is_up]
        return [record for record in found if record is not None]

    def read(self, start: Lsn, end: Lsn) -> list[Record | Gap]:
        """Any copy of each record; a gap for a copy that was dropped."""
        items: list[Record | Gap] = []
        for lsn in map(Lsn, range(start, end)):
            copies = self.copies(lsn)
            assert copies, f"{lsn} is lost"
            record = self.rng.choice(copies)
            dropped = record.flags & COMPACTED
            items.append(Gap(GapType.COMPACTED, lsn, lsn.next, *marks_of(record)) if dropped else record)
        return items

    def check(self) -> None:
        """A new consumer ends with the newest entry of every key and nothing else, from any of the copies."""
        view: dict[bytes, bytes] = {}
        for item in self.read(epoch_start(1), self.next):
            if isinstance(item, Record):
                _apply(view, item)
        assert view == self.truth

    def follow(self) -> None:
        """K28: a consumer that continues ends with the same view, or has to start over, and then does."""
        consumer = self.consumer
        if not consumer.has_begun:
            consumer.has_begun, consumer.purged_seen = True, self.purged_end
        for item in self.read(consumer.next, self.next):
            if isinstance(item, Record):
                _apply(consumer.view, item)
            elif item.purged_end > consumer.purged_seen:
                self.consumer = Consumer(rebuilds=consumer.rebuilds + 1)
                self.follow()
                return
        consumer.next = self.next
        assert consumer.view == self.truth

    # ---- the client of a compaction ---------------------------------------------------------------

    async def compact(self) -> None:
        # In half of the compactions nothing fails: otherwise deletions would hardly ever be removed.
        self.is_calm = self.rng.random() < 0.5
        if self.is_calm:
            self.restore_all()
        client = cast(AsyncClient, _Client(self))
        before_ms = self.next.esn - self.rng.choice([0, 5])
        run = Compaction(client, "/log", before_ms=before_ms, keys_max=100)
        self.purged += (await run.run()).purged

    def disturb(self) -> None:
        if not self.is_calm and self.rng.random() < 0.2:
            self.rng.choice([self.append, self.crash, self.lose_disk, self.restore_all, self.move])()


class _Client:
    def __init__(self, world: KeyedWorld) -> None:
        self._world = world

    async def tail(self, log: str) -> Any:
        return SimpleNamespace(next=self._world.next, released_end=self._world.next, byte_end=0)

    async def node_states(self) -> Any:
        nodes = () if self._world.lacking is None else (self._world.lacking.id,)
        return SimpleNamespace(version=self._world.events, nodes=nodes)

    @asynccontextmanager
    async def read(self, log: str, start: str, end: Lsn) -> AsyncIterator[Any]:
        self._world.disturb()
        items = self._world.read(epoch_start(1), Lsn(max(end, epoch_start(1))))

        async def assembled() -> AsyncIterator[Any]:
            for item in items:
                for part in [item] if isinstance(item, Gap) else assemble([item], BATCH).batches:
                    yield part

        yield assembled()

    async def drop(self, log: str, ranges: Sequence[tuple[Lsn, Lsn]], marks: Marks) -> tuple[NodeId, ...]:
        world = self._world
        order = Drop(log=LOG, ranges=tuple(ranges), superseded_end=marks[0], purged_end=marks[1])
        confirmed = set()
        for node in world.rng.sample(world.nodes, NODES):
            others_up = all(other.is_up for other in world.nodes if other is not node)
            may_crash = others_up and world.lacking is None and not world.is_calm
            crash_share = 0.1 if may_crash else 0.0
            is_told = node.is_up and (world.is_calm or world.rng.random() < 0.9)
            if is_told and node.ask(order, crash_share=crash_share) == Dropped(DropStatus.OK):
                confirmed.add(node.id)
            world.disturb()
        return tuple(node.id for node in world.nodes if node.id not in confirmed)

    async def purged_end(self, log: str) -> Lsn:
        return self._world.purged_end

    async def note_purge(self, log: str, end: Lsn) -> Lsn:
        self._world.purged_end = max(self._world.purged_end, end)
        return self._world.purged_end


def played(seed: int) -> KeyedWorld:
    """One run. AssertionError if a promise is broken."""
    world = KeyedWorld(seed)
    asyncio.run(world.run(60))
    return world


def simulate_keyed(seed: int) -> SimpleNamespace:
    """For `make mutants`."""
    played(seed)
    return SimpleNamespace(violations=())


def _apply(view: dict[bytes, bytes], record: Record) -> None:
    for key, value in _entries(bytes(record.body)):
        view.pop(key, None)
        if value:
            view[key] = value


@lru_cache(maxsize=4096)
def _entries(body: bytes) -> list[tuple[bytes, bytes]]:
    columns = decode(body, BATCH)
    return list(zip(columns["key"].to_pylist(), columns["payload"].to_pylist(), strict=True))
