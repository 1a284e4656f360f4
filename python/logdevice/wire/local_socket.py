"""Where a node's data connections are on its own machine: a name beside its TCP port.

A socket of the machine needs no TCP, and the kernel moves pages of a file through it without copying them.
The name is not a file but lives in Linux's abstract namespace, which has the same bounds as loopback: who
can see the name can reach the port. Other systems have no such names; there, and for readers elsewhere, TCP
has to do. That a name belongs to the node one wants is not taken for granted: the hello tells.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

# The kernel gives what it allows, which is mostly less.
_BUFFER_BYTES: Final = 8 << 20


def local_name(host: str, port: int) -> str:
    return f"\0logdevice {host}:{port}"


def local_socket() -> socket.socket:
    """OSError where there is no such thing."""
    if sys.platform != "linux":
        raise OSError("names of sockets that are no files exist on Linux only")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def is_local(connection: socket.socket) -> bool:
    return connection.family == getattr(socket, "AF_UNIX", None)


def widen(connection: socket.socket) -> None:
    """Makes room for as much of a message as possible: each time it is full both sides have to wake up."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
