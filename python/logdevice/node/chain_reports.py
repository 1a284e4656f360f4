"""What tails of chains tell sequencers: reports that come close together go out as one message.

Lives as long as the node's logs. A report that is lost does no harm: the sequencer looks by itself.
"""

from __future__ import annotations

import asyncio

from logdevice.node.peers import Peers
from logdevice.protocol.chain.messages import ChainCompleted
from logdevice.protocol.log_state_events import ReportCompleted
from logdevice.types import LogId, Lsn, NodeId

_Target = tuple[NodeId, LogId]


class ChainReports:
    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._waiting: dict[_Target, tuple[list[Lsn], list[Lsn]]] = {}

    def add(self, report: ReportCompleted) -> None:
        completed = report.completed
        if not self._waiting:
            # What the disk made durable together is reported together.
            asyncio.get_running_loop().call_soon(self._send)
        records, holes = self._waiting.setdefault((report.sequencer, completed.log), ([], []))
        records += completed.records
        holes += completed.holes

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for (sequencer, log), (records, holes) in waiting.items():
            completed = ChainCompleted(log=log, records=tuple(records), holes=tuple(holes))
            self._peers.tell(sequencer, completed)
