"""Mutation: which nodes a decided LSN is brought to.

The record gets a copyset among the nodes that took part in the recovery. Rules V12 and V13 are in
docs/protocol/recovery.md.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from logdevice.protocol.copysets import first_satisfying
from logdevice.protocol.digest import Decision
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.write_messages import Store
from logdevice.types import Epoch, Location, LogId, Lsn, NodeId, Replication


class MutationSet:
    """The nodes that took part in a recovery: all that recovery writes to."""

    def __init__(
        self, locations: Mapping[NodeId, Location], replication: Replication, rng: random.Random
    ) -> None:
        self.nodes = sorted(locations)
        self._locations = locations
        self._replication = replication
        self._rng = rng

    def copyset(self, decision: Decision) -> tuple[NodeId, ...]:
        """V12: R nodes, first of all those that have the record already."""
        holders = [node for node in self.nodes if node in decision.holders]
        others = [node for node in self.nodes if node not in decision.holders]
        self._rng.shuffle(holders)
        self._rng.shuffle(others)
        order = holders + others
        if not can_replicate(self._locations, self._replication):
            return tuple(order)  # better on too few nodes than on none
        chosen = first_satisfying(order, self._locations, self._replication)
        self._rng.shuffle(chosen)
        return tuple(chosen)

    def stores(
        self, decision: Decision, *, log: LogId, me: NodeId, seal_epoch: Epoch, good_end: Lsn, attempt: int
    ) -> dict[NodeId, Store]:
        """V13: everybody who has or should have the LSN gets the same header; who lacks it, the body too."""
        copyset = self.copyset(decision)
        record = replace(decision.record, copyset=copyset, wave=seal_epoch)
        stores: dict[NodeId, Store] = {}
        for node in self.nodes:
            is_amend = node in decision.holders
            if node in copyset or is_amend or node in decision.conflicting:
                stores[node] = Store(
                    log=log,
                    record=replace(record, body=b"") if is_amend else record,
                    good_end=good_end,
                    sequencer=me,
                    is_amend=is_amend,
                    attempt=attempt,
                )
        return stores
