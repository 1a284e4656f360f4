"""A node's disk: writes become durable one after the other, each after a while; a crash forgets the others.

What is in its store is durable. The machine learns a moment later that a write is durable, and the node may
crash in between. A full disk refuses copies and still takes small values. A broken disk refuses all writes
until the process is started again.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.log_state.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutRecord,
    StoreWrite,
)
from logdevice.simulation.reading.node import SimulatedNode

Tell = Callable[[Persisted | PersistFailed], None]


class SimDisk:
    """One queue of writes to the disk of a node. `written` is called for each write once it is durable."""

    def __init__(self, node: SimulatedNode, written: Callable[[StoreWrite], None]) -> None:
        self._node = node
        self._written = written
        self._durable_ms = 0  # when the last write in the queue is durable
        self._told_ms = 0

    def write(self, persist: Persist, tell: Tell) -> None:
        """Queues a write; `tell` gets its result. Writes are done in the order of the calls."""
        node, process, world = self._node, self._node.process, self._node.process.world
        delay_ms = world.between(0, world.faults.disk_ms_max)
        self._durable_ms = max(self._durable_ms, world.now_ms) + delay_ms
        life = process.life

        def make_durable() -> None:
            if process.life != life:
                return
            result = self._result(persist)
            if isinstance(result, Persisted):
                node.store.write([persist])
                for write in persist.writes:
                    self._written(write)
            if world.chance(world.faults.crash_at_write):
                node.crash()
                return
            self._told_ms = max(self._told_ms, world.now_ms + world.between(0, 2))
            world.at(self._told_ms, lambda: process.do(life, lambda: tell(result)))

        # A hung process does not stop its disk.
        world.at(self._durable_ms, make_durable)

    def _result(self, persist: Persist) -> Persisted | PersistFailed:
        if self._node.is_disk_broken:
            return PersistFailed(persist.write_id, PersistError.IO_ERROR)
        if self._node.is_disk_full and any(isinstance(write, PutRecord) for write in persist.writes):
            return PersistFailed(persist.write_id, PersistError.NO_SPACE)
        return Persisted(persist.write_id)
