"""Free ports on loopback for the nodes of a local cluster.

They are taken from below the range out of which the system serves outgoing connections: a node that was
killed must get its port back, and a port of that range may meanwhile belong to somebody's connection.
"""

from __future__ import annotations

import random
import socket
from typing import Final

from logdevice.errors import InvalidArgumentError

PORT_MAX: Final = 65_535
_CHOSEN_FROM: Final = range(15_000, 32_000)


def choose_ports(count: int, base: int | None = None) -> list[int]:
    """So many free ports: from `base` on, or anywhere."""
    if base is None:
        # random.Random() of its own: two processes that start at once look in different places.
        candidates = random.Random().sample(_CHOSEN_FROM, len(_CHOSEN_FROM))
    else:
        if not 1 <= base <= PORT_MAX - count + 1:
            raise InvalidArgumentError(
                f"{count} ports from {base} on do not fit between 1 and {PORT_MAX}; choose another base port"
            )
        candidates = list(range(base, base + count))
    chosen: list[int] = []
    for port in candidates:
        if len(chosen) == count:
            break
        if is_free(port):
            chosen.append(port)
        elif base is not None:
            raise InvalidArgumentError(f"port {port} is in use; choose another base port")
    return chosen


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server will: a port whose last connection is only waiting to be forgotten is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
