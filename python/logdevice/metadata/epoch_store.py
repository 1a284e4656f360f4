"""The epoch store: small values that a whole cluster agrees on, changed by compare-and-set.

Every value is in a cell. A cell's version grows with each change, and a write names the version that it is
based on. If the cell has another version by then, ConflictError is raised and nothing is written. A backend
(SQLite, ZooKeeper) provides the cells; this module defines what they hold.

Every method may raise MetadataUnavailableError: nothing was changed. Methods that write may also raise
MetadataOutcomeUnknownError: the caller must read again and decide anew. Reads see every write that was
finished before them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self, TypeVar
from urllib.parse import quote, unquote

from logdevice.cuts import Cut, check_cut_name
from logdevice.errors import (
    ConflictError,
    InvalidArgumentError,
    MetadataOutcomeUnknownError,
    NameTakenError,
    OutOfRangeError,
    PayloadTooLargeError,
    UnreadableMetadataError,
    WrongClusterError,
)
from logdevice.metadata import codec
from logdevice.metadata.log_directory import LogDirectory
from logdevice.metadata.values import ABSENT, NodeEntry, NodeRole, Version, Versioned
from logdevice.protocol.rebuilding.node_status import NodeEvent, NodeEvents, apply
from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.types import LogId, Lsn, NodeId

Value = TypeVar("Value")

# ZooKeeper refuses messages above 1 MiB. All backends have this limit, so that a cluster can change to it.
CELL_BYTES_MAX: Final = 1_000_000
WRITER_NAME_BYTES_MAX: Final = 500


class CellGroup(Enum):
    """Cells that are listed and watched together."""

    CONFIGURATION = "configuration"  # the cluster's name, its nodes, the log directory, the event log
    LOGS = "logs"  # the epochs of each log
    WRITERS = "writers"  # the incarnations of each writer
    PURGES = "purges"  # the purged end of each keyed log
    CUTS = "cuts"  # the named cuts


@dataclass(frozen=True, slots=True)
class Cell:
    """The place of one value in an epoch store."""

    group: CellGroup
    name: str

    def __str__(self) -> str:
        return f"{self.group.value}/{self.name}"


CLUSTER: Final = Cell(CellGroup.CONFIGURATION, "cluster")
DIRECTORY: Final = Cell(CellGroup.CONFIGURATION, "directory")
EVENTS: Final = Cell(CellGroup.CONFIGURATION, "events")
NODE_PREFIX: Final = "node."


@dataclass(frozen=True, slots=True)
class CellChanges:
    """The cells of a group that were written since some version, and the version from which to ask next."""

    version: Version
    names: tuple[str, ...]


class EpochStore(ABC):
    """A store of small values, changed by compare-and-set.

    `open_epoch_store` opens it; `close` or `async with` closes it. One event loop uses it.
    """

    @abstractmethod
    async def get(self, cell: Cell) -> Versioned[bytes] | None:
        """The value of a cell and its version; None if the cell does not exist."""

    @abstractmethod
    async def put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        """Writes a cell, or removes it if `value` is None, and returns its new version.

        Raises ConflictError unless its version is `expected`.
        """

    @abstractmethod
    async def names(self, group: CellGroup) -> list[str]:
        """The names of the cells of a group, sorted. A removed cell may still be listed."""

    @abstractmethod
    async def cell_changes(self, group: CellGroup, since: Version) -> CellChanges:
        """The cells of a group that were written or removed after version `since`."""

    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def read(self, log: LogId) -> Versioned[EpochState] | None:
        """The epochs of a log; None for a log that never had one."""
        return await self._read(_log(log), codec.EPOCHS)

    async def write(self, log: LogId, value: EpochState, expected: Version) -> Version:
        """Writes the epochs of a log, based on version `expected`. Returns the new version."""
        return await self._write(_log(log), codec.EPOCHS.encode(value), expected)

    async def next_incarnation(self, writer: str) -> int:
        """The next incarnation of a writer: 1, 2, ... No number is returned twice; some may be skipped."""
        return (await self._changed(_writer(writer), codec.INCARNATION, 0, lambda latest: latest + 1)).value

    async def advance_purge(self, log: LogId, end: Lsn) -> Lsn:
        """Moves a log's purged end forward to `end`, never back. Returns the purged end."""
        cell = Cell(CellGroup.PURGES, str(int(log)))
        return (await self._changed(cell, codec.PURGE, Lsn(0), lambda latest: max(latest, end))).value

    async def join_cluster(self, name: str) -> None:
        """Gives the cluster its name if it has none yet. Raises WrongClusterError if it has another."""
        found = await self._changed(CLUSTER, codec.CLUSTER, "", lambda known: known or name)
        if found.value != name:
            raise WrongClusterError(f"the metadata belongs to cluster {found.value!r}, not to {name!r}")

    async def nodes(self) -> dict[NodeId, Versioned[NodeEntry]]:
        """The registered nodes, by number."""
        names = [name for name in await self.names(CellGroup.CONFIGURATION) if name.startswith(NODE_PREFIX)]
        entries = {}
        for node in sorted(NodeId(_number(name.removeprefix(NODE_PREFIX))) for name in names):
            if found := await self.read_node(node):
                entries[node] = found
        return entries

    async def read_node(self, node: NodeId) -> Versioned[NodeEntry] | None:
        """The entry of a node; None if it is not registered."""
        return await self._read(_node(node), codec.NODE)

    async def write_node(self, node: NodeId, entry: NodeEntry, expected: Version) -> Version:
        """Writes the entry of a node, based on version `expected`. Returns the new version."""
        return await self._write(_node(node), codec.NODE.encode(entry), expected)

    async def remove_node(self, node: NodeId, expected: Version) -> Version:
        """Removes the entry of a node, based on version `expected`."""
        return await self._write(_node(node), None, expected)

    async def read_directory(self) -> Versioned[LogDirectory]:
        """The log directory; an empty one for a new cluster."""
        return await self._read(DIRECTORY, codec.DIRECTORY) or Versioned(LogDirectory(), ABSENT)

    async def change_directory(
        self, change: Callable[[LogDirectory], LogDirectory]
    ) -> Versioned[LogDirectory]:
        """Applies `change` to the directory. If another process was faster, applies it to the newer one."""
        return await self._changed(DIRECTORY, codec.DIRECTORY, LogDirectory(), change)

    async def read_events(self) -> Versioned[NodeEvents]:
        """The state of the nodes' data, from all events."""
        return await self._read(EVENTS, codec.EVENTS) or Versioned(NodeEvents(), ABSENT)

    async def record_event(self, event: NodeEvent) -> NodeEvents:
        """Adds an event to the event log, unless it changes nothing. Returns the state from all events."""
        while True:
            found = await self.read_events()
            storage = [
                node for node, entry in (await self.nodes()).items() if NodeRole.STORAGE in entry.value.roles
            ]
            events = apply(found.value, event, storage)
            if events is found.value:
                return events
            try:
                await self._write(EVENTS, codec.EVENTS.encode(events), found.version)
            except (ConflictError, MetadataOutcomeUnknownError):
                continue  # if the event was written after all, it changes nothing the second time
            return events

    async def read_cut(self, name: str) -> Versioned[Cut] | None:
        """The cut of this name; None if there is none."""
        return await self._read(_cut(name), codec.CUT)

    async def cuts(self) -> list[Cut]:
        """All named cuts, sorted by name."""
        return sorted((each.value for each in await self._cuts()), key=lambda cut: cut.cookie)

    async def keep_cut(self, cut: Cut, cuts_max: int) -> None:
        """Keeps a cut, with its cookie as the name.

        Raises NameTakenError if another cut has that name, and OutOfRangeError if there are too many cuts.
        T24: if several processes write at the same time, those that exceed the limit remove their own again.
        """
        found = await self.read_cut(cut.cookie)
        if found is None:
            if await self._is_full(cuts_max):
                raise _too_many(cuts_max)
            try:
                version = await self._write(_cut(cut.cookie), codec.CUT.encode(cut), ABSENT)
            except ConflictError:
                raise NameTakenError(f"there is already a cut named {cut.cookie!r}") from None
        elif found.value == cut:  # sent again, because the first answer was lost
            version = found.version
        else:
            raise NameTakenError(f"there is already a cut named {cut.cookie!r}")
        if await self._is_full(cuts_max, version):
            with suppress(ConflictError):  # another process has removed it
                await self._write(_cut(cut.cookie), None, version)
            raise _too_many(cuts_max)

    async def _is_full(self, cuts_max: int, before: Version | None = None) -> bool:
        """Whether there are `cuts_max` cuts; with `before`, counting those written before this version."""
        if len(await self.names(CellGroup.CUTS)) < cuts_max:
            return False
        found = await self._cuts()
        return sum(before is None or each.version < before for each in found) >= cuts_max

    async def _cuts(self) -> list[Versioned[Cut]]:
        found = [await self.read_cut(unquote(name)) for name in await self.names(CellGroup.CUTS)]
        return [each for each in found if each is not None]

    async def remove_cut(self, name: str) -> None:
        """Removes the cut of this name, if there is one."""
        while found := await self.read_cut(name):
            with suppress(ConflictError):
                await self._write(_cut(name), None, found.version)

    async def changes_since(self, version: Version) -> CellChanges:
        """The cells of the configuration to read again. Made for polling: it is cheap if nothing changed."""
        return await self.cell_changes(CellGroup.CONFIGURATION, version)

    async def _read(self, cell: Cell, kind: codec.ValueCodec[Value]) -> Versioned[Value] | None:
        found = await self.get(cell)
        return Versioned(kind.decode(found.value, str(cell)), found.version) if found else None

    async def _changed(
        self, cell: Cell, kind: codec.ValueCodec[Value], absent: Value, change: Callable[[Value], Value]
    ) -> Versioned[Value]:
        """Applies `change` to a cell's value, and again to the newer value if another process was faster.

        If `change` returns the same object, nothing is written. `absent` is the value of a missing cell.
        """
        while True:
            found = await self._read(cell, kind) or Versioned(absent, ABSENT)
            value = change(found.value)
            if value is found.value:
                return found
            with suppress(ConflictError):
                return Versioned(value, await self._write(cell, kind.encode(value), found.version))

    async def _write(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        if value is not None and len(value) > CELL_BYTES_MAX:
            raise PayloadTooLargeError(
                f"{cell} would take {len(value)} bytes; no cell may take more than {CELL_BYTES_MAX}, and no "
                "setting changes that"
            )
        return await self.put(cell, value, expected)


def conflict(cell: Cell, expected: Version, found: Version) -> ConflictError:
    """The error that a backend raises if a cell does not have the expected version."""
    words = [f"version {version}" if version else "absent" for version in (expected, found)]
    return ConflictError(f"{cell} was expected to be {words[0]} but is {words[1]}")


def _too_many(cuts_max: int) -> OutOfRangeError:
    return OutOfRangeError(f"there are {cuts_max} named cuts, the most that cuts_max allows; remove some")


def _log(log: LogId) -> Cell:
    return Cell(CellGroup.LOGS, str(int(log)))


def _node(node: NodeId) -> Cell:
    return Cell(CellGroup.CONFIGURATION, f"{NODE_PREFIX}{int(node)}")


def _number(name: str) -> int:
    if not name.isdecimal():
        raise UnreadableMetadataError(f"a cell is named {name!r}, but its name must be a number")
    return int(name)


def _cut(name: str) -> Cell:
    return Cell(CellGroup.CUTS, check_cut_name(name).replace(".", "%2E"))


def _writer(writer: str) -> Cell:
    """The cell of a writer. Its name is quoted, because writers may have any name but cells may not."""
    try:
        # ZooKeeper does not allow the names "." and "..", and "/" would be a path.
        name = quote(writer, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        name = ""
    if not 0 < len(name) <= WRITER_NAME_BYTES_MAX:
        raise InvalidArgumentError(
            f"writer name {writer!r} must be text of 1 to {WRITER_NAME_BYTES_MAX} bytes, "
            "where all bytes except letters, digits, '_', '-' and '~' count three times"
        )
    return Cell(CellGroup.WRITERS, name)
