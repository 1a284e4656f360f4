"""Makes things go wrong in a cluster, at the rates a seed has drawn, and ends each trouble after a while."""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.sequencer_events import ActivationAsked
from logdevice.simulation.whole.cluster import Cluster
from logdevice.simulation.whole.node import Node

TICK_MS = 50


class Injector:
    """The bad luck of one run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        faults = cluster.plan.faults
        self._kinds: list[tuple[float, Callable[[], None]]] = [
            (faults.crashes_per_s, lambda: self._crash(1, 800)),
            (faults.absences_per_s, lambda: self._crash(1_000, 4_000)),
            (faults.blackouts_per_s, self._black_out),
            (faults.beheadings_per_s, self._behead),
            (faults.hangs_per_s, self._hang),
            (faults.partitions_per_s, self._partition),
            (faults.slow_nodes_per_s, self._slow_down),
            (faults.full_disks_per_s, self._fill_disk),
            (faults.broken_disks_per_s, self._break_disk),
            (faults.owner_moves_per_s, self._move_owner),
            (faults.activations_per_s, self._activate),
            (faults.nodesets_per_s, self._change_nodeset),
            (faults.store_outages_per_s, self._silence_epoch_store),
            (faults.trims_per_s, self._trim),
        ]

    def tick(self) -> None:
        if self._world.now_ms >= self._cluster.plan.fault_phase_ms:
            return
        for rate_per_s, strike in self._kinds:
            if self._world.chance(rate_per_s * TICK_MS / 1000):
                strike()
        for writer in self._cluster.writers:
            if self._world.chance(writer.plan.strikes_per_s * TICK_MS / 1000):
                writer.strike()
        self._revive()
        self._world.after(TICK_MS, self.tick)

    def heal(self) -> None:
        """No more bad luck: everybody is up, connected and well-behaved from now on."""
        self._world.say("world", "heals")
        self._cluster.be_good()
        for node in self._cluster.nodes.values():
            node.wake()
            if node.storage.disk.is_broken:
                node.crash()
            self._cluster.boot(node)

    def _pick(self, fits: Callable[[Node], bool]) -> Node | None:
        candidates = [node for node in self._cluster.nodes.values() if fits(node)]
        return self._world.rng.choice(candidates) if candidates else None

    def _later(self, low_ms: int, high_ms: int, action: Callable[[], object]) -> None:
        self._world.after(self._world.between(low_ms, high_ms), action)

    def _revive(self) -> None:
        """Crashes come from inside as well; nobody but this one brings those processes back."""
        for node in self._cluster.nodes.values():
            if not node.process.is_up and self._world.chance(0.05):
                self._cluster.boot(node)

    def _crash(self, low_ms: int, high_ms: int) -> None:
        if node := self._pick(lambda node: node.process.is_up):
            node.crash()
            self._later(low_ms, high_ms, lambda: self._cluster.boot(node))

    def _black_out(self) -> None:
        for node in self._cluster.nodes.values():
            if self._world.chance(0.7):
                node.crash()

    def _behead(self) -> None:
        """Records in flight end up on few nodes, on one, or on none: recovery has something to decide."""
        node = self._pick(lambda node: node.is_fine and node.sequencing.machine.current is not None)
        if node is None:
            return
        for other in self._cluster.nodes.values():
            if other is not node and self._world.chance(0.6):
                self._cut(str(node.id), str(other.id), 300)
        for client in self._cluster.clients:
            client.append_some(node.id)
        for writer in self._cluster.writers:
            writer.append_some()

        def die() -> None:
            if self._world.now_ms < self._cluster.plan.fault_phase_ms:
                node.crash()

        self._later(5, 100, die)

    def _cut(self, one: str, other: str, duration_ms: int) -> None:
        self._world.say("network", f"cuts {one} from {other}")
        self._cluster.links.cut(one, other)
        self._world.after(duration_ms, lambda: self._cluster.links.join(one, other))

    def _hang(self) -> None:
        if node := self._pick(lambda node: node.is_fine):
            node.hang()
            self._later(20, 2_000, node.wake)

    def _partition(self) -> None:
        names = [str(node) for node in self._cluster.nodes]
        names += [client.process.name for client in self._cluster.clients]
        names += [name for writer in self._cluster.writers for name in writer.names]
        one, other = self._world.rng.sample(names, 2)
        self._cut(one, other, self._world.between(50, 2_000))

    def _slow_down(self) -> None:
        links = self._cluster.links
        if node := self._pick(lambda node: str(node.id) not in links.extra_ms):
            links.extra_ms[str(node.id)] = self._world.between(20, 300)
            self._later(200, 3_000, lambda: links.extra_ms.pop(str(node.id), None))

    def _fill_disk(self) -> None:
        if node := self._pick(lambda node: not node.storage.disk.is_full):
            disk = node.storage.disk
            self._world.say(str(node.id), "has a full disk")
            disk.is_full = True

            def empty() -> None:
                disk.is_full = False

            self._later(50, 2_000, empty)

    def _break_disk(self) -> None:
        if node := self._pick(lambda node: node.process.is_up and not node.storage.disk.is_broken):
            self._world.say(str(node.id), "has a broken disk")
            node.storage.disk.is_broken = True

            def stop() -> None:
                if node.storage.disk.is_broken:
                    node.crash()

            self._later(20, 1_000, stop)

    def _move_owner(self) -> None:
        self._cluster.move_owner(self._world.rng.choice(list(self._cluster.nodes)))

    def _activate(self) -> None:
        if node := self._pick(lambda node: node.process.is_up):
            self._world.say(str(node.id), "is asked to activate")
            process = node.process
            process.do(process.life, lambda: node.sequencing.feed(ActivationAsked()))

    def _change_nodeset(self) -> None:
        self._cluster.change_nodeset(self._world.rng.choice(self._cluster.plan.nodesets))

    def _silence_epoch_store(self) -> None:
        metadata = self._cluster.metadata
        self._world.say("epochs", "are out of reach")
        metadata.is_store_out = True

        def come_back() -> None:
            metadata.is_store_out = False

        self._later(50, 1_000, come_back)

    def _trim(self) -> None:
        ledger = self._cluster.ledger
        lsns = sorted(lsn for lsn in ledger.contents if lsn < ledger.released_end)
        if lsns:
            self._cluster.trim(lsns[self._world.rng.randrange((len(lsns) + 1) // 2)])
