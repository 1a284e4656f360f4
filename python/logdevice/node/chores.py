"""Chores: what a node does again and again, whatever came of it last time, as long as the process lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from logdevice.errors import LogDeviceError

_logger = logging.getLogger(__name__)


class Chores:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        """`work` is done after every interval, the first time after the first."""
        self._tasks.append(asyncio.create_task(_run(name, interval_ms, work)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            await work()
        except LogDeviceError as error:
            _logger.warning("%s was interrupted: %s", name, error)
        except Exception:
            _logger.exception("%s failed", name)
