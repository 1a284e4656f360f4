"""Releases: telling every storage node up to where a log may be read.

A part of the sequencer, and as old as it. A new release goes out at once, or shortly after the one
before it, so that a busy log does not send one per record. The last one is repeated: RELEASE has no
answer, and a node that missed it would keep its readers waiting. Rules U14 and U15.
"""

from __future__ import annotations

from collections.abc import Iterable

from logdevice.protocol.sequencer_events import SendRelease
from logdevice.protocol.write_messages import Release
from logdevice.types import LogId, Lsn, NodeId
from logdevice.write_settings import WriteSettings


class Releases:
    def __init__(self, log: LogId, me: NodeId, settings: WriteSettings) -> None:
        self.end = Lsn(0)  # everything below may be delivered
        self._log = log
        self._me = me
        self._settings = settings
        self._nodes: tuple[NodeId, ...] = ()
        self._sent_end = Lsn(0)
        self._sent_ms: int | None = None

    def set_nodes(self, nodes: Iterable[NodeId]) -> None:
        """All nodes of current and historical nodesets."""
        self._nodes = tuple(sorted(set(nodes)))

    def advance(self, end: Lsn) -> None:
        self.end = max(self.end, end)

    def deadline_ms(self) -> int | None:
        """When something is to be sent next."""
        if self.end == 0:
            return None
        if self._sent_ms is None:
            return 0
        interval_ms = (
            self._settings.release_interval_ms
            if self.end > self._sent_end
            else self._settings.release_repeat_ms
        )
        return self._sent_ms + interval_ms

    def due(self, now_ms: int) -> list[SendRelease]:
        deadline_ms = self.deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return []
        self._sent_ms = now_ms
        self._sent_end = self.end
        return [effect for node in self._nodes for effect in self.to(node)]

    def to(self, node: NodeId) -> list[SendRelease]:
        """What a node that has just come (back) needs to hear."""
        return (
            [SendRelease(node, Release(self._log, self.end, self._me))]
            if self.end and node in self._nodes
            else []
        )

    def stop(self) -> None:
        """Another sequencer releases from now on."""
        self.end = Lsn(0)
