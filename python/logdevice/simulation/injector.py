"""Makes things go wrong, at the rates that a seed has drawn, and ends each fault after a while.

It works only during the fault phase. Every fault has a planned end, so that the cluster heals some time after
the phase. This file has the faults of all clusters; families of worlds add their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from logdevice.simulation.faults import Faults
from logdevice.simulation.reading.node import SimulatedNode
from logdevice.simulation.reading.read_cluster import ReadCluster
from logdevice.simulation.world import Action

TICK_MS = 100


class Injector(ABC):
    """The faults of one run."""

    def __init__(self, cluster: ReadCluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._network = cluster.network
        faults = cluster.world.faults
        self._kinds: list[tuple[float, Action]] = [
            (faults.crashes_per_s, lambda: self._crash(1, 2_000)),
            (faults.hangs_per_s, self._hang),
            (faults.slow_nodes_per_s, self._slow_down),
            (faults.partitions_per_s, self._partition),
        ]

    def tick(self) -> None:
        if self._world.now_ms >= self._cluster.reading.fault_phase_ms:
            return
        for rate_per_s, strike in self._kinds:
            if self._world.chance(rate_per_s * TICK_MS / 1000):
                strike()
        self._world.after(TICK_MS, self.tick)

    def heal(self) -> None:
        """Ends all faults: from now on all processes run, are connected and behave."""
        self._world.say("world", "heals")
        self._world.faults = Faults(lag_ms_max=min(5, self._world.faults.lag_ms_max))
        self._network.heal()
        for node in self._cluster.nodes.values():
            node.process.wake()
            if node.is_disk_broken:
                node.crash()  # a disk that has failed is used again only after a restart
            self._bring_back(node)

    @abstractmethod
    def _bring_back(self, node: SimulatedNode) -> None:
        """Brings a node back, from a hang or a crash."""

    def _pick(self, fits: Callable[[SimulatedNode], bool]) -> SimulatedNode | None:
        candidates = [node for node in self._cluster.nodes.values() if fits(node)]
        return self._world.rng.choice(candidates) if candidates else None

    def _later(self, low_ms: int, high_ms: int, action: Action) -> None:
        self._world.after(self._world.between(low_ms, high_ms), action)

    def _crash(self, low_ms: int, high_ms: int) -> None:
        if node := self._pick(lambda node: node.process.is_up):
            node.crash()
            self._later(low_ms, high_ms, lambda: self._bring_back(node))

    def _hang(self) -> None:
        if node := self._pick(lambda node: node.process.is_fine):
            self._silence(node)

    def _silence(self, node: SimulatedNode) -> None:
        node.process.hang()
        self._later(20, 2_500, lambda: self._bring_back(node))

    def _slow_down(self) -> None:
        slow = self._network.extra_ms
        if node := self._pick(lambda node: node.process.name not in slow):
            name = node.process.name
            slow[name] = self._world.between(20, 400)
            node.process.say(f"gets slow, {slow[name]} ms a message")
            self._later(200, 4_000, lambda: slow.pop(name, None))

    def _partition(self) -> None:
        if askers := self._cluster.askers():
            node = self._world.rng.choice(list(self._cluster.nodes))
            self._cut(self._world.rng.choice(askers), str(node), self._world.between(50, 3_000))

    def _cut(self, one: str, other: str, duration_ms: int) -> None:
        self._world.say("network", f"cuts {one} from {other}")
        self._network.cut(one, other)
        self._world.after(duration_ms, lambda: self._network.join(one, other))
