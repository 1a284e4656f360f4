"""A small cluster for tests of the write path: processes with a disk each, links between them, one log.

Everything is drawn from a seed: latencies, lost connections, crashes, what of a disk's queue survives a
crash. A link keeps its order until it breaks; then both ends learn of it, sooner or later. The world
notes every answer to a client and everything that may be read, and complains when that changes.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from logdevice.protocol.copysets import Candidates
from logdevice.protocol.epoch_state import (
    EpochState,
)
from logdevice.protocol.sequencer_events import (
    AppendReceived,
    ConfigChanged,
    NodeConnected,
    OwnerChanged,
    SequencerConfig,
)
from logdevice.protocol.tests.write_process import LOG, Process
from logdevice.protocol.write_messages import Append, Appended, AppendStatus, Trim
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
)

_HOLE = int(RecordFlags.HOLE)


class World:
    def __init__(
        self,
        seed: int,
        *,
        nodes: int = 5,
        replication: str = "3",
        extras: int = 0,
        leaders: int | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.loss = 0.0  # chance that a link breaks with a message
        self.metadata = EpochMetadata(
            Epoch(1), tuple(NodeId(n) for n in range(nodes)), Replication.parse(replication)
        )
        self.epochs: tuple[int, EpochState] = (
            1,
            EpochState(epoch=Epoch(0), last_clean=Epoch(0), metadata=self.metadata),
        )
        self.history: list[EpochMetadata] = []
        self.config = SequencerConfig(
            nodeset=self.metadata.nodeset,
            replication=self.metadata.replication,
            candidates=Candidates(locations=dict.fromkeys(self.metadata.nodeset, Location())),
            extras=extras,
            leaders=leaders,
        )
        self.answers: dict[int, Appended] = {}
        self.appended: dict[int, bytes] = {}
        self.trim_end = Lsn(0)
        self.readable: dict[Lsn, bytes | None] = {}  # what a reader may have seen; None: a hole
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._counter = 0
        self._link_ms: dict[tuple[NodeId, NodeId], int] = {}
        self.processes = {node: Process(self, node) for node in self.metadata.nodeset}
        for process in self.processes.values():
            process.boot()

    def after(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._counter += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._counter, call))

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, call = heapq.heappop(self._queue)
            call()
        self.now_ms = end_ms

    def link(self, source: NodeId, target: NodeId, call: Callable[[], None]) -> None:
        """Delivers in order on each link."""
        at_ms = max(self._link_ms.get((source, target), 0), self.now_ms + self.rng.randint(1, 4))
        self._link_ms[source, target] = at_ms
        self.after(at_ms - self.now_ms, call)

    def breaks(self) -> bool:
        return self.rng.random() < self.loss

    def append(self, node: int, body: bytes) -> int:
        request_id = len(self.appended) + 1
        self.appended[request_id] = body
        process = self.processes[NodeId(node)]
        if process.is_up:
            process.feed_sequencer(AppendReceived(request_id, Append(log=LOG, body=body, entries=1)))
        return request_id

    def crash(self, node: int) -> None:
        self.processes[NodeId(node)].crash()

    def restart(self, node: int) -> None:
        process = self.processes[NodeId(node)]
        if not process.is_up:
            process.boot()
            for other in self.processes.values():
                if other.is_up:
                    other.feed_sequencer(NodeConnected(process.node))

    def own(self, node: int) -> None:
        """Everybody now believes that this node should be the sequencer."""
        for process in self.processes.values():
            if process.is_up:
                process.feed_sequencer(OwnerChanged(NodeId(node)))

    def configure(self, config: SequencerConfig) -> None:
        """Everybody hears of a new configuration at once."""
        self.config = config
        for process in self.processes.values():
            if process.is_up:
                process.feed_sequencer(ConfigChanged(config))

    def trim(self, end: Lsn) -> None:
        """Who is down does not hear of it, or hears of it later."""
        self.trim_end = max(self.trim_end, end)
        for process in self.processes.values():
            if process.is_up:
                process.request(process.node, Trim(LOG, end), lambda _: None, lambda: None)

    def note_readable(self, node: NodeId, end: Lsn) -> None:
        """I4: what one node may deliver, no other node ever contradicts."""
        store = self.processes[node].disk.store
        for lsn in store.lsns(LOG):
            record = store.get(LOG, lsn)
            if lsn < end and record is not None:
                content = None if record.flags & _HOLE else bytes(record.body)
                seen = self.readable.setdefault(lsn, content)
                assert seen == content, f"{lsn} on {node} is {content!r}, was {seen!r}"

    def acknowledged(self) -> dict[Lsn, bytes]:
        return {
            answer.lsn: self.appended[request_id]
            for request_id, answer in self.answers.items()
            if answer.status is AppendStatus.OK
        }

    def copies(self, lsn: Lsn) -> dict[NodeId, Record]:
        return {
            node: record
            for node, process in self.processes.items()
            if (record := process.disk.store.get(LOG, lsn)) is not None
        }
