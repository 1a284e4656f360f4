"""Quorum: have enough nodes voted to prove that a record does not exist?

An f-majority is a set of nodes that intersects every copyset the replication allows: what none of its
members has was never stored completely. A quorum lives as long as the read set it was made for.
Votes and statuses change one at a time, and each change costs a few additions per replication scope;
nothing is ever recounted. The rules Q1 to Q6 are in docs/protocol/read_path.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from typing import Final

from logdevice.types import AuthoritativeStatus, Location, NodeId, Replication, Scope

# Q4: the data of an unavailable node may come back, so its vote is waited for like any other.
_COUNTS: Final = (AuthoritativeStatus.FULLY_AUTHORITATIVE, AuthoritativeStatus.UNAVAILABLE)


class Answer(Enum):
    """Q6: what the votes so far prove."""

    COMPLETE = "COMPLETE"  # an f-majority has voted, and so has every other node that counts
    INCOMPLETE = "INCOMPLETE"  # an f-majority has voted, but some node that counts has not
    NON_AUTHORITATIVE = "NON_AUTHORITATIVE"  # all nodes that count have voted; they are too few for a proof
    NONE = "NONE"  # a node that has not voted may have the record


class Quorum:
    """The votes and statuses of a set of nodes, and what they prove."""

    __slots__ = ("_authoritative", "_full", "_scopes", "_statuses", "_votes")

    def __init__(self, nodes: Mapping[NodeId, Location], replication: Replication) -> None:
        self._scopes = [_ScopeTally(nodes, scope, factor) for scope, factor in replication.factors]
        self._votes: dict[NodeId, bool] = dict.fromkeys(nodes, False)
        self._statuses = dict.fromkeys(nodes, AuthoritativeStatus.FULLY_AUTHORITATIVE)
        self._authoritative = len(self._votes)  # nodes whose vote counts
        self._full = 0  # of these, those that voted

    def vote(self, node: NodeId, yes: bool) -> None:
        """Set or take back the vote of a node."""
        if self._votes[node] != yes:
            self._change(node, yes, self._statuses[node])

    def set_status(self, node: NodeId, status: AuthoritativeStatus) -> None:
        if self._statuses[node] is not status:
            self._change(node, self._votes[node], status)

    def answer(self) -> Answer:
        """What the votes and statuses prove now."""
        is_complete = self._full == self._authoritative  # Q5
        if any(scope.has_majority() for scope in self._scopes):
            return Answer.COMPLETE if is_complete else Answer.INCOMPLETE
        return Answer.NON_AUTHORITATIVE if is_complete else Answer.NONE

    def _change(self, node: NodeId, vote: bool, status: AuthoritativeStatus) -> None:
        old_status = self._statuses[node]
        counted, counts = old_status in _COUNTS, status in _COUNTS
        full = int(counts and vote) - int(counted and self._votes[node])
        # Q2: a node whose data is on other nodes counts as if it were not in the set.
        was_empty = old_status is AuthoritativeStatus.AUTHORITATIVE_EMPTY
        non_empty = int(was_empty) - int(status is AuthoritativeStatus.AUTHORITATIVE_EMPTY)
        self._votes[node] = vote
        self._statuses[node] = status
        self._authoritative += int(counts) - int(counted)
        self._full += full
        for scope in self._scopes:
            scope.change(node, non_empty=non_empty, full=full)


class _Domain:
    """One failure domain: how many of its nodes are not empty, and how many votes of these count."""

    __slots__ = ("full", "non_empty")

    def __init__(self) -> None:
        self.non_empty = 0
        self.full = 0

    @property
    def is_complete(self) -> bool:
        # Q3: a node that lost its data keeps its domain from ever being complete: it proves nothing.
        return 0 < self.full == self.non_empty


class _ScopeTally:
    """The failure domains of one replication scope."""

    __slots__ = ("_complete", "_domain_of", "_factor", "_non_empty")

    def __init__(self, nodes: Mapping[NodeId, Location], scope: Scope, factor: int) -> None:
        domains: dict[Hashable, _Domain] = {}
        self._factor = factor
        self._domain_of: dict[NodeId, _Domain] = {}
        for node, location in nodes.items():
            domain = domains.setdefault(_domain_key(node, location, scope), _Domain())
            domain.non_empty += 1
            self._domain_of[node] = domain
        self._non_empty = len(domains)
        self._complete = 0

    def change(self, node: NodeId, *, non_empty: int, full: int) -> None:
        domain = self._domain_of[node]
        was_non_empty, was_complete = domain.non_empty > 0, domain.is_complete
        domain.non_empty += non_empty
        domain.full += full
        self._non_empty += int(domain.non_empty > 0) - int(was_non_empty)
        self._complete += int(domain.is_complete) - int(was_complete)

    def has_majority(self) -> bool:
        # Q1: fewer than `factor` domains have not voted, too few to hold a whole copyset. If the set is
        # smaller than a copyset, each member may hold the only copy left, so all must vote.
        needed = self._non_empty - self._factor + 1
        return self._complete >= (needed if needed > 0 else self._non_empty)


def places(nodes: Iterable[NodeId], locations: Mapping[NodeId, Location]) -> dict[NodeId, Location]:
    """Where nodes are. A node unknown to the configuration shares no domain with any other node."""
    return {node: locations.get(node, Location((f"unknown-{int(node)}",) * 5)) for node in nodes}


def can_replicate(nodes: Mapping[NodeId, Location], replication: Replication) -> bool:
    """Whether a record can be stored on these nodes: every scope has enough domains."""
    return all(
        len({_domain_key(node, location, scope) for node, location in nodes.items()}) >= factor
        for scope, factor in replication.factors
    )


def _domain_key(node: NodeId, location: Location, scope: Scope) -> Hashable:
    if scope is Scope.NODE:
        return node
    domain = location.domain(scope)
    if domain is None:
        raise ValueError(
            f"{node} is at {str(location)!r}, which names no {scope.name.lower()}; the log's "
            f"replication needs one: give the node a location of {6 - scope} parts or more"
        )
    return domain
