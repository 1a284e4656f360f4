"""Errors across a connection: they always travel as a Failure.

In a conversation and on a data connection, a Failure is a message. A gRPC call that fails carries it in its
trailing metadata. An error without a Failure comes from gRPC itself, or from a server that is not a node; it
is translated by its gRPC status.
"""

from __future__ import annotations

import logging
from typing import Final

import grpc

from logdevice import errors
from logdevice.errors import LogDeviceError, RemoteProtocolError
from logdevice.protocol.messages.service import Failure
from logdevice.wire.codec import decode, encode

_logger = logging.getLogger(__name__)
# Not the key of version 1, so that callers of that version show the text of the status, which explains it.
ERROR_KEY: Final = "logdevice-failure-bin"
# All metadata of a call together must fit into 8 KB.
MESSAGE_LENGTH_MAX: Final = 1000

# Statuses that gRPC itself reports. Any other status means that the peer is not a node.
_FOREIGN: Final[dict[grpc.StatusCode, type[LogDeviceError]]] = {
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.CANCELLED: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.UnavailableError,
    # If a stream ends during a write, gRPC forgets why it ended and reports this.
    grpc.StatusCode.INTERNAL: errors.UnavailableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.PayloadTooLargeError,  # gRPC limits only sizes
}


def to_rpc(error: LogDeviceError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, bytes], ...]]:
    """Status, text and trailing metadata for an error. The status is for tools that only know gRPC."""
    status = grpc.StatusCode.UNAVAILABLE if error.retriable else grpc.StatusCode.FAILED_PRECONDITION
    failure = failure_of(error)
    return status, failure.message, ((ERROR_KEY, encode(failure)),)


def from_rpc(error: grpc.RpcError) -> LogDeviceError:
    """The error that a peer reported, or the LogDeviceError for an error of gRPC itself."""
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_KEY:
            return reported(value)
    kind = _FOREIGN.get(error.code(), RemoteProtocolError)
    return kind(f"{error.code().name.lower()}: {error.details() or 'no details'}"[:MESSAGE_LENGTH_MAX])


def error_for_caller(error: Exception, what: str) -> LogDeviceError:
    """The error that a caller gets if handling `what` raised `error`.

    Any other exception than a LogDeviceError is a bug: it is logged, and the caller gets only its name.
    """
    if isinstance(error, LogDeviceError):
        return error
    _logger.error("%s failed", what, exc_info=error)
    return LogDeviceError(f"the node failed to handle {what}: {type(error).__name__}")


def failure_of(error: LogDeviceError) -> Failure:
    return Failure(
        code=int(error.code),
        message=error.message[:MESSAGE_LENGTH_MAX],
        log=error.log,
        lsn=error.lsn,
        node=error.node,
    )


def error_from(failure: Failure) -> LogDeviceError:
    # A newer peer may send codes that this version does not know.
    kind = next((kind for kind in errors.kinds() if kind.code == failure.code), LogDeviceError)
    return kind(failure.message, log=failure.log, lsn=failure.lsn, node=failure.node)


def reported(value: bytes | memoryview) -> LogDeviceError:
    """The error that a peer reports by an encoded Failure."""
    try:
        failure = decode(value)
    except RemoteProtocolError as problem:
        return RemoteProtocolError(f"a peer reported an error that cannot be decoded: {problem.message}")
    if not isinstance(failure, Failure):
        return RemoteProtocolError(f"a peer reported an error as {type(failure).__name__}, not as Failure")
    return error_from(failure)
