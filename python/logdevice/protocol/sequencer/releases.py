"""Releases: telling every storage node up to where a log may be read.

A new release goes out at once, or shortly after the one before it, so that a busy log does not send one
per record. The last release is repeated: RELEASE has no answer, and a node that missed it would keep its
readers waiting. This is a part of the sequencer and shares its lifetime. Rules U14 and U15 are
in docs/protocol/write_path.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.write import Release
from logdevice.protocol.sequencer.events import Effect, SequencerContext
from logdevice.types import Lsn, NodeId


class Releases:
    def __init__(self, context: SequencerContext, effects: Effects[Effect]) -> None:
        self.end = Lsn(0)  # everything below may be delivered
        self._context = context
        self._effects = effects
        self._nodes: tuple[NodeId, ...] = ()
        self._sent_end = Lsn(0)
        self._sent_ms: int | None = None

    def set_nodes(self, nodes: Iterable[NodeId]) -> None:
        """All nodes of current and historical nodesets."""
        self._nodes = tuple(sorted(set(nodes)))

    def advance(self, end: Lsn) -> None:
        self.end = max(self.end, end)

    def deadline_ms(self) -> int | None:
        """When the next release must be sent; None if there is nothing to release."""
        settings = self._context.settings
        if self.end == 0:
            return None
        if self._sent_ms is None:
            return 0
        is_new = self.end > self._sent_end
        return self._sent_ms + (settings.release_interval_ms if is_new else settings.release_repeat_ms)

    def send_due(self) -> None:
        deadline_ms = self.deadline_ms()
        if deadline_ms is not None and self._effects.now_ms >= deadline_ms:
            self._sent_ms = self._effects.now_ms
            self._sent_end = self.end
            for node in self._nodes:
                self.tell(node)

    def tell(self, node: NodeId) -> None:
        """Sends the last release to a node: to every node when due, and to one that has just connected."""
        if self.end and node in self._nodes:
            self._effects.tell(node, Release(self._context.log, self.end, self._context.me))

    def stop(self) -> None:
        """Another sequencer releases from now on."""
        self.end = Lsn(0)
