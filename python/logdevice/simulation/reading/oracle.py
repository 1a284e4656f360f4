"""The oracle sequencer: writes one log in LSN order, closes epochs, releases what is stored.

It knows which nodes can store and waits while there are too few, as a real sequencer would. Every record that
it releases is on enough nodes at that moment; what faults do to the copies later is recorded in the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from logdevice.simulation.reading.plan import EpochPlan, Plan
from logdevice.simulation.reading.truth import SlotKind
from logdevice.types import (
    Epoch,
    Location,
    LogId,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    Scope,
)

if TYPE_CHECKING:
    from logdevice.simulation.reading.cluster import OracleCluster

LOG = LogId(1)
_HOLE = int(RecordFlags.HOLE | RecordFlags.BY_RECOVERY)
_FLAGS = {SlotKind.DATA: 0, SlotKind.HOLE: _HOLE, SlotKind.BRIDGE: _HOLE | int(RecordFlags.BRIDGE)}


class OracleSequencer:
    """Writes the planned epochs in bursts, then further records on demand."""

    def __init__(self, cluster: OracleCluster) -> None:
        plan = cluster.plan
        self._cluster, self._plan = cluster, plan
        self._world, self._truth = cluster.world, cluster.truth
        self._queue = _script(plan)
        self._copyset: tuple[NodeId, ...] = ()
        self._sticky_left = 0
        self._esn: dict[Epoch, int] = {}
        self.is_done = False
        bursts = max(1, len(self._queue) // max(1, plan.burst_max // 2))
        self._pause_ms = max(1, plan.fault_phase_ms // bursts)

    def step(self) -> None:
        """Writes one burst and plans the next."""
        for _ in range(self._world.between(1, self._plan.burst_max)):
            if not self._queue or not self._write_next():
                break
        end = self._truth.last_end
        self._world.after(self._world.between(0, 20), lambda: self._cluster.release(end))
        self.is_done = not self._queue
        if not self.is_done:
            self._world.after(self._world.between(1, 2 * self._pause_ms), self.step)

    def write_more(self, records: int) -> Lsn:
        """Writes further plain records to the last epoch; returns the LSN of the first."""
        last = self._plan.epochs[-1]
        first = Lsn.of(last.epoch, self._esn.get(last.epoch, 0) + 1)
        self._queue = [(last, last.epoch, SlotKind.DATA)] * records
        self._sticky_left = 0
        while self._queue and self._write_next(extras=False):
            pass
        assert not self._queue, "the cluster has healed, but too few nodes can store"
        self._cluster.release(self._truth.last_end)
        return first

    def _write_next(self, *, extras: bool = True) -> bool:
        plan, epoch, kind = self._queue[0]
        if self._truth.epoch != epoch or not self._truth.metadata:
            self._cluster.activate(plan)
            self._truth.epoch = epoch
            self._sticky_left = 0
        copyset = self._next_copyset(plan, extras=extras)
        if copyset is None:
            return False
        self._queue.pop(0)
        esn = self._esn[epoch] = self._esn.get(epoch, 0) + 1
        body = f"{epoch}/{esn} ".encode() * self._world.between(1, 6) if kind is SlotKind.DATA else b""
        record = Record(Lsn.of(epoch, esn), self._world.now_ms, copyset, body, _FLAGS[kind])
        copies = plan.metadata.replication.copies
        # Extras rarely store the record, so readers must not rely on them.
        holders = copyset[:copies] + tuple(node for node in copyset[copies:] if self._world.chance(0.3))
        self._truth.write(kind, record, holders, self._world.now_ms)
        for node in holders:
            self._cluster.nodes[node].store.put(LOG, record)
        return True

    def _next_copyset(self, plan: EpochPlan, *, extras: bool) -> tuple[NodeId, ...] | None:
        usable = all(self._cluster.may_store(node) for node in self._copyset)
        if self._sticky_left > 0 and usable:
            self._sticky_left -= 1
            return self._copyset
        copyset = self._draw_copyset(plan, plan.extras if extras else 0)
        if copyset is not None:
            self._copyset, self._sticky_left = copyset, plan.sticky - 1
        return copyset

    def _draw_copyset(self, plan: EpochPlan, extras: int) -> tuple[NodeId, ...] | None:
        metadata = plan.metadata
        usable = [node for node in metadata.nodeset if self._cluster.may_store(node)]
        copies = metadata.replication.copies
        for _ in range(20):
            if len(usable) < copies:
                return None
            drawn = tuple(self._world.rng.sample(usable, copies))
            if satisfies(drawn, metadata.replication, self._plan.locations):
                others = [node for node in usable if node not in drawn]
                return drawn + tuple(others[:extras])
        return None


def satisfies(
    copyset: Collection[NodeId], replication: Replication, locations: Mapping[NodeId, Location]
) -> bool:
    """Whether copies on these nodes satisfy the replication in every scope."""
    return all(_spread(copyset, scope, locations) >= count for scope, count in replication.factors)


def is_f_majority(
    voters: Collection[NodeId],
    nodes: Collection[NodeId],
    replication: Replication,
    locations: Mapping[NodeId, Location],
) -> bool:
    """Whether the voters intersect every possible copyset, because the other nodes are too few for one."""
    others = [node for node in nodes if node not in voters]
    return not others or any(
        _spread(others, scope, locations) < count <= _spread(nodes, scope, locations)
        for scope, count in replication.factors
    )


def _spread(nodes: Collection[NodeId], scope: Scope, locations: Mapping[NodeId, Location]) -> int:
    return len({locations[node].domain(scope) if scope else node for node in nodes})


def _script(plan: Plan) -> list[tuple[EpochPlan, Epoch, SlotKind]]:
    """Every LSN that will be written, in order."""
    script: list[tuple[EpochPlan, Epoch, SlotKind]] = []
    first = plan.epochs[0]
    if first.metadata.bridges:
        script += [(first, Epoch(number), SlotKind.BRIDGE) for number in range(1, first.epoch)]
    for index, epoch in enumerate(plan.epochs):
        script += [(epoch, epoch.epoch, SlotKind.DATA)] * epoch.records
        if index == len(plan.epochs) - 1:
            break
        script += [(epoch, epoch.epoch, SlotKind.HOLE)] * epoch.holes
        if epoch.metadata.bridges:
            # Recovery closes every epoch with a bridge, also those in which nothing was written.
            numbers = range(epoch.epoch, plan.epochs[index + 1].epoch)
            script += [(epoch, Epoch(number), SlotKind.BRIDGE) for number in numbers]
    return script
