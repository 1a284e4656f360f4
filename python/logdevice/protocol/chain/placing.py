"""Which nodes form the chains of an epoch, and the replication in its metadata.

It remembers which nodes to avoid; the rest are pure functions of these nodes and the configuration. Two
numbers are kept apart. A chain has as many nodes as the replication asks for while they are available. The
epoch counts on fewer nodes; this number is in its metadata, and readers and recovery rely on it. It is about
half of the nodeset. So chains may get shorter, and recovery can work without missing nodes, without a change
of the metadata of earlier epochs. Rules P14 to P17 are in docs/protocol/chain.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer.copysets import Candidates, first_satisfying
from logdevice.types import Epoch, Location, NodeId, Replication, Scope


class Avoided:
    """Nodes that chains avoid: dead as the cluster sees it, or suspected by the sequencer.

    The policy of a log and its epochs share one object, as a copyset epoch shares its `NodeHealth`.
    """

    def __init__(self, away: frozenset[NodeId], suspicion_ms: int) -> None:
        self.is_some_back = False  # P17: longer chains may be possible
        self._away = away
        self._suspicion_ms = suspicion_ms
        self._suspected_ms: dict[NodeId, int] = {}  # until when

    @property
    def away(self) -> frozenset[NodeId]:
        return self._away

    @away.setter
    def away(self, away: frozenset[NodeId]) -> None:
        if self._away - away:
            self.is_some_back = True
        self._away = away

    def forgive(self, node: NodeId) -> None:
        self._suspected_ms.pop(node, None)
        self.is_some_back = True

    def suspect(self, node: NodeId, now_ms: int) -> None:
        self._suspected_ms[node] = now_ms + self._suspicion_ms

    def nodes(self, now_ms: int) -> frozenset[NodeId]:
        if not self._suspected_ms:
            return self.away
        suspected = {node for node, until_ms in self._suspected_ms.items() if until_ms > now_ms}
        return self.away | suspected


def usable_nodes(
    nodeset: Iterable[NodeId], candidates: Candidates, avoid: Collection[NodeId]
) -> dict[NodeId, Location]:
    """The nodes of a nodeset that may be in a chain."""
    return {
        node: candidates.locations[node]
        for node in sorted(nodeset)
        if node in candidates.locations and candidates.weight(node) > 0 and node not in avoid
    }


def counted_replication(wanted: Replication, nodes: int) -> Replication:
    """P15: how many copies an epoch with a nodeset of this size counts on."""
    copies = min(wanted.copies, nodes // 2 + 1)
    return Replication.of({scope: min(factor, copies) for scope, factor in wanted.factors})


def reduced_replication(wanted: Replication, usable: Mapping[NodeId, Location]) -> Replication | None:
    """The wanted replication, reduced to what these nodes allow; None without nodes."""
    if not usable:
        return None
    factors: dict[Scope, int] = {}
    for scope, factor in wanted.factors:
        domains = {node if scope is Scope.NODE else place.domain(scope) for node, place in usable.items()}
        factors[scope] = min(factor, len(domains))
    return Replication.of(factors)


def choose_chains(
    usable: Mapping[NodeId, Location], wanted: Replication, counted: Replication, count: int, epoch: Epoch
) -> tuple[tuple[NodeId, ...], ...]:
    """P14: `count` chains, head first, each as long as the replication wants and the nodes allow.

    Every chain begins one node further on, and so does every epoch. So the heads and tails, which have the
    most to do, are spread over the nodes. Returns no chains if fewer nodes are left than the epoch counts on.
    """
    reduced = reduced_replication(wanted, usable)
    if reduced is None or not can_replicate(usable, counted):
        return ()
    order = sorted(usable)
    return tuple(
        tuple(first_satisfying(_rotated(order, epoch + index), usable, reduced)) for index in range(count)
    )


def _rotated(order: list[NodeId], by: int) -> list[NodeId]:
    start = by % len(order)
    return order[start:] + order[:start]
