"""The events and effects of a storage node's log state: its whole interface."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply, Tell
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import Persist, Persisted, PersistFailed
from logdevice.protocol.messages.chain import ChainCompleted, ChainCopy, ChainRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStored, PutCopies
from logdevice.protocol.messages.write import (
    Clean,
    Cleaned,
    Delete,
    DigestRecords,
    DigestRequest,
    Drop,
    Dropped,
    EpochRecovered,
    GetEpochRecovery,
    KeepWriters,
    Release,
    Seal,
    Sealed,
    Store,
    Stored,
    Trim,
    Trimmed,
)
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead, ReadMetadataLog
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import Lsn

Request = (
    Store
    | Delete
    | Release
    | KeepWriters
    | Trim
    | Drop
    | Seal
    | DigestRequest
    | Clean
    | GetEpochRecovery
    | ChainRead
    | PutCopies
    | AmendCopies
)
Answer = (
    Stored | Trimmed | Dropped | Sealed | DigestRecords | Cleaned | EpochRecovered | ChainCopy | CopiesStored
)


@dataclass(frozen=True, slots=True)
class RebuildingChanged:
    """Whether the node has lost its data and waits for its copies, or has its data (again)."""

    rebuilding: bool


@dataclass(frozen=True, slots=True)
class ReleaseAdvanced:
    """Everything below `end` has been released. For the log's server read streams."""

    end: Lsn


@dataclass(frozen=True, slots=True)
class TrimAdvanced:
    """Everything below `end` is trimmed. For the log's server read streams, before copies are removed."""

    end: Lsn


Event = (
    Asked[Request]
    | Persisted
    | PersistFailed
    | RecordsRead
    | ReadFailed
    | MetadataLogRead
    | Answered[EpochRecovered]
    | Lost[GetEpochRecovery]
    | RebuildingChanged
    | Woken
)
Effect = (
    Persist
    | StoreRead
    | Reply[Answer]
    | ReleaseAdvanced
    | TrimAdvanced
    | ReadMetadataLog
    | Ask[GetEpochRecovery]
    | Tell[ChainCompleted]
    | WakeAt
)
