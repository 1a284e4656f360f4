"""What both ends of a connection share: names, channel options, the size check, and two precautions.

gRPC carries bytes and nothing else: handlers are generic, requests and answers are `bytes` that
`codec.py` made. The options come from measurements, docs/wire.md says which.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any, Final

from logdevice.errors import LocalProtocolError, PayloadTooLargeError, RemoteProtocolError
from logdevice.settings import WireSettings

SERVICE: Final = "logdevice"
HELLO_METHOD: Final = "hello"
HELLO_KEY: Final = "logdevice-hello-bin"
DATA_PORT_KEY: Final = "logdevice-data-port"

# Whoever calls has pauses of their own between attempts; gRPC's, up to two minutes, would hide a node
# that has long been back.
RECONNECT_PAUSE_MS_MIN: Final = 100
RECONNECT_PAUSE_MS_MAX: Final = 1_000

Options = list[tuple[str, int]]


def path(method: str) -> str:
    return f"/{SERVICE}/{method}"


def data_port_metadata(port: int) -> tuple[tuple[str, str], ...]:
    """Comes with the answer to a hello: where a node serves readers outside of gRPC; 0: nowhere."""
    return ((DATA_PORT_KEY, str(port)),)


def data_port_of(metadata: Iterable[tuple[str, Any]] | None) -> int:
    ports = [value for key, value in metadata or () if key == DATA_PORT_KEY]
    if len(ports) != 1 or not ports[0].isdecimal() or int(ports[0]) > 65535:
        raise RemoteProtocolError(f"the answer to the hello names no data port but {ports}")
    return int(ports[0])


def options(settings: WireSettings) -> Options:
    """A peer that vanished is noticed after at most keepalive_interval_ms + keepalive_timeout_ms."""
    return [
        # Refused before it is held in memory; what we send is checked by `check_size`.
        ("grpc.max_receive_message_length", settings.message_bytes_max),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", settings.keepalive_interval_ms),
        ("grpc.keepalive_timeout_ms", settings.keepalive_timeout_ms),
        # The keepalive timeout alone does nothing: gRPC waits a minute for the answer to a ping.
        ("grpc.http2.ping_timeout_ms", settings.keepalive_timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def client_options(settings: WireSettings) -> Options:
    return [
        *options(settings),
        # A pool shared with the process this one was forked from breaks calls of both.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", RECONNECT_PAUSE_MS_MIN),
        ("grpc.min_reconnect_backoff_ms", settings.connect_timeout_ms),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_PAUSE_MS_MAX),
    ]


def server_options(settings: WireSettings) -> Options:
    return [
        *options(settings),
        # How often a client may ask whether we are there is its own affair.
        ("grpc.http2.max_ping_strikes", 0),
        # Two nodes on one port would each get some of the calls.
        ("grpc.so_reuseport", 0),
    ]


def check_size(data: bytes, settings: WireSettings) -> bytes:
    if len(data) > settings.message_bytes_max:
        raise PayloadTooLargeError(
            f"a message has {len(data)} bytes, allowed are {settings.message_bytes_max}"
        )
    return data


def tune_malloc() -> bool:
    """Keeps freed memory in the process instead of giving it back and asking for it again with every
    message: up to 40 % of a reader's time. To be called once, early; False where there is no mallopt.
    """
    mmap_threshold, trim_threshold, top_pad = -3, -1, -2
    mallopt: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((mmap_threshold, 1 << 30), (trim_threshold, (1 << 31) - 1), (top_pad, 64 << 20))
    results = [mallopt(option, value) for option, value in wanted]
    return all(results)


class ForkGuard:
    """Knows whether this process was forked from one that had used gRPC.

    gRPC's threads, which stay when the last connection is closed, do not come along into a child, and
    whatever the child then calls waits for them forever. A child that is spawned is fine.
    """

    def __init__(self) -> None:
        self._is_used = False
        self._is_stranded = False
        os.register_at_fork(after_in_child=self._forked)

    def opened(self) -> None:
        if self._is_stranded:
            raise LocalProtocolError(
                "this process was forked from one that has had connections and cannot have its own; "
                "fork before the first connection, or spawn"
            )
        self._is_used = True

    def _forked(self) -> None:
        self._is_stranded = self._is_used


FORK_GUARD: Final = ForkGuard()
