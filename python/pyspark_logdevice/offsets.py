"""Where a query is: the offsets that Spark keeps in the checkpoint, as values and as JSON.

    {"version": 1, "cluster": "ads", "logs": {"7": {"path": "/ads/clicks", "next": "4294967301", ...}}}

Spark compares offsets as text and keeps them for as long as the query lives, so the text is canonical: logs
by number, fields in one order, 64-bit numbers as text. An end says everything that decides how its batch is
read: where the query began in each log, and where tasks may begin. So a batch that is run again is cut in the
same way, and what `latest` meant when the query was first started is never forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from logdevice.errors import CheckpointFormatError
from logdevice.types import LSN_MAX, LogId, Lsn

VERSION: Final = 1
# The offset of a query that has not begun. What it stands for is in the end of the first batch.
INITIAL: Final[Mapping[str, Any]] = {"version": VERSION, "start": "initial"}

_NUMBER_MAX: Final = (1 << 63) - 1
_POSITION_FIELDS: Final = ("path", "next", "from", "lineage", "marks")
_PURGED: Final = "purged"
_OPTIONAL_FIELDS: Final = ("undone", _PURGED)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a log, and how much the log ever held below it."""

    lsn: Lsn
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Undone:
    """What was read of a log before and is to be undone, because the log has lost some of it."""

    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far one log was read."""

    path: str  # when the batch was planned; rows carry it
    since: Lsn  # where the query began in this log
    # Of the stretch that the batch read: its start, where tasks may begin, its end. The end counts what was
    # appended, which may be a little more than what can be read yet; the others are exact.
    marks: tuple[Mark, ...]
    lineage: str | None = None  # which history of the log was read; None: it had none yet
    undone: Undone | None = None  # what this batch says is to be undone, before it reads on
    # Of a keyed log: how far it had removed deletions when the query began in it.
    purged_seen: Lsn = Lsn(0)

    @property
    def next(self) -> Lsn:
        """The first LSN that was not read."""
        return self.marks[-1].lsn

    def moved(self, path: str, marks: tuple[Mark, ...]) -> Position:
        """The position behind a stretch that was read."""
        return replace(self, path=path, marks=marks)

    def resting(self) -> Position:
        """The same position, for a batch that does not move it."""
        return replace(self, marks=self.marks[-1:])


@dataclass(frozen=True, slots=True)
class Offsets:
    cluster: str
    logs: Mapping[LogId, Position]

    def to_json(self) -> dict[str, Any]:
        logs = {str(int(log)): _position_to_json(self.logs[log]) for log in sorted(self.logs)}
        return {"version": VERSION, "cluster": self.cluster, "logs": logs}


def from_json(plain: Mapping[str, Any]) -> Offsets | None:
    """The offsets that `to_json` wrote; None for those of a query that has not begun."""
    version = plain.get("version")
    if type(version) is not int or version < 1:
        raise CheckpointFormatError(f"the checkpoint has no version, got {version!r}")
    if version > VERSION:
        raise CheckpointFormatError(
            f"the checkpoint is of version {version}; this program reads up to version {VERSION}"
        )
    if dict(plain) == dict(INITIAL):
        return None
    cluster, logs = plain.get("cluster"), plain.get("logs")
    if not isinstance(cluster, str) or not isinstance(logs, Mapping) or len(plain) != 3:
        raise _damaged("the whole", plain)
    return Offsets(cluster, {_log(log): _position(log, position) for log, position in logs.items()})


def _position_to_json(position: Position) -> dict[str, Any]:
    undone = position.undone
    # Only where there is something to say: most logs are not keyed.
    purged = {_PURGED: str(int(position.purged_seen))} if position.purged_seen else {}
    return {
        "path": position.path,
        "next": str(int(position.next)),
        "from": str(int(position.since)),
        "lineage": position.lineage,
        "marks": [[str(int(mark.lsn)), str(mark.entries), str(mark.bytes)] for mark in position.marks],
        **({"undone": [str(int(part)) for part in (undone.log, undone.start, undone.end)]} if undone else {}),
        **purged,
    }


def _log(text: str) -> LogId:
    return LogId(_number("the number of a log", text))


def _position(log: str, plain: Any) -> Position:
    optional = tuple(name for name in _OPTIONAL_FIELDS if isinstance(plain, Mapping) and name in plain)
    if not isinstance(plain, Mapping) or tuple(plain) != _POSITION_FIELDS + optional:
        raise _damaged(f"log {log}", plain)
    path, lineage, marks = plain["path"], plain["lineage"], plain["marks"]
    if not isinstance(path, str) or not isinstance(lineage, str | None):
        raise _damaged(f"log {log}", plain)
    if not isinstance(marks, list) or not marks:
        raise _damaged(f"marks of log {log}", marks)
    found = tuple(_mark(f"marks of log {log}", mark) for mark in marks)
    lsns = [mark.lsn for mark in found]
    if lsns != sorted(lsns) or lsns[-1] != _number(f"next of log {log}", plain["next"]):
        raise _damaged(f"marks of log {log}", marks)
    return Position(
        path=path,
        since=Lsn(_number(f"from of log {log}", plain["from"])),
        marks=found,
        lineage=lineage,
        undone=_undone(f"undone of log {log}", plain["undone"]) if "undone" in plain else None,
        purged_seen=Lsn(_number(f"purged of log {log}", plain.get(_PURGED, "0"))),
    )


def _undone(field: str, plain: Any) -> Undone:
    if not isinstance(plain, list) or len(plain) != 3:
        raise _damaged(field, plain)
    log, start, end = (_number(field, number) for number in plain)
    if start >= end:
        raise _damaged(field, plain)
    return Undone(LogId(log), Lsn(start), Lsn(end))


def _mark(field: str, plain: Any) -> Mark:
    if not isinstance(plain, list) or len(plain) != 3:
        raise _damaged(field, plain)
    lsn, entries, size = (_number(field, number) for number in plain)
    return Mark(Lsn(lsn), entries, size)


def _number(field: str, text: Any) -> int:
    # Numbers of JSON lose digits in many hands, so they are text here, without signs or leading zeros.
    if not isinstance(text, str) or not text.isdecimal() or str(int(text)) != text or int(text) > _NUMBER_MAX:
        raise _damaged(field, text)
    return int(text)


def _damaged(field: str, value: Any) -> CheckpointFormatError:
    return CheckpointFormatError(f"the checkpoint is damaged: {field} cannot be {repr(value)[:200]}")


assert LSN_MAX <= _NUMBER_MAX
