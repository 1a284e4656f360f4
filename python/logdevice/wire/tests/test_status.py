"""Errors across a connection: the caller gets the error that was raised."""

from __future__ import annotations

import grpc
import pytest

from logdevice.errors import (
    LogDeviceError,
    PayloadTooLargeError,
    RemoteProtocolError,
    UnavailableError,
    UsageError,
    kinds,
)
from logdevice.protocol.messages.service import Done, Failure
from logdevice.types import LogId, Lsn, NodeId
from logdevice.wire.codec import encode
from logdevice.wire.status import ERROR_KEY, from_rpc, to_rpc

ALL = list(kinds())


def rpc_error(
    status: grpc.StatusCode, details: str | None = None, metadata: tuple[tuple[str, bytes], ...] = ()
) -> grpc.RpcError:
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_arrives_as_it_was_raised(kind: type[LogDeviceError]) -> None:
    status, details, metadata = to_rpc(kind("öffnen failed", log=LogId(7), lsn=Lsn(5), node=NodeId(3)))
    arrived = from_rpc(rpc_error(status, details, metadata))
    assert type(arrived) is kind
    assert (arrived.message, arrived.log, arrived.lsn, arrived.node) == ("öffnen failed", 7, 5, 3)


@pytest.mark.parametrize("kind", ALL)
def test_a_tool_that_knows_only_grpc_statuses_sees_which_errors_may_be_retried(
    kind: type[LogDeviceError],
) -> None:
    status, _, _ = to_rpc(kind("no"))
    assert (status is grpc.StatusCode.UNAVAILABLE) == kind.retriable


def test_a_long_message_is_cut() -> None:
    _, details, metadata = to_rpc(UsageError("x" * 100_000))
    assert len(details) == 1000
    assert len(metadata[0][1]) < 1100


def test_an_unknown_error_code_is_still_an_error() -> None:
    metadata = ((ERROR_KEY, encode(Failure(code=999, message="new trouble"))),)
    arrived = from_rpc(rpc_error(grpc.StatusCode.UNKNOWN, metadata=metadata))
    assert type(arrived) is LogDeviceError
    assert arrived.message == "new trouble"


@pytest.mark.parametrize(
    "value",
    [b"\xc1", b"", encode(Done()), encode(Failure(code=1, message="x"))[:-1]],
)
def test_an_error_that_cannot_be_decoded_is_an_error_too(value: bytes) -> None:
    arrived = from_rpc(rpc_error(grpc.StatusCode.UNKNOWN, metadata=((ERROR_KEY, value),)))
    assert type(arrived) is RemoteProtocolError


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, UnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, UnavailableError),
        (grpc.StatusCode.CANCELLED, UnavailableError),
        (grpc.StatusCode.INTERNAL, UnavailableError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, PayloadTooLargeError),
        (grpc.StatusCode.UNIMPLEMENTED, RemoteProtocolError),
        (grpc.StatusCode.UNKNOWN, RemoteProtocolError),
    ],
)
def test_errors_of_grpc_itself_are_translated(status: grpc.StatusCode, kind: type[LogDeviceError]) -> None:
    error = rpc_error(status, "socket closed")
    assert type(from_rpc(error)) is kind
    assert from_rpc(error).message == f"{status.name.lower()}: socket closed"
    assert "no details" in from_rpc(rpc_error(status)).message
