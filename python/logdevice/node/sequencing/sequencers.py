"""The sequencers of a node: one for every log of the directory, most of them inactive.

Keeps their hosts up to date with the directory and the membership. Lives as long as the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from logdevice.errors import OutcomeUnknownError, UnavailableError, UnknownLogError
from logdevice.node.context import NodeContext
from logdevice.node.sequencing.sequencer_host import SequencerHost
from logdevice.protocol.sequencer.events import NodeConnected, SequencerConfig
from logdevice.runtime.clock import wall_ms
from logdevice.settings import WriteSettings
from logdevice.types import LogId, NodeId


@dataclass(frozen=True, slots=True)
class SequencedLog:
    """What the directory says about a log, as its sequencer needs it."""

    config: SequencerConfig
    settings: WriteSettings
    owner: NodeId | None


class Sequencers:
    """The hosts of all sequencers of a node, by log."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._hosts: dict[LogId, SequencerHost] = {}
        self._is_stopping = False
        self._nudged_ms = wall_ms()

    def known(self) -> dict[LogId, SequencerHost]:
        return dict(sorted(self._hosts.items()))

    def follow(self, logs: Mapping[LogId, SequencedLog]) -> None:
        """Called when the directory, the nodes or the membership have changed."""
        for log in [log for log in self._hosts if log not in logs]:
            self._hosts.pop(log).close(UnknownLogError("the log was removed", log=log))
        for log, wanted in logs.items():
            host = self._hosts.get(log)
            if host is None:
                host = SequencerHost(log, wanted.config, wanted.settings, self._node)
                self._hosts[log] = host
            host.set_config(wanted.config)
            host.set_owner(wanted.owner)

    def node_connected(self, node: NodeId) -> None:
        for host in self._hosts.values():
            host.feed(NodeConnected(node))

    def statuses_changed(self) -> None:
        for host in self._hosts.values():
            host.statuses_changed()

    async def nudge(self) -> None:
        """Activates the sequencers of logs that this node owns and does not number yet.

        If this process stood still for a while, it also asks the epoch store about the logs that it numbers:
        another node may have taken them over (U18).
        """
        before_ms, self._nudged_ms = self._nudged_ms, wall_ms()
        # About as long as the other nodes wait before they replace a silent node.
        settings = self._node.settings.node
        silence_ms = settings.ping_interval_ms * (settings.pings_missed_max - 1)
        stood_still = self._nudged_ms - before_ms >= silence_ms
        for host in self._hosts.values():
            if host.epoch is not None:
                if stood_still:
                    host.confirm()
            elif host.owner == self._node.id:
                host.nudge()

    def host(self, log: LogId) -> SequencerHost:
        if self._is_stopping:
            raise UnavailableError("the node is stopping", log=log, node=self._node.id)
        if log not in self._hosts:
            raise UnknownLogError("there is no such log", log=log)
        return self._hosts[log]

    async def drain(self, timeout_ms: int) -> None:
        """Takes no more appends, and waits for those in flight, for at most this time."""
        self._is_stopping = True
        deadline_ms = wall_ms() + timeout_ms
        while any(host.requests_open for host in self._hosts.values()) and wall_ms() < deadline_ms:
            await asyncio.sleep(0.01)

    def close(self) -> None:
        problem = OutcomeUnknownError("the node stopped while an append was in flight")
        for host in self._hosts.values():
            host.close(problem)
