"""The world of scenarios about one Appender: `append` sends a wave, nodes answer, time passes.

After every command the copyset is drawn with an x above each node that holds a copy now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logdevice.protocol.messages.write import StoreStatus
from logdevice.protocol.sequencer.tests.storing import Storing
from logdevice.protocol.tests.scenario import Arguments, Handler
from logdevice.types import NodeId


class AppendWorld:
    def __init__(self) -> None:
        self._storing = Storing([0])
        self._copyset: tuple[NodeId, ...] = ()
        self._holders: set[NodeId] = set()

    def commands(self) -> Mapping[str, Handler]:
        return {"append": self.append, "stored": self.stored, "refused": self.refused, "wait": self.wait}

    def append(self, arguments: Arguments) -> Iterator[str]:
        self._copyset = arguments.nodes("copyset")
        self._holders.clear()
        self._storing = Storing(
            [int(node) for node in self._copyset],
            replication=arguments.text("replication"),
            extras=arguments.integer("extras", 0),
            sync_leaders=arguments.integer("sync_leaders", 1),
            leaders=arguments.integer("leaders", 3),
        )
        yield from self._told(self._storing.started)

    def stored(self, arguments: Arguments) -> Iterator[str]:
        node = arguments.node("node")
        self._holders.add(node)
        yield from self._told(self._storing.answer(node))

    def refused(self, arguments: Arguments) -> Iterator[str]:
        status = StoreStatus[arguments.text("status")]
        yield from self._told(self._storing.answer(arguments.node("node"), status))

    def wait(self, arguments: Arguments) -> Iterator[str]:
        yield from self._told(self._storing.wait(arguments.integer("ms")))

    def _told(self, effects: list[str]) -> Iterator[str]:
        for effect in effects:
            if effect.startswith("delete"):
                self._holders.discard(NodeId(int(effect.removeprefix("delete N"))))
        yield ", ".join(effects) or "nothing"
        yield "  ".join("x" if node in self._holders else "." for node in self._copyset)
        yield "  ".join(str(int(node)) for node in self._copyset)
