"""A node that can be made slow: while the file `slow` is beside its configuration, it sends each message to
readers and peers 50 ms late, one after the other.

    python -m logdevice.bench.against_kafka.slow_process --config ...

is `logdeviced` otherwise.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from logdevice.node.main import main
from logdevice.wire.data_server import DataServerStream
from logdevice.wire.server import ServerStream

DELAY_S: Final = 0.05
FLAG: Final = "slow"

Send = Callable[[Any, Any], Coroutine[Any, Any, None]]


def late(send: Send, flag: Path) -> Send:
    async def send_late(stream: Any, message: Any) -> None:
        if flag.exists():
            await asyncio.sleep(DELAY_S)
        await send(stream, message)

    return send_late


if __name__ == "__main__":
    flag = Path(sys.argv[sys.argv.index("--config") + 1]).parent / FLAG
    ServerStream.send = late(ServerStream.send, flag)  # type: ignore[assignment, method-assign]
    DataServerStream.send_parts = late(DataServerStream.send_parts, flag)  # type: ignore[assignment, method-assign]
    sys.exit(main())
