"""Errors across a connection: always as a Failure, whichever way they travel.

In a conversation and on a data connection a Failure is a message. A gRPC call that fails carries it in its
trailing metadata. What comes without it was said by gRPC, or by another server than a node, and is translated
by its status.
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
# Another one than in version 1: so its callers show the text of the status, which says what is wrong.
ERROR_KEY: Final = "logdevice-failure-bin"
# Metadata has to fit into 8 KB together with everything else that is in it.
MESSAGE_LENGTH_MAX: Final = 1000

# What gRPC says by itself. Everything that is not here means that the peer is no node.
_FOREIGN: Final[dict[grpc.StatusCode, type[LogDeviceError]]] = {
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.CANCELLED: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.UnavailableError,
    # gRPC forgets why a stream ended if it ends while it is written to, and says this.
    grpc.StatusCode.INTERNAL: errors.UnavailableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.PayloadTooLargeError,  # all that gRPC counts
}


def to_rpc(error: LogDeviceError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, bytes], ...]]:
    """Status, text and trailing metadata for an error. The status is for tools that know gRPC alone."""
    status = grpc.StatusCode.UNAVAILABLE if error.retriable else grpc.StatusCode.FAILED_PRECONDITION
    failure = failure_of(error)
    return status, failure.message, ((ERROR_KEY, encode(failure)),)


def from_rpc(error: grpc.RpcError) -> LogDeviceError:
    """The error a peer reported, or what gRPC's own report means to us."""
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_KEY:
            return reported(value)
    kind = _FOREIGN.get(error.code(), RemoteProtocolError)
    return kind(f"{error.code().name.lower()}: {error.details() or 'no further words'}"[:MESSAGE_LENGTH_MAX])


def told(error: Exception, what: str) -> LogDeviceError:
    """What a caller hears when the handling of `what` ends so: of a mistake of ours no more than its name."""
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
    # A newer peer may know codes that we do not.
    kind = next((kind for kind in errors.kinds() if kind.code == failure.code), LogDeviceError)
    return kind(failure.message, log=failure.log, lsn=failure.lsn, node=failure.node)


def reported(value: bytes | memoryview) -> LogDeviceError:
    """The error that a peer reports by an encoded Failure."""
    try:
        failure = decode(value)
    except RemoteProtocolError as problem:
        return RemoteProtocolError(f"a peer reported an error that cannot be decoded: {problem.message}")
    if not isinstance(failure, Failure):
        return RemoteProtocolError(f"a peer reports an error by {type(failure).__name__}")
    return error_from(failure)
