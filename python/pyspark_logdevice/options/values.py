"""The kinds of option values other than numbers and choices: sizes, times, positions, lists of logs.

Text that cannot be read raises ValueError without a message, because the kind says what is allowed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from logdevice.client.config import parse_endpoints
from logdevice.cuts import check_cut_name
from logdevice.settings.declarations import NUMBER_MAX, Kind, duration_ms
from logdevice.types import LSN_MAX, Location, Lsn

_SIZES: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_CUT: Final = "cut:"


class Edge(Enum):
    """A position that depends on when the log is asked."""

    EARLIEST = "earliest"  # the first record that is not trimmed
    LATEST = "latest"  # after the last record that can be read


@dataclass(frozen=True, slots=True)
class AtCut:
    """The position of a named cut in the log."""

    name: str


Place = Edge | Lsn | AtCut
_EDGES: Final = {"earliest": Edge.EARLIEST, "oldest": Edge.EARLIEST, "latest": Edge.LATEST}


@dataclass(frozen=True, slots=True)
class Places:
    """A position for each log: by its path or number, or one for all others."""

    by_log: tuple[tuple[str, Place], ...] = ()
    others: Place | None = None

    def of(self, path: str, log: int) -> Place | None:
        """The position for a log; None if the option has none for it."""
        named = dict(self.by_log)
        return named.get(path, named.get(str(log), self.others))


def name_of(what: str) -> Kind:
    """Any text that is not blank; `what` describes it in errors."""
    return Kind(what, _text)


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError
    return value.strip()


def _size(value: str) -> int:
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError
    return _within(int(match[1]) * _SIZES[match[2].lower()])


def _within(value: int) -> int:
    if not 1 <= value <= NUMBER_MAX:
        raise ValueError
    return value


def _instant_ms(value: str) -> int:
    if value.strip().isdecimal():
        found = int(value)
        if found > NUMBER_MAX:
            raise ValueError
        return found
    moment = datetime.fromisoformat(value.strip())
    # Without a time zone the same program would read different records on another machine.
    if moment.tzinfo is None or moment.timestamp() < 0:
        raise ValueError
    return round(moment.timestamp() * 1000)


def _names(value: str) -> tuple[str, ...]:
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


def _pattern(value: str) -> str:
    try:
        re.compile(_text(value))
    except re.error:
        raise ValueError from None
    return value.strip()


def _places(value: str) -> Places:
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
        return AtCut(check_cut_name(value.strip().removeprefix(_CUT)))
    lsn = Lsn.parse(str(value))
    if not 0 < lsn < LSN_MAX:
        raise ValueError
    return lsn


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


ENDPOINTS: Final = Kind("host:port,host:port", lambda value: ",".join(parse_endpoints(value)))
LOGS: Final = Kind(
    "paths and numbers of logs, such as /ads/clicks,/ads/views,7, or a JSON list of them", _names
)
PATTERN: Final = Kind("a regular expression", _pattern)
PLACES: Final = Kind(
    'earliest, latest, cut:NAME, an LSN, or JSON such as {"/a": "e5n3", "7": "latest", "*": "earliest"}',
    _places,
)
INSTANT: Final = Kind(
    "milliseconds since 1970, or ISO 8601 with a time zone, such as 2026-11-16T08:00:00Z", _instant_ms
)
DURATION: Final = Kind(
    "a time, such as 500ms, 30s or 5m; a plain number is milliseconds",
    lambda value: _within(duration_ms(value)),
)
SIZE: Final = Kind("bytes, such as 1048576, 512k or 64m", _size)
LOCATION: Final = Kind(
    "region.datacenter.cluster.row.rack; trailing parts may be left out",
    lambda value: str(Location.parse(value.strip())),
)
