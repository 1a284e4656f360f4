"""Where a query is: the offsets that Spark keeps in the checkpoint, as values and as JSON.

    {"version": 2, "cluster": "ads", "tasks": [], "logs": {"7": {"path": "/ads/clicks", "next": "42", ...}}}

Spark compares offsets as text and keeps them for as long as the query lives, so the text is canonical: logs
by number, fields in one order, 64-bit numbers as text. An end says everything that decides how its batch is
read: where the query began in each log, and where each task ends. So a batch that is run again is cut in the
same way, and what `latest` meant when the query was first started is never forgotten. Offsets of version 1
are read, and written no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from logdevice.errors import CheckpointFormatError
from logdevice.types import LSN_MAX, LogId, LogPoint, Lsn

VERSION: Final = 2
# The offset of a query that has not begun. What it stands for is in the end of the first batch.
INITIAL: Final[Mapping[str, Any]] = {"version": VERSION, "start": "initial"}

_NUMBER_MAX: Final = (1 << 63) - 1
_FIELDS: Final = {1: ("version", "cluster", "logs"), 2: ("version", "cluster", "tasks", "logs")}
_POSITION_FIELDS: Final = {
    1: ("path", "next", "from", "lineage", "marks"),
    2: ("path", "next", "entries", "bytes", "from", "lineage"),
}
_PURGED: Final = "purged"
_OPTIONAL_FIELDS: Final = ("undone", _PURGED)


class TaskEnd(NamedTuple):
    """Up to where, in the order of logs, one task reads and behind which the next one begins."""

    log: LogId
    lsn: Lsn


@dataclass(frozen=True, slots=True)
class Undone:
    """What was read of a log before and is to be undone, because the log has lost some of it."""

    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """How far one log was read."""

    path: str  # when the batch was planned; rows carry it
    since: Lsn  # where the query began in this log
    # Counts what was appended, which may be a little more than what can be read yet.
    at: LogPoint
    lineage: str | None = None  # which history of the log was read; None: it had none yet
    undone: Undone | None = None  # what this batch says is to be undone, before it reads on
    # Of a keyed log: how far it had removed deletions when the query began in it.
    purged_seen: Lsn = Lsn(0)

    @property
    def next(self) -> Lsn:
        """The first LSN that was not read."""
        return self.at.lsn

    def moved(self, path: str, at: LogPoint) -> LogPosition:
        """The position behind what was read."""
        return replace(self, path=path, at=at)


@dataclass(frozen=True, slots=True)
class Offsets:
    cluster: str
    logs: Mapping[LogId, LogPosition]
    tasks: tuple[TaskEnd, ...] = ()  # all but the last, which reads the rest
    # Of version 1 instead: the start of what a log's batch read, where tasks may begin, and its end.
    marks: Mapping[LogId, tuple[LogPoint, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        tasks = [[str(int(end.log)), str(int(end.lsn))] for end in self.tasks]
        logs = {str(int(log)): _position_to_json(self.logs[log]) for log in sorted(self.logs)}
        return {"version": VERSION, "cluster": self.cluster, "tasks": tasks, "logs": logs}


def from_json(plain: Mapping[str, Any]) -> Offsets | None:
    """The offsets that `to_json` wrote; None for those of a query that has not begun."""
    version = plain.get("version")
    if type(version) is not int or version < 1:
        raise CheckpointFormatError(f"the checkpoint has no version, got {version!r}")
    if version > VERSION:
        raise CheckpointFormatError(
            f"the checkpoint is of version {version}; this program reads up to version {VERSION}"
        )
    if dict(plain) == {**INITIAL, "version": version}:
        return None
    cluster, logs, tasks = plain.get("cluster"), plain.get("logs"), plain.get("tasks", [])
    if not isinstance(cluster, str) or not isinstance(logs, Mapping) or not isinstance(tasks, list):
        raise _damaged("the whole", plain)
    if tuple(plain) != _FIELDS[version]:
        raise _damaged("the whole", plain)
    positions = {_log(log): _position(log, found, version) for log, found in logs.items()}
    marks = {_log(log): _marks(log, found) for log, found in logs.items()} if version == 1 else {}
    return Offsets(cluster, positions, _tasks(tasks), marks)


def _tasks(plain: list[Any]) -> tuple[TaskEnd, ...]:
    numbers = [_numbers("tasks", end, 2) for end in plain]
    if numbers != sorted(numbers):
        raise _damaged("tasks", plain)
    return tuple(TaskEnd(LogId(log), Lsn(lsn)) for log, lsn in numbers)


def _position_to_json(position: LogPosition) -> dict[str, Any]:
    undone = position.undone
    # Only where there is something to say: most logs are not keyed.
    purged = {_PURGED: str(int(position.purged_seen))} if position.purged_seen else {}
    return {
        "path": position.path,
        "next": str(int(position.next)),
        "entries": str(position.at.entry_end),
        "bytes": str(position.at.byte_end),
        "from": str(int(position.since)),
        "lineage": position.lineage,
        **({"undone": [str(int(part)) for part in (undone.log, undone.start, undone.end)]} if undone else {}),
        **purged,
    }


def _log(text: str) -> LogId:
    return LogId(_number("the number of a log", text))


def _position(log: str, plain: Any, version: int) -> LogPosition:
    optional = tuple(name for name in _OPTIONAL_FIELDS if isinstance(plain, Mapping) and name in plain)
    if not isinstance(plain, Mapping) or tuple(plain) != _POSITION_FIELDS[version] + optional:
        raise _damaged(f"log {log}", plain)
    if not isinstance(plain["path"], str) or not isinstance(plain["lineage"], str | None):
        raise _damaged(f"log {log}", plain)

    def number(name: str) -> int:
        return _number(f"{name} of log {log}", plain[name])

    if version == 1:
        at = _marks(log, plain)[-1]
    else:
        at = LogPoint(Lsn(number("next")), number("entries"), number("bytes"))
    return LogPosition(
        path=plain["path"],
        since=Lsn(number("from")),
        at=at,
        lineage=plain["lineage"],
        undone=_undone(f"undone of log {log}", plain["undone"]) if "undone" in plain else None,
        purged_seen=Lsn(number(_PURGED)) if _PURGED in plain else Lsn(0),
    )


def _marks(log: str, plain: Any) -> tuple[LogPoint, ...]:
    marks = plain.get("marks") if isinstance(plain, Mapping) else None
    if not isinstance(marks, list) or not marks:
        raise _damaged(f"marks of log {log}", marks)
    numbers = [_numbers(f"marks of log {log}", mark, 3) for mark in marks]
    lsns = [lsn for lsn, _, _ in numbers]
    if lsns != sorted(lsns) or lsns[-1] != _number(f"next of log {log}", plain.get("next")):
        raise _damaged(f"marks of log {log}", marks)
    return tuple(LogPoint(Lsn(lsn), entries, size) for lsn, entries, size in numbers)


def _undone(field: str, plain: Any) -> Undone:
    log, start, end = _numbers(field, plain, 3)
    if start >= end:
        raise _damaged(field, plain)
    return Undone(LogId(log), Lsn(start), Lsn(end))


def _numbers(field: str, plain: Any, count: int) -> list[int]:
    if not isinstance(plain, list) or len(plain) != count:
        raise _damaged(field, plain)
    return [_number(field, number) for number in plain]


def _number(field: str, text: Any) -> int:
    # Numbers of JSON lose digits in many hands, so they are text here, without signs or leading zeros.
    if not isinstance(text, str) or not text.isdecimal() or str(int(text)) != text or int(text) > _NUMBER_MAX:
        raise _damaged(field, text)
    return int(text)


def _damaged(field: str, value: Any) -> CheckpointFormatError:
    return CheckpointFormatError(f"the checkpoint is damaged: {field} cannot be {repr(value)[:200]}")


assert LSN_MAX <= _NUMBER_MAX
