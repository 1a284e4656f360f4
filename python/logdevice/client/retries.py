"""Trying again: the one place that says which errors are worth it, and how long to pause."""

from __future__ import annotations

from tenacity import AsyncRetrying, retry_if_exception, stop_before_delay, wait_random_exponential

from logdevice.client_settings import ClientSettings
from logdevice.errors import LogDeviceError, NoSpaceError


def retrying(settings: ClientSettings, timeout_ms: int) -> AsyncRetrying:
    """Tries until it works, the error is of no kind that goes away, or the time is up."""
    return AsyncRetrying(
        retry=retry_if_exception(_goes_away),
        stop=stop_before_delay(timeout_ms / 1000),
        wait=wait_random_exponential(
            multiplier=settings.retry_pause_ms_min / 1000,
            min=settings.retry_pause_ms_min / 2000,
            max=settings.retry_pause_ms_max / 1000,
        ),
        reraise=True,
    )


def _goes_away(error: BaseException) -> bool:
    # A disk that is full stays full until somebody does something about it.
    return isinstance(error, LogDeviceError) and error.retriable and not isinstance(error, NoSpaceError)
