"""Local sockets for data connections between processes on one machine, as an alternative to the TCP port.

A local socket needs no TCP, and the kernel moves pages of a file through it without copying them. Its name is
not a file but lives in Linux's abstract namespace, which has the same limits as loopback: a process that can
see the name can also reach the port. Other systems have no such names; there, and for readers on other
machines, TCP is used. The name may belong to another node, so the hello checks which node it is.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

# The kernel usually allows less.
_BUFFER_BYTES: Final = 8 << 20


def local_name(host: str, port: int) -> str:
    return f"\0logdevice {host}:{port}"


def local_socket() -> socket.socket:
    """A new local socket. Raises OSError on a system without abstract names."""
    if sys.platform != "linux":
        raise OSError("abstract socket names exist only on Linux")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def is_local(connection: socket.socket) -> bool:
    return connection.family == getattr(socket, "AF_UNIX", None)


def widen(connection: socket.socket) -> None:
    """Enlarges the send buffer: each time it is full, both sides must wake up once more."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
