"""Where the copies of a record go: choosing nodes, keeping a choice for a while, avoiding failed nodes.

`choose_copyset` picks nodes by weight and chance so that every scope of the replication is satisfied. A
StickyCopysets lives as long as an epoch's sequencer and keeps one copyset for a block of records, so
that one node serves the whole block to readers. A NodeHealth lives as long and remembers which nodes
failed recently. The rules K1 to K9 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from logdevice.protocol.quorum import can_replicate
from logdevice.settings import WriteSettings
from logdevice.types import Location, NodeId, Replication


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The nodes of a nodeset, their locations, and how much each should get."""

    locations: Mapping[NodeId, Location]
    weights: Mapping[NodeId, float] = field(default_factory=dict)  # 1.0 for nodes that are missing here

    def weight(self, node: NodeId) -> float:
        return self.weights.get(node, 1.0)


def choose_copyset(
    candidates: Candidates,
    replication: Replication,
    extras: int,
    avoid: Iterable[NodeId],
    rng: random.Random,
) -> tuple[NodeId, ...] | None:
    """R nodes that satisfy the replication and up to `extras` more; None if there are not enough.

    The nodes are in the order in which they were drawn. So any node may be the first, the one that sends
    to readers (K2).
    """
    avoided = frozenset(avoid)
    usable = [
        node
        for node in sorted(candidates.locations)
        if node not in avoided and candidates.weight(node) > 0  # K3
    ]
    locations = candidates.locations
    if not can_replicate({node: locations[node] for node in usable}, replication):
        return None  # K4
    order = _draw_order(usable, candidates, rng)
    chosen = first_satisfying(order, locations, replication)
    rest = [node for node in order if node not in chosen]
    return tuple(chosen + rest[:extras])


def _draw_order(usable: list[NodeId], candidates: Candidates, rng: random.Random) -> list[NodeId]:
    """All nodes in random order; nodes with larger weights come earlier on average (K1)."""
    keys = {node: rng.random() ** (1.0 / candidates.weight(node)) for node in usable}
    return sorted(usable, key=lambda node: (-keys[node], node))


def first_satisfying(
    order: list[NodeId], locations: Mapping[NodeId, Location], replication: Replication
) -> list[NodeId]:
    """The first R nodes of `order` that together give every scope its domains (K1)."""
    chosen: list[NodeId] = []
    for node in order:
        if len(chosen) == replication.copies:
            break
        left = replication.copies - len(chosen) - 1
        if _can_be_completed([*chosen, node], left, order, locations, replication):
            chosen.append(node)
    return chosen


def _can_be_completed(
    chosen: list[NodeId],
    left: int,
    order: list[NodeId],
    locations: Mapping[NodeId, Location],
    replication: Replication,
) -> bool:
    """Whether `left` more nodes can bring every scope to its factor.

    Domains are nested, and a wider scope never needs more domains than a narrower one. So it is enough
    to go from the widest scope to the narrowest and add a node of each missing domain.
    """
    members = list(chosen)
    for scope, factor in reversed(replication.factors):
        domains = {locations[node].domain(scope) or node for node in members}
        for node in order:
            domain = locations[node].domain(scope) or node
            if len(domains) >= factor:
                break
            if domain not in domains and node not in members:
                domains.add(domain)
                members.append(node)
    return len(members) - len(chosen) <= left


class Cause(Enum):
    """Why a node is passed over for a while."""

    TIMEOUT = "TIMEOUT"
    OVERLOADED = "OVERLOADED"
    NO_SPACE = "NO_SPACE"
    REBUILDING = "REBUILDING"
    UNREACHABLE = "UNREACHABLE"


class NodeHealth:
    """Which nodes failed recently, and until when each is passed over."""

    __slots__ = ("_full", "_nodeset_size", "_settings", "_slow", "_unavailable", "away")

    def __init__(self, nodeset_size: int, settings: WriteSettings) -> None:
        self._nodeset_size = nodeset_size
        self._settings = settings
        self.away: frozenset[NodeId] = frozenset()  # dead or hanging, as far as the cluster can tell
        self._unavailable: dict[NodeId, int] = {}
        self._full: dict[NodeId, int] = {}
        # Nodes that were only slow. Kept apart because these can still store a copy.
        self._slow: dict[NodeId, int] = {}

    def penalise(self, node: NodeId, cause: Cause, now_ms: int) -> None:
        settings = self._settings
        if cause is Cause.TIMEOUT:
            self._slow[node] = now_ms + settings.slow_store_penalty_ms
            if len(self._slow) > settings.slow_nodes_share_max * self._nodeset_size:  # K6
                self._slow.clear()
            return
        penalty_ms = {
            Cause.OVERLOADED: settings.overloaded_penalty_ms,
            Cause.NO_SPACE: settings.no_space_penalty_ms,
            Cause.REBUILDING: settings.rebuilding_penalty_ms,
            Cause.UNREACHABLE: settings.unreachable_penalty_ms,
        }[cause]
        penalties = self._full if cause is Cause.NO_SPACE else self._unavailable
        penalties[node] = max(penalties.get(node, 0), now_ms + penalty_ms)  # K5

    def forgive(self, node: NodeId) -> None:
        """Ends the penalties of a node that was restarted or can be reached again."""
        for penalties in (self._unavailable, self._full, self._slow):
            penalties.pop(node, None)

    def avoided(self, now_ms: int) -> list[NodeId]:
        return sorted({*self.unavailable(now_ms), *_until(self._slow, now_ms)})

    def unavailable(self, now_ms: int) -> list[NodeId]:
        """Nodes that cannot store. Slow nodes are not included: they are used before a record waits (K4)."""
        return sorted({*_until(self._unavailable, now_ms), *self.full(now_ms)})

    def full(self, now_ms: int) -> list[NodeId]:
        """Nodes that have no space."""
        return _until(self._full, now_ms)


def _until(penalties: dict[NodeId, int], now_ms: int) -> list[NodeId]:
    for node in [node for node, until_ms in penalties.items() if until_ms <= now_ms]:
        del penalties[node]
    return sorted(penalties)


class StickyCopysets:
    """Keeps one copyset for a block of records, then chooses another."""

    def __init__(
        self,
        candidates: Candidates,
        replication: Replication,
        extras: int,
        health: NodeHealth,
        settings: WriteSettings,
        rng: random.Random,
    ) -> None:
        self.health = health
        self._candidates = candidates
        self._replication = replication
        self._extras = extras
        self._settings = settings
        self._rng = rng
        self._copyset: tuple[NodeId, ...] | None = None
        self._bytes = 0
        self._since_ms = 0

    def current(self, size: int, now_ms: int) -> tuple[NodeId, ...] | None:
        """The copyset for a record of `size` bytes; None if no nodes can take it."""
        if self._copyset is None or self._is_over(self._copyset, now_ms):
            self._copyset = self._choose(now_ms)
            self._bytes = 0
            self._since_ms = now_ms
        self._bytes += size
        return self._copyset

    def is_out_of_space(self, now_ms: int) -> bool:
        """No copyset can be chosen, and full disks are among the reasons (K8)."""
        return bool(self.health.full(now_ms)) and self._choose(now_ms) is None

    def has_failed(self, copyset: tuple[NodeId, ...]) -> None:
        """A wave on this copyset failed: the next record begins another block (K7)."""
        if copyset == self._copyset:
            self._copyset = None

    def _is_over(self, copyset: tuple[NodeId, ...], now_ms: int) -> bool:
        return (
            self._bytes >= self._settings.sticky_bytes_max
            or now_ms - self._since_ms >= self._settings.sticky_ms_max
            or not self.health.away.union(self.health.unavailable(now_ms)).isdisjoint(copyset)
        )

    def _choose(self, now_ms: int) -> tuple[NodeId, ...] | None:
        health = self.health
        unavailable = health.unavailable(now_ms)
        # K9: a node that is away may be back before the cluster has noticed. Trying it is better than
        # waiting without a copyset.
        for avoid in (
            health.away.union(health.avoided(now_ms)),
            health.away.union(unavailable),
            frozenset(unavailable),
        ):
            copyset = choose_copyset(self._candidates, self._replication, self._extras, avoid, self._rng)
            if copyset is not None:
                return copyset
        return None
