"""Lost history: from which LSN on a log may lack records because nodes have lost their data for good.

These are pure functions of the event log and the metadata log. Rule L30 is in docs/protocol/lineage.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from logdevice.protocol.quorum import Answer, Quorum, places
from logdevice.protocol.rebuilding.node_status import CaseMode, NodeEvents
from logdevice.types import AuthoritativeStatus, EpochMetadata, Location, Lsn, NodeId, epoch_start


def given_up(before: NodeEvents, after: NodeEvents) -> frozenset[NodeId]:
    """Nodes whose data never comes back and was not restored elsewhere before the last event."""
    restored = {case.node for case in before.cases if case.is_settled}
    lost = {case.node for case in after.cases if case.mode is CaseMode.RESTORE and not case.is_recoverable}
    return frozenset(lost - restored)


def doubtful_from(
    history: Iterable[EpochMetadata], locations: Mapping[NodeId, Location], lost: Collection[NodeId]
) -> Lsn | None:
    """The first LSN whose copies may all have been on the lost nodes; None if every record has one left."""
    for entry in history:
        quorum = Quorum(places(entry.nodeset, locations), entry.replication)
        for node in entry.nodeset:
            quorum.vote(node, True)
            if node in lost:
                quorum.set_status(node, AuthoritativeStatus.UNDERREPLICATION)
        if quorum.answer() is Answer.NON_AUTHORITATIVE:
            return epoch_start(entry.first_epoch)
    return None
