"""An epoch store in memory, for the simulator and for tests.

It answers at once, so its methods never really wait: `at_once` runs one of them without an event
loop. On request it does what a remote store does wrong: it is unreachable, or it makes a change and
the answer is lost. It lives as long as the simulated cluster, through every crash of a node.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from logdevice.errors import MetadataOutcomeUnknownError, MetadataUnavailableError
from logdevice.metadata.epoch_store import Cell, CellChanges, EpochStore, Group, conflict
from logdevice.metadata.values import ABSENT, Version, Versioned

Result = TypeVar("Result")


class MemoryEpochStore(EpochStore):
    def __init__(self) -> None:
        self.is_reachable = True
        self.loses_answers = False  # writes are made, but nobody hears of it
        # None is a removed cell: its version is still needed to report the change.
        self._cells: dict[Cell, Versioned[bytes | None]] = {}
        self._version = ABSENT

    async def get(self, cell: Cell) -> Versioned[bytes] | None:
        self._reach()
        found = self._cells.get(cell)
        return Versioned(found.value, found.version) if found and found.value is not None else None

    async def put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        self._reach()
        found = await self.get(cell)
        version = found.version if found else ABSENT
        if version != expected:
            raise conflict(cell, expected, version)
        self._version = Version(self._version + 1)
        self._cells[cell] = Versioned(value, self._version)
        if self.loses_answers:
            raise MetadataOutcomeUnknownError(f"the answer to a change of {cell} was lost")
        return self._version

    async def names(self, group: Group) -> list[str]:
        self._reach()
        return sorted(cell.name for cell in self._cells if cell.group == group)

    async def cell_changes(self, group: Group, since: Version) -> CellChanges:
        self._reach()
        names = sorted(
            cell.name for cell, found in self._cells.items() if cell.group == group and found.version > since
        )
        return CellChanges(max(since, self._version), tuple(names))

    async def close(self) -> None:
        """There is nothing to give back."""

    def _reach(self) -> None:
        if not self.is_reachable:
            raise MetadataUnavailableError("the epoch store was made unreachable")


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that waits for nothing, such as any method of a MemoryEpochStore."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        result: Result = finished.value
        return result
    coroutine.close()
    raise AssertionError("this coroutine waits for something")
