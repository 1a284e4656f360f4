"""Cuts: one position in each of several logs, taken together. The values, and their form as JSON."""

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
    """What a cut promises.

    A FRESH cut contains everything that was acknowledged before the cut was asked for. A CONSISTENT cut
    contains, for every record in it, also every record that its writer had seen before.
    """

    FRESH = "fresh"  # everything that was acknowledged before
    CONSISTENT = "consistent"  # with every record, all that its writer had seen


@dataclass(frozen=True, slots=True, kw_only=True)
class CutEnd:
    """The position of a cut in one log."""

    log: LogId
    path: str  # of the log
    end: Lsn  # everything below is in the cut
    entry_end: int = 0  # how many entries were ever appended below `end`
    byte_end: int = 0  # how many body bytes were ever appended below `end`
    lineage: str | None = None  # which history of the log; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One position in each of several logs, taken together. Everything below the positions is in the cut."""

    kind: CutKind
    time_ms: int  # a consistent cut contains exactly the records of this time or earlier
    ends: tuple[CutEnd, ...]  # one for each log
    cookie: str = ""  # a text that the caller chose; for a named cut, its name

    def of(self, log: LogId) -> CutEnd | None:
        """The position of the cut in the log with this number; None if the cut does not include the log."""
        return next((end for end in self.ends if end.log == log), None)

    def to_json(self) -> dict[str, Any]:
        """The cut as values for `json.dumps`. 64-bit numbers are text: many JSON parsers would round them."""
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
    """The cut from the values that `to_json` returned. InvalidArgumentError if they do not describe a cut."""
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
        what = f"no {problem}" if isinstance(problem, KeyError) else str(problem)
        raise InvalidArgumentError(f"this is not the JSON form of a cut: {what}") from None


def check_cut_name(name: str) -> str:
    """The name, if it is allowed; otherwise raises InvalidArgumentError."""
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"cut name {name!r} must have 1 to {NAME_MAX} characters (letters, digits, '.', '_' and '-') "
            "and begin with a letter or digit"
        )
    return name
