"""What the recovery of a log is told and what it orders: its whole interface on one screen.

Questions to the epoch store, and what comes back, are in `epoch_state.py`. A request that a node does
not answer is sent again, so the shell need not report lost messages; a lost node it should.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from logdevice.protocol.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    LogTail,
    ReadEpochStore,
    WriteEpochStore,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import (
    Clean,
    Cleaned,
    DigestRecords,
    DigestRequest,
    Seal,
    Sealed,
    Store,
    Stored,
)
from logdevice.types import AuthoritativeStatus, Epoch, NodeId


@dataclass(frozen=True, slots=True)
class AnswerReceived:
    node: NodeId
    answer: Sealed | DigestRecords | Stored | Cleaned


@dataclass(frozen=True, slots=True)
class NodeLost:
    """The connection broke: what was asked of the node will not be answered."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class StatusesChanged:
    """What the event log says; nodes that are not named are FULLY_AUTHORITATIVE."""

    statuses: Mapping[NodeId, AuthoritativeStatus]


Event = AnswerReceived | NodeLost | StatusesChanged | EpochStoreRead | EpochStoreWritten | Woken


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Ends in AnswerReceived, NodeLost or silence."""

    node: NodeId
    request: Seal | DigestRequest | Store | Clean


@dataclass(frozen=True, slots=True)
class ReportTail:
    """Earlier epochs are sealed: this is where they stand. The sequencer gets it as TailFound."""

    tail: LogTail


@dataclass(frozen=True, slots=True)
class CompleteRecovery:
    """Every epoch is clean. The machine may be forgotten."""

    writers: bytes = b""  # the received table of the log, encoded


@dataclass(frozen=True, slots=True)
class PreemptRecovery:
    """Somebody with a higher epoch recovers. The machine may be forgotten."""

    seal_epoch: Epoch
    sealed_by: NodeId | None


Effect = (
    SendRequest | ReadEpochStore | WriteEpochStore | ReportTail | CompleteRecovery | PreemptRecovery | WakeAt
)
