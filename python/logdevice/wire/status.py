"""Errors across a connection: one table of error classes and gRPC statuses.

The status is for tools that know gRPC and nothing else. Our own callers get the error itself: its code,
message and place travel in the trailing metadata, and `from_rpc` makes the same exception of them. What
comes without it was said by gRPC, or by a server that is none of ours, and is translated by its status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import grpc
import msgpack

from logdevice import errors
from logdevice.errors import LogDeviceError, RemoteProtocolError
from logdevice.types import LogId, Lsn, NodeId
from logdevice.wire.service_messages import Failure

ERROR_KEY: Final = "logdevice-error-bin"
# Metadata has to fit into 8 KB together with everything else that is in it.
MESSAGE_LENGTH_MAX: Final = 1000

STATUSES: Final[dict[type[LogDeviceError], grpc.StatusCode]] = {
    errors.LogDeviceError: grpc.StatusCode.UNKNOWN,
    errors.UsageError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.InvalidSettingError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.InvalidArgumentError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.OutOfRangeError: grpc.StatusCode.OUT_OF_RANGE,
    errors.PayloadTooLargeError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnknownLogError: grpc.StatusCode.NOT_FOUND,
    errors.AccessError: grpc.StatusCode.PERMISSION_DENIED,
    errors.WrongClusterError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ConflictError: grpc.StatusCode.ABORTED,
    errors.NameTakenError: grpc.StatusCode.ALREADY_EXISTS,
    errors.InvalidOptionError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.WriterFencedError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.WriterOutOfOrderError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ReplayDiffersError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ClockAheadError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.NoSequencerError: grpc.StatusCode.UNAVAILABLE,
    errors.NotEnoughNodesError: grpc.StatusCode.UNAVAILABLE,
    errors.OverloadedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.NoSpaceError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.MetadataUnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.OutcomeUnknownError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.MetadataOutcomeUnknownError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.UnknownWriterError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.DataError: grpc.StatusCode.NOT_FOUND,
    errors.TrimmedError: grpc.StatusCode.OUT_OF_RANGE,
    errors.DataLossError: grpc.StatusCode.DATA_LOSS,
    errors.CorruptRecordError: grpc.StatusCode.DATA_LOSS,
    errors.UnreadableMetadataError: grpc.StatusCode.DATA_LOSS,
    errors.ProtocolError: grpc.StatusCode.INTERNAL,
    errors.LocalProtocolError: grpc.StatusCode.INTERNAL,
    errors.RemoteProtocolError: grpc.StatusCode.INTERNAL,
    # Of the Spark connector: they cross no wire of ours, and have a status like all others.
    errors.CheckpointError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.LogRemovedError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.CheckpointTrimmedError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.CheckpointAheadError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.CheckpointClusterError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.CheckpointFormatError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.RebuildError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.RollbackError: grpc.StatusCode.FAILED_PRECONDITION,
}
_BY_CODE: Final = {error.code: error for error in STATUSES}

# What gRPC says by itself. Everything that is not here means that the peer is none of ours.
_FOREIGN: Final[dict[grpc.StatusCode, type[LogDeviceError]]] = {
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.CANCELLED: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.UnavailableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.PayloadTooLargeError,  # all that gRPC counts
}


def to_rpc(error: LogDeviceError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, bytes], ...]]:
    """Status, text and trailing metadata for an error."""
    message = error.message[:MESSAGE_LENGTH_MAX]
    fields = [int(error.code), message, error.log, error.lsn, error.node]
    return STATUSES[type(error)], message, ((ERROR_KEY, msgpack.packb(fields)),)


def from_rpc(error: grpc.RpcError) -> LogDeviceError:
    """The error a peer reported, or what gRPC's own report means to us."""
    for key, value in _trailing(error):
        if key == ERROR_KEY:
            return _decoded(value)
    kind = _FOREIGN.get(error.code(), RemoteProtocolError)
    return kind(f"{error.code().name.lower()}: {error.details() or 'no further words'}"[:MESSAGE_LENGTH_MAX])


def is_ours(error: grpc.RpcError) -> bool:
    """Whether a node of ours has answered; if not, nobody knows what became of the call."""
    return any(key == ERROR_KEY for key, _ in _trailing(error))


def failure_of(error: LogDeviceError) -> Failure:
    """The error as an answer in a conversation."""
    return Failure(
        code=int(error.code),
        message=error.message[:MESSAGE_LENGTH_MAX],
        log=error.log,
        lsn=error.lsn,
        node=error.node,
    )


def error_from(failure: Failure) -> LogDeviceError:
    # A newer peer may know codes that we do not.
    kind = next((kind for code, kind in _BY_CODE.items() if code == failure.code), LogDeviceError)
    return kind(failure.message, log=failure.log, lsn=failure.lsn, node=failure.node)


def _trailing(error: grpc.RpcError) -> Iterable[tuple[str, Any]]:
    return error.trailing_metadata() or ()


def _decoded(value: Any) -> LogDeviceError:
    try:
        code, message, log, lsn, node = msgpack.unpackb(value)
        kind = _BY_CODE.get(code, LogDeviceError)  # a newer peer may know codes that we do not
        return kind(
            str(message),
            log=None if log is None else LogId(int(log)),
            lsn=None if lsn is None else Lsn(lsn),
            node=None if node is None else NodeId(node),
        )
    except (msgpack.UnpackException, TypeError, ValueError) as problem:
        return RemoteProtocolError(f"a peer reported an error that cannot be decoded: {problem!r}")
