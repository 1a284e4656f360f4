"""The epoch store: small values that a whole cluster agrees on, changed by compare-and-set.

Every value is in a cell. Cells have versions that grow with each change, and a write names the
version it was decided on: if the cell has moved on, ConflictError is raised and nothing is written. A
backend provides the cells (SQLite, ZooKeeper); what is kept in them is written down here once.

Every method may raise MetadataUnavailableError (nothing was changed); one that writes may also raise
MetadataOutcomeUnknownError (read again and decide anew). Reads see every earlier finished write.
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

# ZooKeeper refuses messages above 1 MiB. Held everywhere, so that a cluster can change its backend.
CELL_BYTES_MAX: Final = 1_000_000
WRITER_NAME_BYTES_MAX: Final = 500


class CellGroup(Enum):
    """Cells that are listed and watched together."""

    CONFIGURATION = "configuration"  # the cluster's name, its nodes, the log directory, the event log
    LOGS = "logs"  # the epochs of each log
    WRITERS = "writers"  # the incarnations of each writer
    PURGES = "purges"  # up to where deletions of each keyed log may be gone
    CUTS = "cuts"  # the cuts that have a name


@dataclass(frozen=True, slots=True)
class Cell:
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
    """The cells of a group that were written since some version, and the version to ask from next."""

    version: Version
    names: tuple[str, ...]


class EpochStore(ABC):
    """Opened by the backend's `open`; used by one event loop; closed by `close` or by `async with`."""

    @abstractmethod
    async def get(self, cell: Cell) -> Versioned[bytes] | None: ...

    @abstractmethod
    async def put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        """Writes, or with None removes, a cell whose version is `expected`; returns its new version."""

    @abstractmethod
    async def names(self, group: CellGroup) -> list[str]:
        """The names in use in a group, sorted. A removed cell may still be listed."""

    @abstractmethod
    async def cell_changes(self, group: CellGroup, since: Version) -> CellChanges: ...

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
        return await self._write(_log(log), codec.EPOCHS.encode(value), expected)

    async def next_incarnation(self, writer: str) -> int:
        """A number for this writer that nobody got before: 1, 2, ... Some may never be used."""
        return (await self._changed(_writer(writer), codec.INCARNATION, 0, lambda latest: latest + 1)).value

    async def advance_purge(self, log: LogId, end: Lsn) -> Lsn:
        """Moves the log's `purged_end` on to `end`, never back; gives where it is then."""
        cell = Cell(CellGroup.PURGES, str(int(log)))
        return (await self._changed(cell, codec.PURGE, Lsn(0), lambda latest: max(latest, end))).value

    async def join_cluster(self, name: str) -> None:
        """Names the cluster if it has no name yet; WrongClusterError if it has another."""
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
        return await self._read(_node(node), codec.NODE)

    async def write_node(self, node: NodeId, entry: NodeEntry, expected: Version) -> Version:
        return await self._write(_node(node), codec.NODE.encode(entry), expected)

    async def remove_node(self, node: NodeId, expected: Version) -> Version:
        return await self._write(_node(node), None, expected)

    async def read_directory(self) -> Versioned[LogDirectory]:
        return await self._read(DIRECTORY, codec.DIRECTORY) or Versioned(LogDirectory(), ABSENT)

    async def change_directory(
        self, change: Callable[[LogDirectory], LogDirectory]
    ) -> Versioned[LogDirectory]:
        """Applies `change`, again to the newer directory when somebody else was faster."""
        return await self._changed(DIRECTORY, codec.DIRECTORY, LogDirectory(), change)

    async def read_events(self) -> Versioned[NodeEvents]:
        """What became of the data of nodes, summed up."""
        return await self._read(EVENTS, codec.EVENTS) or Versioned(NodeEvents(), ABSENT)

    async def record_event(self, event: NodeEvent) -> NodeEvents:
        """Adds an event to the event log, unless it says nothing new; gives the sum of all."""
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
                continue  # an event that is there already says nothing new
            return events

    async def read_cut(self, name: str) -> Versioned[Cut] | None:
        return await self._read(_cut(name), codec.CUT)

    async def cuts(self) -> list[Cut]:
        """Those that have a name, by name."""
        return sorted((each.value for each in await self._cuts()), key=lambda cut: cut.cookie)

    async def keep_cut(self, cut: Cut, cuts_max: int) -> None:
        """Under its cookie; NameTakenError if another cut has that name, or OutOfRangeError if there are too
        many. T24: of those who write at the same time, who comes too late takes its own back.
        """
        found = await self.read_cut(cut.cookie)
        if found is None:
            if await self._is_full(cuts_max):
                raise _too_many(cuts_max)
            try:
                version = await self._write(_cut(cut.cookie), codec.CUT.encode(cut), ABSENT)
            except ConflictError:
                raise NameTakenError(f"there is already a cut named {cut.cookie!r}") from None
        elif found.value == cut:  # whoever asked did not get the answer
            version = found.version
        else:
            raise NameTakenError(f"there is already a cut named {cut.cookie!r}")
        if await self._is_full(cuts_max, version):
            with suppress(ConflictError):  # somebody has removed it
                await self._write(_cut(cut.cookie), None, version)
            raise _too_many(cuts_max)

    async def _is_full(self, cuts_max: int, before: Version | None = None) -> bool:
        """Whether there are so many, counting those that were written before this version."""
        if len(await self.names(CellGroup.CUTS)) < cuts_max:
            return False
        found = await self._cuts()
        return sum(before is None or each.version < before for each in found) >= cuts_max

    async def _cuts(self) -> list[Versioned[Cut]]:
        found = [await self.read_cut(unquote(name)) for name in await self.names(CellGroup.CUTS)]
        return [each for each in found if each is not None]

    async def remove_cut(self, name: str) -> None:
        while found := await self.read_cut(name):
            with suppress(ConflictError):
                await self._write(_cut(name), None, found.version)

    async def changes_since(self, version: Version) -> CellChanges:
        """Which cells of the configuration to read again. Cheap when nothing changed: meant for polling."""
        return await self.cell_changes(CellGroup.CONFIGURATION, version)

    async def _read(self, cell: Cell, kind: codec.ValueCodec[Value]) -> Versioned[Value] | None:
        found = await self.get(cell)
        return Versioned(kind.decode(found.value, str(cell)), found.version) if found else None

    async def _changed(
        self, cell: Cell, kind: codec.ValueCodec[Value], absent: Value, change: Callable[[Value], Value]
    ) -> Versioned[Value]:
        """Applies `change`, again to the newer value where another process was faster. What `change` gives
        back as it was is not written; a cell that is not there counts as `absent`.
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
            raise PayloadTooLargeError(f"{cell} would take {len(value)} bytes, allowed are {CELL_BYTES_MAX}")
        return await self.put(cell, value, expected)


def conflict(cell: Cell, expected: Version, found: Version) -> ConflictError:
    """What a backend raises when a cell is not in the version the writer expects."""
    words = [f"version {version}" if version else "absent" for version in (expected, found)]
    return ConflictError(f"{cell} was expected to be {words[0]} and is {words[1]}")


def _too_many(cuts_max: int) -> OutOfRangeError:
    return OutOfRangeError(f"there are {cuts_max} named cuts, as many as cuts_max allows; remove some")


def _log(log: LogId) -> Cell:
    return Cell(CellGroup.LOGS, str(int(log)))


def _node(node: NodeId) -> Cell:
    return Cell(CellGroup.CONFIGURATION, f"{NODE_PREFIX}{int(node)}")


def _number(name: str) -> int:
    if not name.isdecimal():
        raise UnreadableMetadataError(f"there is a cell {name!r} where a number was expected")
    return int(name)


def _cut(name: str) -> Cell:
    return Cell(CellGroup.CUTS, check_cut_name(name).replace(".", "%2E"))


def _writer(writer: str) -> Cell:
    """Writers choose their names freely; cells are named by what every backend can store."""
    try:
        # A lone "." or ".." is no name to ZooKeeper, and "/" would be a path.
        name = quote(writer, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        name = ""
    if not 0 < len(name) <= WRITER_NAME_BYTES_MAX:
        raise InvalidArgumentError(
            f"writer name {writer!r} must be text of 1 to {WRITER_NAME_BYTES_MAX} bytes, "
            "of which all but letters, digits, '_', '-' and '~' count three times"
        )
    return Cell(CellGroup.WRITERS, name)
