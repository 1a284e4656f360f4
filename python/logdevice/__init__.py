"""LogDevice for Spark: a replicated, totally ordered log store.

The public names of the package, and nothing else: positions, records and gaps from `types.py`, what can
go wrong from `errors.py`, and the client. The client's libraries take a while to load, so they are loaded
when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from logdevice.errors import (
    AccessError,
    ConflictError,
    CorruptRecordError,
    DataError,
    DataLossError,
    ErrorCode,
    InvalidArgumentError,
    InvalidSettingError,
    LocalProtocolError,
    LogDeviceError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    NameTakenError,
    NoSequencerError,
    NoSpaceError,
    NotEnoughNodesError,
    OutcomeUnknownError,
    OutOfRangeError,
    OverloadedError,
    PayloadTooLargeError,
    ProtocolError,
    RemoteProtocolError,
    TrimmedError,
    UnavailableError,
    UnknownLogError,
    UnreadableMetadataError,
    UsageError,
    WrongClusterError,
)
from logdevice.types import (
    EPOCH_MAX,
    ESN_MAX,
    LSN_MAX,
    LSN_OLDEST,
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Gap,
    GapType,
    Location,
    LogId,
    Lsn,
    LsnRange,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    Scope,
    TimeRange,
)

if TYPE_CHECKING:
    from logdevice.client import AsyncClient, Client, RecordsBatch, connect

__all__ = [
    "EPOCH_MAX",
    "ESN_MAX",
    "LSN_MAX",
    "LSN_OLDEST",
    "AccessError",
    "AsyncClient",
    "AuthoritativeStatus",
    "Client",
    "ConflictError",
    "CorruptRecordError",
    "DataError",
    "DataLossError",
    "Epoch",
    "EpochMetadata",
    "ErrorCode",
    "Gap",
    "GapType",
    "InvalidArgumentError",
    "InvalidSettingError",
    "LocalProtocolError",
    "Location",
    "LogDeviceError",
    "LogId",
    "Lsn",
    "LsnRange",
    "MetadataOutcomeUnknownError",
    "MetadataUnavailableError",
    "NameTakenError",
    "NoSequencerError",
    "NoSpaceError",
    "NodeId",
    "NotEnoughNodesError",
    "OutOfRangeError",
    "OutcomeUnknownError",
    "OverloadedError",
    "PayloadTooLargeError",
    "ProtocolError",
    "Record",
    "RecordFlags",
    "RecordsBatch",
    "RemoteProtocolError",
    "Replication",
    "Scope",
    "TimeRange",
    "TrimmedError",
    "UnavailableError",
    "UnknownLogError",
    "UnreadableMetadataError",
    "UsageError",
    "WrongClusterError",
    "connect",
]

_OF_THE_CLIENT = ("AsyncClient", "Client", "RecordsBatch", "connect")


def __getattr__(name: str) -> Any:
    if name in _OF_THE_CLIENT:
        return getattr(import_module("logdevice.client"), name)
    raise AttributeError(f"module 'logdevice' has no attribute {name!r}")
