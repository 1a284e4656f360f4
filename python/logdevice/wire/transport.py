"""What both ends of a connection share: names, channel options, the size check, and two precautions.

gRPC only carries bytes: handlers are generic, and requests and answers are `bytes` from `codec.py`. The
options come from measurements; docs/wire.md lists them.
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

# Callers pause between attempts by themselves. gRPC's own pauses, up to two minutes, would hide a node that
# has long been back.
RECONNECT_PAUSE_MS_MIN: Final = 100
RECONNECT_PAUSE_MS_MAX: Final = 1_000

Options = list[tuple[str, int]]


def path(method: str) -> str:
    return f"/{SERVICE}/{method}"


def data_port_metadata(port: int) -> tuple[tuple[str, str], ...]:
    """Metadata of the answer to a hello: the port where the node serves readers outside gRPC; 0: none."""
    return ((DATA_PORT_KEY, str(port)),)


def data_port_of(metadata: Iterable[tuple[str, Any]] | None) -> int:
    """The data port from the metadata of a hello. Raises RemoteProtocolError if it is missing or wrong."""
    ports = [value for key, value in metadata or () if key == DATA_PORT_KEY]
    if len(ports) != 1 or not ports[0].isdecimal() or int(ports[0]) > 65535:
        raise RemoteProtocolError(f"the answer to the hello must name one data port, got {ports}")
    return int(ports[0])


def options(settings: WireSettings) -> Options:
    """The options of both sides. They notice a vanished peer within keepalive interval plus timeout."""
    return [
        # A larger message is refused before it is held in memory. `check_size` checks what is sent.
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
        # A pool that a forked process shares with its parent breaks calls of both.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", RECONNECT_PAUSE_MS_MIN),
        ("grpc.min_reconnect_backoff_ms", settings.connect_timeout_ms),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_PAUSE_MS_MAX),
    ]


def server_options(settings: WireSettings) -> Options:
    return [
        *options(settings),
        # Clients may send keepalive pings as often as they like.
        ("grpc.http2.max_ping_strikes", 0),
        # Two nodes on one port would each get some of the calls.
        ("grpc.so_reuseport", 0),
    ]


def check_size(data: bytes, settings: WireSettings) -> bytes:
    """Returns `data`. Raises PayloadTooLargeError if it is larger than a message may be."""
    if len(data) > settings.message_bytes_max:
        raise PayloadTooLargeError(
            f"a message has {len(data)} bytes, message_bytes_max allows {settings.message_bytes_max}"
        )
    return data


def tune_malloc() -> bool:
    """Makes malloc keep freed memory in the process.

    Otherwise it would return memory to the system and allocate it again with every message, which takes up to
    40 % of a reader's time. Call this once, early. Returns False on a system without mallopt.
    """
    mmap_threshold, trim_threshold, top_pad = -3, -1, -2
    mallopt: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((mmap_threshold, 1 << 30), (trim_threshold, (1 << 31) - 1), (top_pad, 64 << 20))
    results = [mallopt(option, value) for option, value in wanted]
    return all(results)


class ForkGuard:
    """Notices whether this process was forked from one that had used gRPC.

    gRPC's threads stay even after the last connection is closed, but they do not exist in a forked child.
    Calls of the child would wait for them forever. A child that is spawned has no such problem.
    """

    def __init__(self) -> None:
        self._is_used = False
        self._is_stranded = False
        os.register_at_fork(after_in_child=self._forked)

    def opened(self) -> None:
        """Called before a connection is opened. Raises LocalProtocolError if it could only hang."""
        if self._is_stranded:
            raise LocalProtocolError(
                "this process was forked from a process that had connections, so it cannot open any; "
                "fork before the first connection, or spawn the process"
            )
        self._is_used = True

    def _forked(self) -> None:
        self._is_stranded = self._is_used


FORK_GUARD: Final = ForkGuard()
