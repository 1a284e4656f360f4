"""Copy selection: which of the nodes that hold a record sends it to a reader.

Every storage node computes the same answer from a record's header without asking other nodes, so in
single-copy delivery (SCD) only one copy of a record is sent. The answer depends on the copyset, not on
the record: one node sends a whole sticky block. A decision is remembered as long as the filter lives,
which is one START of one reader. The rules C1 to C9 are in docs/protocol/read_path.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logdevice.protocol.cluster.placement import GOLDEN_GAMMA, MASK_64, mix
from logdevice.protocol.messages.read import ReadMode, Start
from logdevice.types import Location, NodeId, RecordFlags

_HOLE: Final = int(RecordFlags.HOLE | RecordFlags.BRIDGE)
_DRAINED: Final = int(RecordFlags.DRAINED)
_SPECIAL: Final = _HOLE | _DRAINED

# A log normally uses far fewer copysets; the bound is for logs that do not.
_DECISIONS_MAX: Final = 4096


class CopyFilter:
    """Decides what node `me` sends to the reader that sent `start`."""

    __slots__ = ("_decisions", "_known_down", "_me", "_priority", "_replication", "_seed", "_sends_all")

    def __init__(self, me: NodeId, start: Start, locations: Mapping[NodeId, Location]) -> None:
        self._me = me
        self._sends_all = start.mode is ReadMode.ALL_SEND_ALL
        # C2: a listed node decides as if it were not listed, so that the reader sees that it is back.
        self._known_down = frozenset(start.known_down) - {me}
        self._replication = start.replication
        self._seed = start.shuffle_seed
        self._priority: Mapping[NodeId, int] | None = None
        if start.mode is ReadMode.LOCAL_SCD and start.location.parts:  # C7
            self._priority = {
                node: location.shared_scopes(start.location) for node, location in locations.items()
            }
        self._decisions: dict[tuple[NodeId, ...], bool] = {}

    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool:
        """Whether this node sends a record with this copyset and these flags."""
        if self._sends_all:
            return True  # C9
        if flags & _SPECIAL:
            # C8 goes before C5: a drained hole has other holders, which send it.
            return not flags & _DRAINED
        decision = self._decisions.get(copyset)
        return self._decide(copyset) if decision is None else decision

    def _decide(self, copyset: tuple[NodeId, ...]) -> bool:
        if len(self._decisions) >= _DECISIONS_MAX:
            self._decisions.clear()
        decision = self._is_shipper(copyset)
        self._decisions[copyset] = decision
        return decision

    def _is_shipper(self, copyset: tuple[NodeId, ...]) -> bool:
        order = ship_order(
            copyset, replication=self._replication, shuffle_seed=self._seed, priority=self._priority
        )
        alive = [node for node in order if node not in self._known_down]
        if not alive:
            return True  # C6: all are listed, and sending twice is better than not at all
        extras = max(0, len(copyset) - self._replication) if self._replication > 0 else 0
        # C4: the copyset does not say which extras hold the record, so every extra that does sends it.
        return alive[0] == self._me or self._me in alive[len(alive) - min(extras, len(alive)) :]


def ship_order(
    copyset: tuple[NodeId, ...],
    *,
    replication: int,
    shuffle_seed: int | None,
    priority: Mapping[NodeId, int] | None,
) -> tuple[NodeId, ...]:
    """The members of a copyset in the order in which they are asked to send: the first that is alive sends.

    C4: only the first `replication` members change places, because the extras after them usually have no
    copy and must not become the first. If `replication` is 0 (not known), all members change places.
    """
    movable = replication if replication > 0 else len(copyset)
    members, extras = copyset[:movable], copyset[movable:]
    if shuffle_seed is not None:
        members = shuffle(members, shuffle_seed)
    if priority is not None:
        members = tuple(sorted(members, key=lambda node: -priority.get(node, 0)))
    return members + extras


def shuffle(copyset: tuple[NodeId, ...], seed: int) -> tuple[NodeId, ...]:
    """C3: a permutation of the copyset, which every node computes alike from copyset and seed.

    The algorithm must never change: nodes of different versions must agree. It folds the ids into a
    splitmix64 state and draws a Fisher-Yates shuffle from it.
    """
    state = seed & MASK_64
    for node in copyset:
        state = mix(state) ^ (node & MASK_64)
    members = list(copyset)
    for index in range(len(members) - 1):
        other = index + mix(state) % (len(members) - index)
        members[index], members[other] = members[other], members[index]
        state = (state + GOLDEN_GAMMA) & MASK_64
    return tuple(members)
