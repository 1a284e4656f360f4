"""A proxy before a Kafka broker that can be made slow: it then sends each answer 50 ms late, one after the
other. It finds the end of an answer by the length at its beginning.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from logdevice.bench.against_kafka.slow_process import DELAY_S
from logdevice.client.loop_thread import shared

_CHUNK_BYTES: Final = 1 << 20


class SlowProxy:
    def __init__(self, port: int) -> None:
        """Will listen on `port`; `start` names the broker."""
        self.port, self.is_slow = port, False
        self._broker_port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, broker_port: int) -> None:
        self._broker_port = broker_port
        shared().run(self._listen())

    def stop(self) -> None:
        shared().run(self._close())

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, limit=2 * _CHUNK_BYTES
        )

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(
                "127.0.0.1", self._broker_port, limit=2 * _CHUNK_BYTES
            )
        except OSError:
            writer.close()
            return
        for work in (_pass_on(reader, there_writer), self._answer(there_reader, writer)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(4)
                if self.is_slow:
                    await asyncio.sleep(DELAY_S)
                writer.write(head)
                left = int.from_bytes(head, "big")
                while left:
                    data = await reader.readexactly(min(left, _CHUNK_BYTES))
                    writer.write(data)
                    await writer.drain()
                    left -= len(data)
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
