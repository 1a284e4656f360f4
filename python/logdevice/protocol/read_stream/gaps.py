"""What silence proves: is there a gap at the head, how far does it reach, and of which type is it?

Nothing here changes the stream. A node that is past the head will not send it. When the nodes past the
head are an f-majority, the others cannot hold a whole copyset, so waiting is useless (read_path.md G1 to
G8).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logdevice.protocol.quorum import Answer, Quorum, places
from logdevice.protocol.read_stream.senders import Sender, SenderState
from logdevice.types import (
    AuthoritativeStatus,
    EpochMetadata,
    GapType,
    Location,
    Lsn,
    NodeId,
    epoch_start,
)


class GapJudge:
    """The votes of one nodeset about the head.

    A node that the configuration does not know any more cannot be asked. It may have held the last
    copy of a record, so it counts as a node that lost its data (G2).
    """

    def __init__(self, known: Mapping[NodeId, Location], metadata: EpochMetadata) -> None:
        located = places(metadata.nodeset, known)
        self._sure = Quorum(located, metadata.replication)  # past the head, and cannot have lost it
        self._any = Quorum(located, metadata.replication)  # past the head; may have lost it
        self._serving = Quorum(located, metadata.replication)
        for node in located:
            if node not in known:
                for quorum in (self._sure, self._any, self._serving):
                    quorum.set_status(node, AuthoritativeStatus.UNDERREPLICATION)

    def answer(self, senders: Collection[Sender], head: int) -> Answer:
        """What the promises of the read set prove about the head (G2, G5)."""
        for sender in senders:
            is_past = sender.is_past(head)
            for quorum in (self._sure, self._any):
                quorum.set_status(sender.node, sender.status)
            self._any.vote(sender.node, is_past)
            self._sure.vote(sender.node, is_past and not sender.is_thin_at(head))
        answer = self._sure.answer()
        if answer in (Answer.COMPLETE, Answer.NON_AUTHORITATIVE):
            return answer
        if self._any.answer() in (Answer.COMPLETE, Answer.NON_AUTHORITATIVE):
            # All nodes have voted; waiting longer cannot bring the head back.
            return Answer.COMPLETE if answer is Answer.INCOMPLETE else Answer.NON_AUTHORITATIVE
        return answer

    def is_connected(self, senders: Collection[Sender]) -> bool:
        """H1: whether enough nodes serve the stream to notice a missing record."""
        for sender in senders:
            self._serving.set_status(sender.node, sender.status)
            self._serving.vote(sender.node, sender.state is SenderState.READING)
        return self._serving.answer() is not Answer.NONE


def gap_end(senders: Collection[Sender], head: int, first_buffered: int | None) -> int | None:
    """The end of a gap at the head: the first LSN about which a vote could differ (G3)."""
    bounds = [] if first_buffered is None else [first_buffered]
    for sender in senders:
        bounds.append(sender.next)
        for region in sender.thin:
            bounds += (region.start, region.end)
    return min((bound for bound in bounds if bound > head), default=None)


def silent_end(*, head: int, known_until: int, is_bounded: bool, released_end: int) -> int | None:
    """The end of a gap at the head when no node is left that could answer (G8)."""
    if is_bounded:
        return epoch_start(known_until + 1)
    return released_end if released_end > head else None


def gap_type(*, head: int, end: int, metadata: EpochMetadata, trim_end: int) -> GapType:
    """The type of a gap that silence has proven (G6)."""
    if end <= trim_end:
        return GapType.TRIM
    if Lsn(end).epoch > Lsn(head).epoch and not metadata.bridges:
        return GapType.BRIDGE
    return GapType.DATALOSS


def lingers(senders: Collection[Sender], head: int, limit: int) -> bool:
    """Whether a node that could still have the head gets a grace period (G4)."""
    return any(
        sender.status is AuthoritativeStatus.FULLY_AUTHORITATIVE
        and not sender.is_past(head)
        and (limit < 0 or sender.grace_counter <= limit)
        for sender in senders
    )


def all_passed(senders: Collection[Sender], filtered_out: Collection[NodeId], head: int) -> bool:
    """Whether no node is left that would send the head in single-copy delivery (R4)."""
    return all(sender.is_past(head) or sender.node in filtered_out for sender in senders)
