"""Cuts: one position in each of several logs, taken together. Values, and their form as JSON.

Everything below the positions is in the cut. A fresh cut has all that was acknowledged before it was asked
for. A consistent one has, for everything that is in it, also everything that caused it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from logdevice.errors import InvalidArgumentError
from logdevice.types import LogId, Lsn

NAME_MAX: Final = 100
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_MAX - 1}}}")


class CutKind(Enum):
    FRESH = "fresh"
    CONSISTENT = "consistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutEnd:
    """Where the cut lies in one log."""

    log: LogId
    path: str
    end: Lsn  # everything below is in the cut
    entry_end: int = 0  # the log's counters there
    byte_end: int = 0
    lineage: str | None = None  # which history of the log; None: not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    kind: CutKind
    time_ms: int  # of a consistent cut: everything of this time or earlier is in it, and nothing else
    ends: tuple[CutEnd, ...]
    cookie: str = ""  # chosen by whoever asked for it; of a named cut its name

    def of(self, log: LogId) -> CutEnd | None:
        return next((end for end in self.ends if end.log == log), None)

    def to_json(self) -> dict[str, Any]:
        """64-bit numbers as text, because many who read JSON have no such numbers."""
        return {
            "name": self.cookie,
            "kind": self.kind.value,
            "time_ms": self.time_ms,
            "logs": {
                end.path: {
                    "log": int(end.log),
                    "end": str(end.end),
                    "entries": str(end.entry_end),
                    "bytes": str(end.byte_end),
                    "lineage": end.lineage,
                }
                for end in self.ends
            },
        }


def cut_from_json(plain: Mapping[str, Any]) -> Cut:
    """The cut that `to_json` wrote; InvalidArgumentError if it cannot be read."""
    try:
        ends = [
            CutEnd(
                log=LogId(int(end["log"])),
                path=str(path),
                end=Lsn.parse(end["end"]),
                entry_end=int(end["entries"]),
                byte_end=int(end["bytes"]),
                lineage=end["lineage"],
            )
            for path, end in plain["logs"].items()
        ]
        kind = CutKind(plain["kind"])
        return Cut(kind=kind, time_ms=int(plain["time_ms"]), ends=tuple(ends), cookie=str(plain["name"]))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InvalidArgumentError(f"this is no cut: {problem!r}") from None


def check_cut_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"cut name {name!r} must have 1 to {NAME_MAX} letters, digits, '.', '_' and '-', and begin with "
            "a letter or digit"
        )
    return name
