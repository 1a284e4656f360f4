"""Converts command-line arguments from text to values: LSNs, times, nodes, attributes.

Each function is an argparse `type`: it returns the value or raises argparse's error, which names the argument
and says what is allowed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from logdevice.settings.declarations import Kind, duration_ms, integer
from logdevice.types import Lsn, NodeId

TAIL: Final = "tail"
# Numbers up to here are seconds since 1970, larger ones milliseconds: 1e11 s is the year 5138.
_SECONDS_MAX: Final = 100_000_000_000


def log(text: str) -> str | int:
    """The number of a log if the text is one, else its path."""
    return int(text) if text.isdecimal() else text


def timestamp_at(text: str, *, now_ms: int) -> int:
    """Milliseconds since 1970 for `2026-01-31T12:00:00Z`, `1h` (that long ago), `now`, or a number."""
    text = text.strip()
    if text == "now":
        return now_ms
    if text.isdecimal():
        number = int(text)
        return number * 1000 if number <= _SECONDS_MAX else number
    try:
        return now_ms - duration_ms(text)
    except ValueError:
        return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)


def _node(text: str) -> NodeId:
    return NodeId(integer(0).parse(text.strip().upper().removeprefix("N")))


def _attribute(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError
    return name.strip(), value.strip()


def _argument(kind: Kind) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return kind.parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {kind.allowed}, got {text!r}") from None

    return read


lsn = _argument(Kind("an LSN, such as e5n3, a number, oldest or max", Lsn.parse))
# The value None stands for the log's tail.
lsn_or_tail = _argument(
    Kind(
        "an LSN (such as e5n3, a number, oldest or max) or tail",
        lambda text: None if text.strip().lower() == TAIL else Lsn.parse(text),
    )
)
node = _argument(Kind("the number of a node, such as 3 or N3", _node))
count = _argument(integer(1))
attribute = _argument(Kind("of the form NAME=VALUE", _attribute))
timestamp = _argument(
    Kind(
        "a time: 2026-01-31T12:00:00Z; or 30s, 5m, 1h, 2d for that long ago; or now; or seconds or "
        "milliseconds since 1970",
        lambda text: timestamp_at(text, now_ms=time.time_ns() // 1_000_000),
    )
)
