"""The directory tree of logs, as a value: names like /ads/clicks, numbers, inherited attributes.

A directory is immutable: every change returns a new one or raises, so that a change is decided on one version
and written by compare-and-set. A log keeps its number when it is renamed. Numbers grow and are never reused,
not even after a removal. A directory is always valid: every attribute is allowed, and the attributes of a log
do not contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

from logdevice.errors import InvalidArgumentError, NameTakenError, UnknownLogError
from logdevice.log_attributes import LogAttributes, checked, contradiction
from logdevice.settings.declarations import Value
from logdevice.types import LogId

FORMAT: Final = 1
ROOT: Final = "/"
DEFAULT: Final = "default"  # the source of a value that was set nowhere
PATH_ALLOWED: Final = "parts of letters, digits, '_', '-' and '.', each after a '/', such as /ads/clicks"
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_.-]{1,100}){1,20}")


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A log, or a directory if `log` is None, with the attributes that were set on itself."""

    log: LogId | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Effective:
    """The value of an attribute that holds for a path, and where it was set: a path, or `default`."""

    value: Value
    source: str


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """All logs and directories by path, and the number of the next log."""

    entries: Mapping[str, DirectoryEntry] = field(default_factory=lambda: {ROOT: DirectoryEntry()})
    next_log: LogId = LogId(1)

    def logs(self) -> dict[str, LogId]:
        """Every log by its path, in the order of the paths."""
        return {path: entry.log for path, entry in sorted(self.entries.items()) if entry.log is not None}

    def find(self, path: str) -> DirectoryEntry:
        """The entry of a path. Raises UnknownLogError, with the most similar path, if there is none."""
        if path not in self.entries:
            nearest = get_close_matches(path, sorted(self.entries), n=1)
            hint = f"; the nearest is {nearest[0]!r}" if nearest else ""
            raise UnknownLogError(f"there is no log or directory {path!r}{hint}")
        return self.entries[path]

    def explained(self, path: str) -> dict[str, Effective]:
        """Every attribute that holds for a path, with its source."""
        self.find(path)
        known = {name: Effective(value, DEFAULT) for name, value in asdict(LogAttributes()).items()}
        for ancestor in [*reversed([*_ancestors(path)]), path]:
            for name, value in self.entries[ancestor].attributes.items():
                known[name] = Effective(value, ancestor)
        return known

    def attributes(self, path: str) -> LogAttributes:
        """The attributes that hold for a path."""
        values: dict[str, Any] = {name: found.value for name, found in self.explained(path).items()}
        return LogAttributes(**values)

    def with_log(self, path: str, attributes: Mapping[str, object] | None = None) -> LogDirectory:
        """Adds a log with the next number. Missing directories above it are made."""
        made = self._with_entry(path, DirectoryEntry(self.next_log, _checked(path, attributes or {})))
        return replace(made, next_log=LogId(self.next_log + 1))._sensible(path)

    def with_directory(self, path: str, attributes: Mapping[str, object] | None = None) -> LogDirectory:
        """Adds a directory. Missing directories above it are made."""
        return self._with_entry(path, DirectoryEntry(None, _checked(path, attributes or {})))._sensible(path)

    def without(self, path: str, *, recursive: bool = False) -> LogDirectory:
        """Removes a log or a directory. A directory that is not empty is removed only if `recursive`."""
        self.find(path)
        gone = set(self._subtree(path))
        if path == ROOT:
            raise InvalidArgumentError("the root '/' cannot be removed")
        if len(gone) > 1 and not recursive:
            raise InvalidArgumentError(f"{path}: the directory is not empty; entries in it: {len(gone) - 1}")
        return replace(
            self, entries={other: entry for other, entry in self.entries.items() if other not in gone}
        )

    def renamed(self, path: str, new_path: str) -> LogDirectory:
        """Moves a log, or a directory with its content. Numbers stay; inherited values may change."""
        self.find(path)
        if path == ROOT:
            raise InvalidArgumentError("the root '/' cannot be renamed")
        if new_path == path or new_path.startswith(path + "/"):
            raise InvalidArgumentError(
                f"{path}: cannot be moved to {new_path!r}, which is the same path or inside it"
            )
        moved = {new_path + other.removeprefix(path): self.entries[other] for other in self._subtree(path)}
        rest = self.without(path, recursive=True)._with_entry(new_path, moved.pop(new_path))
        for other in moved:
            _check_path(other)
        return replace(rest, entries={**rest.entries, **moved})._sensible(new_path)

    def with_attributes(self, path: str, attributes: Mapping[str, object]) -> LogDirectory:
        """Sets attributes of a log or directory. What is in a directory inherits those it does not set."""
        entry = self.find(path)
        changed = replace(entry, attributes={**entry.attributes, **_checked(path, attributes)})
        return replace(self, entries={**self.entries, path: changed})._sensible(path)

    def without_attribute(self, path: str, name: str) -> LogDirectory:
        """Unsets an attribute: the value from the directories above holds again."""
        entry = self.find(path)
        if name not in entry.attributes:
            there = ", ".join(sorted(entry.attributes)) or "none"
            raise InvalidArgumentError(f"{path}: {name} is not set here; these are: {there}")
        kept = {other: value for other, value in entry.attributes.items() if other != name}
        changed = replace(entry, attributes=kept)
        return replace(self, entries={**self.entries, path: changed})._sensible(path)

    def to_plain(self) -> dict[str, Any]:
        """The directory as plain values, for JSON and msgpack; `from_plain` reads them."""
        entries = {}
        for path, entry in sorted(self.entries.items()):
            plain: dict[str, Any] = {} if entry.log is None else {"log": int(entry.log)}
            entries[path] = {**plain, "attributes": dict(sorted(entry.attributes.items()))}
        return {"format": FORMAT, "next_log": int(self.next_log), "entries": entries}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LogDirectory:
        """The directory from the values that `to_plain` returns.

        Raises KeyError, TypeError, ValueError or InvalidArgumentError for any other values.
        """
        if plain["format"] != FORMAT:
            raise ValueError(
                f"this version reads format {FORMAT} of a log directory, not {plain['format']!r}"
            )
        entries = {}
        seen: set[int] = set()
        for path, entry in plain["entries"].items():
            log = entry.get("log")
            if log is not None:
                if log in seen or not 1 <= log < plain["next_log"]:
                    raise ValueError(f"{path}: log number {log} is taken or was never given out")
                seen.add(log)
            entries[path] = DirectoryEntry(log, _checked(path, entry["attributes"]))
        for path in entries.keys() - {ROOT}:
            _check_path(path)
            if entries[next(_ancestors(path))].log is not None:
                raise ValueError(f"{path}: is inside a log")
        if entries[ROOT].log is not None:
            raise ValueError("the root '/' cannot be a log")
        return cls(entries, LogId(plain["next_log"]))._sensible(ROOT)

    def _with_entry(self, path: str, entry: DirectoryEntry) -> LogDirectory:
        _check_path(path)
        if path in self.entries:
            kind = "directory" if self.entries[path].log is None else "log"
            raise NameTakenError(
                f"{path}: there is already a {kind} of this name", log=self.entries[path].log
            )
        made = {path: entry}
        for ancestor in _ancestors(path):
            if ancestor not in self.entries:
                made[ancestor] = DirectoryEntry()
            elif self.entries[ancestor].log is not None:
                raise InvalidArgumentError(f"{path}: {ancestor} is a log; nothing can be inside it")
        return replace(self, entries={**self.entries, **made})

    def _subtree(self, path: str) -> list[str]:
        inside = path.rstrip("/") + "/"
        return [other for other in sorted(self.entries) if other == path or other.startswith(inside)]

    def _sensible(self, changed: str) -> LogDirectory:
        """Returns itself. Raises if attributes of a path at or below `changed` contradict each other."""
        for path in self._subtree(changed):
            if reason := contradiction(self.attributes(path)):
                raise InvalidArgumentError(f"{path}: {reason}")
        return self


def _ancestors(path: str) -> Iterator[str]:
    """The directories above a path, from the nearest to the root."""
    while path != ROOT:
        path = path.rpartition("/")[0] or ROOT
        yield path


def _check_path(path: str) -> None:
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise InvalidArgumentError(f"{path!r} is not a path of a log; it must be {PATH_ALLOWED}")


def _checked(path: str, attributes: Mapping[str, object]) -> dict[str, Value]:
    return {name: checked(path, name, value) for name, value in attributes.items()}
