"""What the machines of the read path cost per LSN, and the share of each part.

One reader in steady single-copy delivery reads from five storage nodes with stores in memory, without a
network: only protocol/ is timed. Run it by `make bench-protocol`. The total is the CPU time of all calls into
protocol/. The shares come from a second run of the same work under a profiler, whose own total is not
reported, because a profiler slows calls down.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import sys
import time
from collections import deque
from pathlib import Path

from logdevice.protocol.io import Answered, Tell
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.messages.read import (
    EpochMetadataIs,
    GapNotice,
    GetEpochMetadata,
    ReadMode,
    Records,
    Start,
    Started,
    ToReader,
)
from logdevice.protocol.read_stream import events
from logdevice.protocol.read_stream.stream import ClientReadStream
from logdevice.protocol.server_stream import stream as server
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.settings import NodeReadSettings, ReadStreamSettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    MetadataSource,
    NodeId,
    Record,
    Replication,
    Scope,
    nodes,
)

LOG = LogId(1)
NODES = nodes(range(5))
COPIES = 3
STICKY_BLOCK = 64
TARGET_US = 20.0


class Bench:
    """One reader and five nodes. Every call into protocol/ is timed."""

    def __init__(self, lsns: int, body: bytes) -> None:
        self.end = Lsn.of(1, lsns + 1)
        self.stores = _filled_stores(lsns, body)
        self.servers = {
            node: server.ServerReadStream(
                node,
                NodeReadSettings(),
                dict.fromkeys(NODES, Location()),
                released_end=self.end,
                trim_end=Lsn(0),
            )
            for node in NODES
        }
        self.client = ClientReadStream(
            events.ReadRequest(log=LOG, start=Lsn.of(1, 1), end=self.end),
            events.ReadConfig(nodes=dict.fromkeys(NODES, Location())),
            ReadStreamSettings(),
            random.Random(0),
        )
        self.seconds = {"reader": 0.0, "nodes": 0.0}
        self.messages = self.delivered = 0
        self._began = time.monotonic()
        self._queue: deque[tuple[NodeId | None, object]] = deque()

    def run(self) -> None:
        started = time.thread_time()
        effects = self.client.start(0)
        self.seconds["reader"] += time.thread_time() - started
        self._perform_reader(effects)
        while self._queue:
            node, event = self._queue.popleft()
            if node is None:
                self._feed_reader(event)
            else:
                self._feed_node(node, event)
        assert self.delivered == self.end.esn - 1, f"{self.delivered} of {self.end.esn - 1} LSNs arrived"

    def _feed_reader(self, event: object) -> None:
        now_ms = self._now_ms()
        started = time.thread_time()
        effects = self.client.handle(event, now_ms)  # type: ignore[arg-type]
        self.seconds["reader"] += time.thread_time() - started
        self._perform_reader(effects)

    def _perform_reader(self, effects: list[events.Effect]) -> None:
        for effect in effects:
            match effect:
                case events.SendStart() | Tell():
                    self._queue.append((effect.node, effect.message))
                case GetEpochMetadata():
                    metadata = EpochMetadata(Epoch(1), NODES, Replication.of({Scope.NODE: COPIES}))
                    found = EpochMetadataIs(effect.epoch, metadata, Epoch(1), MetadataSource.BOUNDED)
                    self._queue.append((None, found))
                case events.Deliver():
                    self.delivered += len(effect.items)
                    last = effect.items[-1]
                    assert isinstance(last, Record), f"a healthy log has no gap: {last}"
                    self._queue.append((None, events.Consumed(last.lsn.next)))
                case _:
                    pass

    def _now_ms(self) -> int:
        return int((time.monotonic() - self._began) * 1000)

    def _feed_node(self, node: NodeId, event: object) -> None:
        now_ms = self._now_ms()
        started = time.thread_time()
        effects = self.servers[node].handle(event, now_ms)  # type: ignore[arg-type]
        self.seconds["nodes"] += time.thread_time() - started
        for effect in effects:
            match effect:
                case StoreRead():
                    self._queue.append((node, self.stores[node].scan(effect)))
                case server.EndServerStream():
                    pass
                case _:
                    self._deliver_to_reader(node, effect)

    def _deliver_to_reader(self, node: NodeId, sent: ToReader) -> None:
        self.messages += 1
        match sent:
            case Records() as records:
                self._queue.append((None, Answered(node, records)))
                size = sum(record.size for record in records.records)
                self._queue.append((node, server.MessageSent(size)))
            case GapNotice() as notice:
                self._queue.append((None, Answered(node, notice)))
            case Started() as started:
                self._queue.append((None, Answered(node, started)))


def _filled_stores(lsns: int, body: bytes) -> dict[NodeId, MemoryLogStore]:
    stores = {node: MemoryLogStore() for node in NODES}
    rng = random.Random(0)
    copyset: tuple[NodeId, ...] = ()
    for esn in range(1, lsns + 1):
        if esn % STICKY_BLOCK == 1:
            copyset = tuple(rng.sample(NODES, COPIES))
        record = Record(Lsn.of(1, esn), esn, copyset, body)
        for node in copyset:
            stores[node].put(LOG, record)
    return stores


def filter_seconds(bench: Bench) -> float:
    """CPU seconds for deciding on every stored copy, a part of protocol/ that the store calls."""
    start = Start(
        log=LOG, filter_version=1, start=Lsn.of(1, 1), end=bench.end, window_end=bench.end, window_bytes=1,
        mode=ReadMode.SCD, replication=COPIES, shuffle_seed=0,
    )  # fmt: skip
    seconds = 0.0
    for node, store in bench.stores.items():
        filter_ = CopyFilter(node, start, {})
        copysets = [record.copyset for lsn in store.lsns(LOG) if (record := store.get(LOG, lsn))]
        started = time.thread_time()
        for copyset in copysets:
            filter_.ships(copyset, 0)
        seconds += time.thread_time() - started
    return seconds


def shares(lsns: int, body: bytes) -> list[tuple[str, float]]:
    """The share of each file of protocol/, measured by a profiler."""
    bench, profile = Bench(lsns, body), cProfile.Profile()
    profile.runcall(bench.run)
    own: dict[str, float] = {}
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = vars(pstats.Stats(profile))[
        "stats"
    ]
    for (file, _, _), (_, _, own_seconds, _, _) in stats.items():
        path = Path(file)
        if "protocol" in path.parts:
            name = str(Path(*path.parts[path.parts.index("protocol") + 1 :]))
            own[name] = own.get(name, 0.0) + own_seconds
    total = sum(own.values())
    return [(name, own[name] / total) for name in sorted(own, key=lambda name: -own[name])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lsns", type=int, default=50_000, help="how many LSNs to read")
    lsns = parser.parse_args().lsns
    worst = 0.0
    for title, body in (("1 KiB bodies", b"x" * 1024), ("256 KiB bodies", b"x" * (256 * 1024))):
        best = min((_measure(lsns, body) for _ in range(3)), key=lambda costs: sum(costs.values()))
        total = sum(best.values())
        worst = max(worst, total)
        print(f"\n{title}: {total:.1f} µs per LSN in protocol/ (best of 3 runs of {lsns:,} LSNs)")
        for part, cost in best.items():
            print(f"  {part:<24}{cost:7.2f} µs  {cost / total:4.0%}")
        print("  by file (profiled):")
        for name, share in shares(min(lsns, 20_000), body)[:12]:
            print(f"    {name:<36}{share:4.0%}")
    print(f"\nworst case {worst:.1f} µs per LSN, {worst / TARGET_US:.0%} of the budget of {TARGET_US:.0f} µs")
    sys.exit(worst > TARGET_US)


def _measure(lsns: int, body: bytes) -> dict[str, float]:
    bench = Bench(lsns, body)
    bench.run()
    microseconds = 1e6 / lsns
    return {
        "reader": bench.seconds["reader"] * microseconds,
        "five nodes": bench.seconds["nodes"] * microseconds,
        "copy filter (3 copies)": filter_seconds(bench) * microseconds,
    }


if __name__ == "__main__":
    main()
