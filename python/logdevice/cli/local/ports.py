"""Free ports on loopback for the nodes of a local cluster.

They are below the range from which the system takes ports for outgoing connections: a node that was killed
must get its port back, and another process's connection may have taken a port of that range meanwhile.
"""

from __future__ import annotations

import random
import socket
from typing import Final

from logdevice.errors import InvalidArgumentError

PORT_MAX: Final = 65_535
_CHOSEN_FROM: Final = range(15_000, 32_000)


def choose_ports(count: int, base: int | None = None) -> list[int]:
    """`count` free ports: the ones from `base` on, or random ones."""
    if base is None:
        # A new random.Random(), so that two processes that start at the same time try different ports.
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
        # As the server does: a port whose last connection is in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
