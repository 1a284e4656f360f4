"""Placement: which node should number a log, and which nodes should store it.

Every node computes it alike from what it knows, without asking anybody: each pair of a log and a node
has a fixed, evenly spread number, and the highest wins. So a node that dies moves only its own logs, and
one that comes back gets them again. Pure functions; the numbers are frozen, because nodes of different
versions must agree. What makes a sequencer the only one is the epoch store, not this.
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
    """The nodes in the order in which they come into question for a log."""
    return sorted(nodes, key=lambda node: (-mix(mix(int(log)) ^ int(node)), node))


def owner_of(log: LogId, alive_sequencers: Iterable[NodeId]) -> NodeId | None:
    """Who should be the log's sequencer; None if nobody can."""
    order = ranked(log, alive_sequencers)
    return order[0] if order else None


def nodeset_of(
    log: LogId, locations: Mapping[NodeId, Location], size: int, replication: Replication
) -> tuple[NodeId, ...]:
    """The `size` nodes (0: all) on which new epochs of a log are spread: enough domains of every scope first.

    Where the replication cannot be satisfied at all, everything there is: more nodes may come.
    """
    if not size or size >= len(locations) or not can_replicate(locations, replication):
        return tuple(sorted(locations))
    order = ranked(log, locations)
    chosen = first_satisfying(order, locations, replication)
    rest = [node for node in order if node not in chosen]
    return tuple(sorted([*chosen, *rest[: max(0, size - len(chosen))]]))
