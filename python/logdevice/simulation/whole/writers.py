"""The writers of a run: their lives, and who of them is alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logdevice.simulation.whole.plan import WriterPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.writer import Journal, WriterLife

if TYPE_CHECKING:
    from logdevice.simulation.whole.cluster import Cluster

RESTART_MS_MAX = 400


class Writer:
    """A name under which processes append, one after the other, or for a while two at once."""

    def __init__(self, number: int, plan: WriterPlan, cluster: Cluster) -> None:
        self.number, self.plan = number, plan
        self._cluster = cluster
        self._journal = Journal()
        self._lives: list[WriterLife] = []

    @property
    def is_done(self) -> bool:
        """The newest life has nothing left to do."""
        newest = self._lives[-1] if self._lives else None
        if newest is None or not newest.process.is_up:
            return False
        return newest.is_over or (newest.is_idle and self._journal.begun >= self.plan.appends)

    @property
    def names(self) -> list[str]:
        return [life.process.name for life in self._lives if life.process.is_up]

    def begin_life(self) -> None:
        cluster = self._cluster
        name = f"writer{self.number}.{self._journal.lives + 1}"
        life = WriterLife(
            self.number,
            self.plan,
            self._journal,
            Process(name, cluster.world, cluster.faults),
            nodes=list(cluster.nodes),
            owner=lambda: cluster.owner,
            links=cluster.links,
            ledger=cluster.ledger,
            complain=cluster.witness.complain,
        )
        self._lives.append(life)
        cluster.world.say(name, "begins")
        life.start()

    def append_some(self) -> None:
        """Several at once, to a sequencer in trouble."""
        newest = self._lives[-1]
        if newest.process.is_up:
            newest.append_some()

    def strike(self) -> None:
        """Dies, or is taken for dead and goes on beside its successor."""
        newest = self._lives[-1]
        if not newest.process.is_up:
            return
        world = self._cluster.world
        if self.plan.has_journal or world.chance(0.6):  # a journal is locked: nobody else gets it
            world.say(newest.process.name, "dies")
            newest.process.end_life()
            self._cluster.links.died(newest.process)
            world.after(world.between(1, RESTART_MS_MAX), self.begin_life)
        else:
            self.begin_life()

    def be_hasty(self) -> None:
        for life in self._lives:
            life.is_hasty = True
            life.process.faults = self._cluster.faults
