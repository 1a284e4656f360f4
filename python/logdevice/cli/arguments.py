"""What people write on a command line, turned into values: LSNs, times, nodes, attributes.

Each function is an argparse `type`: it returns the value or raises argparse's error, which names the
argument and says what would have been right.
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import UTC, datetime
from typing import Final

from logdevice.types import Lsn, NodeId

TAIL: Final = "tail"
_AGO = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Numbers up to here are seconds since 1970, larger ones milliseconds: 1e11 s is the year 5138.
_SECONDS_MAX: Final = 100_000_000_000


def lsn(text: str) -> Lsn:
    try:
        return Lsn.parse(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def lsn_or_tail(text: str) -> Lsn | None:
    """None: the log's tail."""
    return None if text.strip().lower() == TAIL else lsn(text)


def log(text: str) -> str | int:
    """A path, or a number."""
    return int(text) if text.isdecimal() else text


def node(text: str) -> NodeId:
    number = text.strip().upper().removeprefix("N")
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no node; write its number, such as 3 or N3")
    return NodeId(int(number))


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count; write a number of at least 1")
    return int(text)


def attribute(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def timestamp(text: str) -> int:
    """Milliseconds since 1970 for `2026-01-31T12:00:00Z`, `1h` (that long ago), or a number."""
    return timestamp_at(text, now_ms=time.time_ns() // 1_000_000)


def timestamp_at(text: str, *, now_ms: int) -> int:
    text = text.strip()
    if text == "now":
        return now_ms
    if match := _AGO.fullmatch(text):
        return now_ms - int(match[1]) * _UNIT_MS[match[2]]
    if text.isdecimal():
        number = int(text)
        return number * 1000 if number <= _SECONDS_MAX else number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time; write 2026-01-31T12:00:00Z, or 30s, 5m, 1h, 2d for so long ago, 'now', "
            "or a number of seconds or milliseconds since 1970"
        ) from None
    return int(moment.astimezone(UTC).timestamp() * 1000)
