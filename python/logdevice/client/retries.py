"""Retries: which errors are worth a retry, and how long to pause before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_before_delay, wait_random_exponential

from logdevice.errors import LogDeviceError, NoSpaceError
from logdevice.settings import ClientSettings

Result = TypeVar("Result")


async def persistently(work: Callable[[], Awaitable[Result]], settings: ClientSettings) -> Result:
    """Does the work, and repeats it after errors that are worth a retry, for at most `call_timeout_ms`.

    Raises the last error.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception(_goes_away),
        stop=stop_before_delay(settings.call_timeout_ms / 1000),
        wait=wait_random_exponential(
            multiplier=settings.retry_pause_ms_min / 1000,
            min=settings.retry_pause_ms_min / 2000,
            max=settings.retry_pause_ms_max / 1000,
        ),
        reraise=True,
    )

    async def attempt() -> Result:  # tenacity recognises only a coroutine function as asynchronous
        return await work()

    return await retrying(attempt)


def _goes_away(error: BaseException) -> bool:
    # A full disk stays full until an operator frees space.
    return isinstance(error, LogDeviceError) and error.retriable and not isinstance(error, NoSpaceError)
