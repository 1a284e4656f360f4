"""The plan of a rebuilding: which node copies a record, to which nodes, and which nodes must be told.

All of it follows from a record's copyset. So every node that holds the record comes to the same result
without asking others, and a block of records with one copyset stays together. A MovePlan lives as long as one
donor works on one epoch of one log. Rules P59 to P63, P72 and P73 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.protocol.cluster.placement import mix
from logdevice.protocol.quorum import can_replicate, places
from logdevice.protocol.rebuilding.node_status import NodeEvents
from logdevice.protocol.sequencer.copysets import first_satisfying
from logdevice.types import EpochMetadata, Location, NodeId

_PLANS_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Losses:
    """Which nodes the event log names, by what it means for copies."""

    lost: frozenset[NodeId]  # their copies are missing
    refilled: frozenset[NodeId]  # lost nodes that run again and are getting their copies back
    gone: frozenset[NodeId]  # their copies must go to other nodes; includes nodes that leave
    checked: frozenset[NodeId] = frozenset()  # they count again; records may have too few copies (P73)

    @classmethod
    def of(cls, events: NodeEvents) -> Losses:
        return cls(frozenset(events.lost), events.refilled, events.gone, events.checked)

    def touches(self, metadata: EpochMetadata) -> bool:
        """Whether an epoch may have, or miss, copies on one of these nodes."""
        return bool((self.lost | self.gone | self.checked) & set(metadata.nodeset))

    def may_hide(self, metadata: EpochMetadata, locations: Mapping[NodeId, Location]) -> bool:
        """P59: whether all copies of a record may have been on lost nodes."""
        lost = places((node for node in metadata.nodeset if node in self.lost), locations)
        return can_replicate(lost, metadata.replication)


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of the records with one copyset."""

    copyset: tuple[NodeId, ...]
    puts: tuple[NodeId, ...]  # nodes that get a copy
    amends: tuple[NodeId, ...]  # nodes that have a copy and get the new copyset, this node last
    is_put_off: bool = False  # P61: nothing is done now; it waits until there are more nodes
    widened: tuple[NodeId, ...] = ()  # P63: the copyset in new copies, if it is not the final copyset


class MovePlan:
    """Decides for each copyset of an epoch what this node must do. `usable` nodes can take copies now."""

    __slots__ = ("_losses", "_me", "_metadata", "_moves", "_places", "_registered", "_usable")

    def __init__(
        self,
        me: NodeId,
        losses: Losses,
        metadata: EpochMetadata,
        locations: Mapping[NodeId, Location],
        usable: frozenset[NodeId],
    ) -> None:
        self._me = me
        self._losses = losses
        self._metadata = metadata
        self._places = places(metadata.nodeset, locations)
        self._usable = usable
        self._registered = frozenset(locations)
        self._moves: dict[tuple[NodeId, ...], Move | None] = {}

    def move(self, copyset: tuple[NodeId, ...]) -> Move | None:
        """What this node must do for records with this copyset; None if nothing."""
        if copyset not in self._moves:
            if len(self._moves) >= _PLANS_MAX:
                self._moves.clear()
            self._moves[copyset] = self._planned(copyset)
        return self._moves[copyset]

    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool:
        """The filter of a store read: whether this node must do something for the record."""
        return self.move(copyset) is not None

    def _planned(self, copyset: tuple[NodeId, ...]) -> Move | None:
        losses = self._losses
        is_touched = bool((losses.lost | losses.gone) & set(copyset))
        if not self._is_donor(copyset):
            return None
        kept = [node for node in copyset if node not in losses.gone]
        added = self._added(copyset, kept, self._usable)
        if self._is_put_off(copyset, kept, added):
            return Move(copyset, (), (), is_put_off=True)
        new = tuple(kept + added)
        if not is_touched and new == copyset:
            return None  # P72: there are as many copies as there should be, or can be
        is_extra = len(copyset) > self._metadata.replication.copies
        # P63: with extras, the copyset does not tell which nodes hold the record.
        missing = [node for node in new if is_extra or node in losses.refilled or node not in copyset]
        holders = [node for node in copyset if node not in losses.lost and node not in missing]
        told = [*missing, *holders] if is_extra else holders
        amends = [node for node in told if node != self._me]
        return Move(
            copyset=new,
            puts=tuple(node for node in missing if node != self._me),
            amends=(*amends, self._me) if new != copyset else (),  # P62
            widened=(*copyset, *added) if is_extra and new != copyset else (),
        )

    def _is_donor(self, copyset: tuple[NodeId, ...]) -> bool:
        """P60: whether this node copies records with this copyset.

        The donor is the first member that has not lost its copy. If only leaving nodes are concerned, each of
        them copies its own records. With extras, every holder is a donor.
        """
        losses, members = self._losses, set(copyset)
        leaving = losses.gone - losses.lost
        if self._me in leaving or len(copyset) > self._metadata.replication.copies:
            return self._me in members
        if leaving & members and not losses.lost & members:
            return False
        return next((node for node in copyset if node not in losses.lost), None) == self._me

    def _is_put_off(self, copyset: tuple[NodeId, ...], kept: list[NodeId], added: list[NodeId]) -> bool:
        """P61: whether records with this copyset must wait for more nodes.

        A new copyset with too few nodes would not be checked again. So a drain waits for more nodes, and all
        records wait for nodes that are only away for a while. Nothing waits for nodes that do not exist.
        """
        if can_replicate(self._known((*kept, *added)), self._metadata.replication):
            return False
        is_leaving = not (self._losses.gone - self._losses.lost).isdisjoint(copyset)
        return is_leaving or len(self._added(copyset, kept, self._registered)) > len(added)

    def _added(
        self, copyset: tuple[NodeId, ...], kept: list[NodeId], usable: frozenset[NodeId]
    ) -> list[NodeId]:
        """P61: further nodes of the nodeset, in an order that depends only on the copyset and the nodes."""
        replication = self._metadata.replication
        if can_replicate(self._known(tuple(kept)), replication):
            return []
        seed = 0
        for node in copyset:
            seed = mix(seed ^ int(node))
        free = usable & set(self._metadata.nodeset)
        free -= self._losses.lost - self._losses.refilled | self._losses.gone | set(copyset)
        # Refilled nodes come last: they still have to get all of their own copies.
        order = kept + sorted(
            free, key=lambda node: (node in self._losses.refilled, -mix(seed ^ int(node)), node)
        )
        chosen = first_satisfying(order, self._known(tuple(order)), replication)
        return [node for node in chosen if node not in kept]

    def _known(self, nodes: tuple[NodeId, ...]) -> dict[NodeId, Location]:
        return places(nodes, self._places)
