"""A client that asks any node where the log ends, also a sequencer that was replaced without knowing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from logdevice.protocol.messages.write import AppendStatus, GetTail, Tail
from logdevice.simulation.cluster import checkers
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.oracle import LOG

if TYPE_CHECKING:
    from logdevice.simulation.cluster.cluster import WholeCluster

PAUSE_MS_MAX: Final = 200


class Asker:
    def __init__(self, cluster: WholeCluster) -> None:
        self._process = SimProcess("asker", cluster.network)
        self._cluster = cluster

    def start(self) -> None:
        """Asks now, and again after every pause."""
        cluster, world = self._cluster, self._cluster.world
        before = max(cluster.ledger.promised, default=None)

        def answered(tail: Tail) -> None:
            if tail.status is AppendStatus.OK and before is not None:
                cluster.witness.complain(self._process.name, checkers.early_tail(tail.end.lsn, before))

        cluster.network.ask(self._process, world.rng.choice(list(cluster.nodes)), GetTail(LOG), answered)
        self._process.later(world.between(1, PAUSE_MS_MAX), self.start)
