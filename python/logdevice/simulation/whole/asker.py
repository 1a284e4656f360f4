"""A client that asks where the log ends, of any node, also of one that was replaced and does not know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from logdevice.protocol.write_messages import AppendStatus, GetTail, Tail
from logdevice.simulation.whole import checkers
from logdevice.simulation.whole.ledger import Ledger
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.process import Process
from logdevice.simulation.workload import LOG
from logdevice.types import NodeId

PAUSE_MS_MAX: Final = 200


class Asker:
    def __init__(
        self,
        process: Process,
        *,
        nodes: list[NodeId],
        links: Links,
        ledger: Ledger,
        complain: Callable[[str, str | None], None],
    ) -> None:
        self._process = process
        self._nodes = nodes
        self._links = links
        self._ledger = ledger
        self._complain = complain

    def start(self) -> None:
        """Asks now, and again after every pause."""
        world = self._process.world
        before = max(self._ledger.promised, default=None)

        def answered(tail: object) -> None:
            assert isinstance(tail, Tail)
            if tail.status is AppendStatus.OK and before is not None:
                self._complain(self._process.name, checkers.early_tail(tail.end.lsn, before))

        self._links.ask(self._process, world.rng.choice(self._nodes), GetTail(LOG), answered)
        self._process.later(world.between(1, PAUSE_MS_MAX), self.start)
