"""Mutation: to which nodes recovery writes a decided LSN.

The record gets a copyset among the nodes that took part in the recovery. Rules V12 and V13 are in
docs/protocol/recovery.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from logdevice.protocol.messages.write import Store
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.recovery.context import RecoveryContext
from logdevice.protocol.recovery.digest import Decision
from logdevice.protocol.sequencer.copysets import first_satisfying
from logdevice.types import Location, Lsn, NodeId, Replication


class MutationSet:
    """The nodes that took part in a recovery. Recovery writes only to these."""

    def __init__(
        self, context: RecoveryContext, locations: Mapping[NodeId, Location], replication: Replication
    ) -> None:
        self.nodes = sorted(locations)
        self._locations = locations
        self._replication = replication
        self._context = context
        self._rng = context.rng

    def copyset(self, decision: Decision) -> tuple[NodeId, ...]:
        """V12: R nodes; nodes that already have the record come first in the choice."""
        holders = [node for node in self.nodes if node in decision.holders]
        others = [node for node in self.nodes if node not in decision.holders]
        self._rng.shuffle(holders)
        self._rng.shuffle(others)
        order = holders + others
        if not can_replicate(self._locations, self._replication):
            return tuple(order)  # too few nodes are better than none
        chosen = first_satisfying(order, self._locations, self._replication)
        self._rng.shuffle(chosen)
        return tuple(chosen)

    def stores(self, decision: Decision, *, good_end: Lsn, attempt: int) -> dict[NodeId, Store]:
        """V13: the stores for one LSN.

        Every node that has or should have the LSN gets the same header; a node that lacks the record also
        gets the body.
        """
        context, copyset = self._context, self.copyset(decision)
        record = replace(decision.record, copyset=copyset, wave=context.seal_epoch)
        stores: dict[NodeId, Store] = {}
        for node in self.nodes:
            is_amend = node in decision.holders
            if node in copyset or is_amend or node in decision.conflicting:
                stores[node] = Store(
                    log=context.log,
                    record=replace(record, body=b"") if is_amend else record,
                    good_end=good_end,
                    sequencer=context.me,
                    is_amend=is_amend,
                    attempt=attempt,
                )
        return stores
