"""The offsets of a query, which Spark keeps in the checkpoint, as values and as JSON.

    {"version": 2, "cluster": "ads", "tasks": [], "logs": {"7": {"path": "/ads/clicks", "next": "42", ...}}}

Spark compares offsets as text and keeps them as long as the query exists, so the text is canonical: logs
sorted by number, fields in a fixed order, 64-bit numbers as text. An end offset has everything that decides
how its batch is read: where the query began in each log, and where each task ends. So a batch that is run
again is divided in the same way, and the meaning of `latest` at the first start is never forgotten. Offsets
of version 1 are still read, but no longer written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from logdevice.errors import CheckpointFormatError
from logdevice.types import LSN_MAX, LogId, LogPoint, Lsn

VERSION: Final = 2
# The offset of a query that has not begun. The end offset of the first batch says where it began.
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
    """Where one task ends and the next one begins, in the order of logs."""

    log: LogId
    lsn: Lsn


@dataclass(frozen=True, slots=True)
class Undone:
    """A range that the query has read and must undo, because the log has lost records of it."""

    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """How far the query has read one log."""

    path: str  # at the time the batch was planned; rows carry it
    since: Lsn  # where the query began in this log
    # Its counters include what was just appended, which may be slightly more than can be read yet.
    at: LogPoint
    lineage: str | None = None  # the history of the log that was read; None if it had none yet
    undone: Undone | None = None  # what must be undone before this batch, which then reads on
    # Of a keyed log: its purged end when the query began in it.
    purged_seen: Lsn = Lsn(0)

    @property
    def next(self) -> Lsn:
        """The first LSN that the query has not read."""
        return self.at.lsn

    def moved(self, path: str, at: LogPoint) -> LogPosition:
        """The position after the query has read up to `at`."""
        return replace(self, path=path, at=at)


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far a query has read each log, and how the batch that ends here is divided into tasks."""

    cluster: str
    logs: Mapping[LogId, LogPosition]
    tasks: tuple[TaskEnd, ...] = ()  # without the last task, which reads the rest
    # In version 1, instead: for each log where the batch begins, where tasks may begin, and where it ends.
    marks: Mapping[LogId, tuple[LogPoint, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        tasks = [[str(int(end.log)), str(int(end.lsn))] for end in self.tasks]
        logs = {str(int(log)): _position_to_json(self.logs[log]) for log in sorted(self.logs)}
        return {"version": VERSION, "cluster": self.cluster, "tasks": tasks, "logs": logs}


def from_json(plain: Mapping[str, Any]) -> Offsets | None:
    """The offsets that `to_json` wrote; None for the offset of a query that has not begun.

    Raises CheckpointFormatError if they are damaged, or were written by a newer version.
    """
    version = plain.get("version")
    if type(version) is not int or version < 1:
        raise CheckpointFormatError(
            f"the checkpoint's version must be an integer of at least 1, got {version!r}"
        )
    if version > VERSION:
        raise CheckpointFormatError(
            f"the checkpoint has version {version}; this program reads versions up to {VERSION}"
        )
    if dict(plain) == {**INITIAL, "version": version}:
        return None
    cluster, logs, tasks = plain.get("cluster"), plain.get("logs"), plain.get("tasks", [])
    if not isinstance(cluster, str) or not isinstance(logs, Mapping) or not isinstance(tasks, list):
        raise _damaged("the whole offset", plain)
    if tuple(plain) != _FIELDS[version]:
        raise _damaged("the whole offset", plain)
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
    # Most logs are not keyed, so the field is written only where it has a value.
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
    # Many JSON libraries lose digits of large numbers, so they are text here, without signs or leading zeros.
    if not isinstance(text, str) or not text.isdecimal() or str(int(text)) != text or int(text) > _NUMBER_MAX:
        raise _damaged(field, text)
    return int(text)


def _damaged(field: str, value: Any) -> CheckpointFormatError:
    return CheckpointFormatError(f"the checkpoint is damaged: {field} cannot be {repr(value)[:200]}")


assert LSN_MAX <= _NUMBER_MAX
