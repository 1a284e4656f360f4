"""What is different between two versions of a log directory: for people, and for nodes that must react.

Logs are recognised by their number, so a new name is a renaming; directories by their path. Attributes
are compared as they hold, wherever they were set: a change of /ads shows at every log it reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.knobs import Value
from logdevice.metadata.log_directory import LogDirectory
from logdevice.types import LogId


@dataclass(frozen=True, slots=True)
class Created:
    path: str
    log: LogId | None  # None: a directory


@dataclass(frozen=True, slots=True)
class Removed:
    path: str
    log: LogId | None


@dataclass(frozen=True, slots=True)
class Renamed:
    path: str
    log: LogId
    old_path: str


@dataclass(frozen=True, slots=True)
class AttributeChanged:
    path: str  # in the newer directory
    log: LogId | None
    name: str
    old: Value
    new: Value


Change = Created | Removed | Renamed | AttributeChanged


def changes(old: LogDirectory, new: LogDirectory) -> list[Change]:
    """What was done to `old` to make it `new`: removals first, then by path."""
    before, after = _by_identity(old), _by_identity(new)
    found: list[Change] = [
        Removed(old_path, _log(key)) for key, old_path in before.items() if key not in after
    ]
    for key, path in after.items():
        if key not in before:
            found.append(Created(path, _log(key)))
            continue
        if isinstance(key, int) and before[key] != path:
            found.append(Renamed(path, LogId(key), before[key]))
        found += _attribute_changes(old, new, before[key], path)
    return found


def _attribute_changes(
    old: LogDirectory, new: LogDirectory, old_path: str, path: str
) -> list[AttributeChanged]:
    before, after = old.explained(old_path), new.explained(path)
    return [
        AttributeChanged(path, new.entries[path].log, name, before[name].value, effective.value)
        for name, effective in after.items()
        if before[name].value != effective.value
    ]


def _by_identity(directory: LogDirectory) -> dict[int | str, str]:
    """The path of every log by its number and of every directory by its path, in the order of paths."""
    return {
        path if entry.log is None else int(entry.log): path
        for path, entry in sorted(directory.entries.items())
    }


def _log(key: int | str) -> LogId | None:
    return LogId(key) if isinstance(key, int) else None
