"""What the parts of a recovery share: events and effects, what they work on, how nodes are counted.

Questions to the epoch store, and their answers, are in `sequencer/epoch_state.py`. Events for the sequencer
are in `sequencer/events.py`. A request that a node does not answer is sent again. If the shell reports a
request as Lost, the node counts as lost.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from logdevice.protocol.io import Answered, Ask, Lost
from logdevice.protocol.messages.write import (
    Clean,
    Cleaned,
    DigestRecords,
    DigestRequest,
    Seal,
    Sealed,
    Store,
    Stored,
)
from logdevice.protocol.quorum import Quorum, places
from logdevice.protocol.sequencer.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    ReadEpochStore,
    WriteEpochStore,
)
from logdevice.protocol.sequencer.events import RecoveryEvent
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RecoverySettings
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, Location, LogId, NodeId

_LOST = AuthoritativeStatus.UNDERREPLICATION

Request = Seal | DigestRequest | Store | Clean
NodeAnswer = Sealed | DigestRecords | Stored | Cleaned


@dataclass(frozen=True, slots=True)
class StatusesChanged:
    """The statuses of nodes in the event log. Nodes that are not named are FULLY_AUTHORITATIVE."""

    statuses: Mapping[NodeId, AuthoritativeStatus]


Event = Answered[NodeAnswer] | Lost[Request] | StatusesChanged | EpochStoreRead | EpochStoreWritten | Woken
# After RecoveryCompleted and RecoveryPreempted the machine may be forgotten.
Effect = Ask[Request] | ReadEpochStore | WriteEpochStore | RecoveryEvent | WakeAt


def recovery_quorum(
    metadata: EpochMetadata,
    locations: Mapping[NodeId, Location],
    statuses: Mapping[NodeId, AuthoritativeStatus],
    present: Collection[NodeId],
    voters: Collection[NodeId],
) -> Quorum:
    """V4: a node that is away, or no longer in the configuration, counts as one that lost its data.

    Otherwise recovery might wait for it forever.
    """
    quorum = Quorum(places(metadata.nodeset, locations), metadata.replication)
    for node in metadata.nodeset:
        quorum.vote(node, node in voters)
        status = statuses.get(node, AuthoritativeStatus.FULLY_AUTHORITATIVE)
        if node not in locations and status is AuthoritativeStatus.FULLY_AUTHORITATIVE:
            status = AuthoritativeStatus.UNAVAILABLE
        if status is AuthoritativeStatus.UNAVAILABLE:
            # A node that was sealed has answered, so it is not away, whatever the event log says.
            status = AuthoritativeStatus.FULLY_AUTHORITATIVE if node in present else _LOST
        quorum.set_status(node, status)
    return quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryContext:
    """What all epochs of one recovery have in common."""

    log: LogId
    me: NodeId
    seal_epoch: Epoch
    locations: Mapping[NodeId, Location]
    settings: RecoverySettings
    rng: random.Random

    @property
    def epoch(self) -> Epoch:
        """The new sequencer's epoch, for which all earlier epochs are recovered."""
        return Epoch(self.seal_epoch + 1)
