"""How the text of an option becomes a value: numbers, sizes, times, positions, lists of logs.

Functions of the text alone. What cannot be read is a ValueError without a message of its own: whoever knows
the option's name says what is allowed there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

from logdevice.client.config import parse_endpoints
from logdevice.cuts import check_cut_name
from logdevice.errors import InvalidArgumentError
from logdevice.types import LSN_MAX, Location, Lsn

Parser = Callable[[str], Any]

_SIZES: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_TIMES_MS: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_TIME: Final = re.compile(r"(\d+)\s*(ms|s|min|m|h|)", re.IGNORECASE)
_NUMBER_MAX: Final = (1 << 63) - 1
_CUT: Final = "cut:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is known about one option besides its value."""

    name: str  # as users write it; Spark ignores case
    parse: Parser
    allowed: str
    shown_default: str
    text: str


def option(name: str, parse: Parser, allowed: str, text: str, *, default: Any = None, shown: str = "") -> Any:
    """A field of a class of options. `shown` is the default as a user would write it."""
    about = {"name": name, "parse": parse, "allowed": allowed, "shown_default": shown, "text": text}
    return field(default=default, metadata=about)


class Edge(Enum):
    """A position that depends on when it is looked at."""

    EARLIEST = "earliest"  # the first record that is not trimmed
    LATEST = "latest"  # behind the last record that can be read


@dataclass(frozen=True, slots=True)
class AtCut:
    """Where a named cut lies in the log."""

    name: str


Place = Edge | Lsn | AtCut
_EDGES: Final = {"earliest": Edge.EARLIEST, "oldest": Edge.EARLIEST, "latest": Edge.LATEST}


@dataclass(frozen=True, slots=True)
class Places:
    """A position for each log: by its path or number, or one for all others."""

    by_log: tuple[tuple[str, Place], ...] = ()
    others: Place | None = None

    def of(self, path: str, log: int) -> Place | None:
        """None if nothing is said about the log."""
        named = dict(self.by_log)
        return named.get(path, named.get(str(log), self.others))


def text(value: str) -> str:
    if not value.strip():
        raise ValueError
    return value.strip()


def flag(value: str) -> bool:
    flags = {"true": True, "false": False}
    if value.strip().lower() not in flags:
        raise ValueError
    return flags[value.strip().lower()]


def number(minimum: int, maximum: int = _NUMBER_MAX) -> Parser:
    def parse(value: str) -> int:
        found = int(value)
        if not minimum <= found <= maximum:
            raise ValueError
        return found

    return parse


def size(value: str) -> int:
    """Bytes, as `1048576`, `1024k` or `1m`."""
    return _with_unit(_SIZE, _SIZES, value)


def duration_ms(value: str) -> int:
    """Milliseconds, as `30000`, `30s` or `5m`."""
    return _with_unit(_TIME, _TIMES_MS, value)


def _with_unit(pattern: re.Pattern[str], units: dict[str, int], value: str) -> int:
    match = pattern.fullmatch(value.strip())
    if match is None:
        raise ValueError
    found = int(match[1]) * units[match[2].lower()]
    if not 1 <= found <= _NUMBER_MAX:
        raise ValueError
    return found


def instant_ms(value: str) -> int:
    """Milliseconds since 1970, or a time of ISO 8601 that says its time zone."""
    if value.strip().isdecimal():
        found = int(value)
        if found > _NUMBER_MAX:
            raise ValueError
        return found
    moment = datetime.fromisoformat(value.strip())
    # Without a zone the same program would read other records on another machine.
    if moment.tzinfo is None or moment.timestamp() < 0:
        raise ValueError
    return round(moment.timestamp() * 1000)


def choice(*allowed: str) -> Parser:
    def parse(value: str) -> str:
        if value.strip().lower() not in allowed:
            raise ValueError
        return value.strip().lower()

    return parse


def endpoint(value: str) -> str:
    try:
        return ",".join(parse_endpoints(value))
    except InvalidArgumentError:
        raise ValueError from None


def location(value: str) -> str:
    return str(Location.parse(value.strip()))


def names(value: str) -> tuple[str, ...]:
    """Paths and numbers of logs, as `/a,/b,7` or as a JSON list for paths with commas."""
    if value.strip().startswith("["):
        found = json.loads(value)
        if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in found):
            raise ValueError
        listed = [str(name).strip() for name in found]
    else:
        listed = [name.strip() for name in value.split(",")]
    if not listed or not all(name.startswith("/") or name.isdecimal() for name in listed):
        raise ValueError
    return tuple(dict.fromkeys(listed))


def pattern(value: str) -> str:
    try:
        re.compile(text(value))
    except re.error:
        raise ValueError from None
    return value.strip()


def places(value: str) -> Places:
    """`earliest`, `latest`, `cut:NAME`, or JSON from logs to positions; `*` stands for all others."""
    if not value.strip().startswith("{"):
        return Places(others=_place(value))
    found = json.loads(value, object_pairs_hook=_without_repetition)
    listed = {name.strip(): _place(place) for name, place in found.items()}
    others = listed.pop("*", None)
    if not all(name.startswith("/") or name.isdecimal() for name in listed):
        raise ValueError
    return Places(tuple(sorted(listed.items())), others)


def _place(value: object) -> Place:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError
    edge = _EDGES.get(value.strip().lower()) if isinstance(value, str) else None
    if edge is not None:
        return edge
    if isinstance(value, str) and value.strip().startswith(_CUT):
        return AtCut(_cut_name(value.strip().removeprefix(_CUT)))
    lsn = Lsn.parse(str(value))
    if not 0 < lsn < LSN_MAX:
        raise ValueError
    return lsn


def _cut_name(name: str) -> str:
    try:
        return check_cut_name(name)
    except InvalidArgumentError:
        raise ValueError from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)
