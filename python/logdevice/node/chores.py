"""Chores: what a node does again and again, whatever came of it last time, as long as the process lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from logdevice.errors import LogDeviceError

_logger = logging.getLogger(__name__)


async def repeat(name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
    """`work` is done after every interval, the first time after the first."""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            await work()
        except LogDeviceError as error:
            _logger.warning("%s was interrupted: %s", name, error)
        except Exception:
            _logger.exception("%s failed", name)
