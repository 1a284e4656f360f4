"""Placement: which node should be the sequencer of a log, and which nodes should store it.

Every node computes the same result without asking other nodes: each pair of a log and a node has a fixed,
evenly spread number, and the node with the highest number wins. So if a node dies, only its own logs move,
and they return when it comes back. The numbers must never change, because nodes of different versions must
agree. It is the epoch store, not placement, that makes sure that a log has only one sequencer. Rules Z6 and
Z7 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer.copysets import first_satisfying
from logdevice.types import Location, LogId, NodeId, Replication

MASK_64: Final = (1 << 64) - 1
GOLDEN_GAMMA: Final = 0x9E3779B97F4A7C15


def mix(value: int) -> int:
    """splitmix64: two numbers that differ in one bit end up far apart."""
    value = (value + GOLDEN_GAMMA) & MASK_64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK_64
    return value ^ (value >> 31)


def ranked(log: LogId, nodes: Iterable[NodeId]) -> list[NodeId]:
    """The nodes in the order of preference for a log."""
    return sorted(nodes, key=lambda node: (-mix(mix(int(log)) ^ int(node)), node))


def owner_of(log: LogId, alive_sequencers: Iterable[NodeId]) -> NodeId | None:
    """The node that should be the log's sequencer; None if there is no candidate."""
    order = ranked(log, alive_sequencers)
    return order[0] if order else None


def nodeset_of(
    log: LogId, locations: Mapping[NodeId, Location], size: int, replication: Replication
) -> tuple[NodeId, ...]:
    """The `size` nodes (0: all) that store new epochs of a log, with enough domains of every scope.

    All nodes if they cannot satisfy the replication: more nodes may join later.
    """
    if not size or size >= len(locations) or not can_replicate(locations, replication):
        return tuple(sorted(locations))
    order = ranked(log, locations)
    chosen = first_satisfying(order, locations, replication)
    rest = [node for node in order if node not in chosen]
    return tuple(sorted([*chosen, *rest[: max(0, size - len(chosen))]]))
