"""The epoch store: small values that a whole cluster agrees on, changed by compare-and-set.

Every value is in a cell. Cells have versions that grow with each change, and a write names the
version it was decided on: if the cell has moved on, ConflictError is raised and nothing is written. A
backend provides the cells (memory, SQLite, ZooKeeper); what is kept in them is written down here once.

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
from logdevice.metadata.values import (
    ABSENT,
    Cluster,
    ConfigurationChanges,
    LogEpochs,
    NodeEntry,
    NodeRole,
    Version,
    Versioned,
)
from logdevice.protocol.node_status import NodeEvent, NodeEvents, apply
from logdevice.types import LogId, Lsn, NodeId

Value = TypeVar("Value")

# ZooKeeper refuses messages above 1 MiB. Held everywhere, so that a cluster can change its backend.
CELL_BYTES_MAX: Final = 1_000_000
WRITER_NAME_BYTES_MAX: Final = 500


class Group(Enum):
    """Cells that are listed and watched together."""

    CONFIGURATION = "configuration"  # the cluster's name, its nodes, the log directory, the event log
    LOGS = "logs"  # the epochs of each log
    WRITERS = "writers"  # the incarnations of each writer
    PURGES = "purges"  # up to where deletions of each keyed log may be gone
    CUTS = "cuts"  # the cuts that have a name


@dataclass(frozen=True, slots=True)
class Cell:
    group: Group
    name: str

    def __str__(self) -> str:
        return f"{self.group.value}/{self.name}"


CLUSTER: Final = Cell(Group.CONFIGURATION, "cluster")
DIRECTORY: Final = Cell(Group.CONFIGURATION, "directory")
EVENTS: Final = Cell(Group.CONFIGURATION, "events")
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
    async def names(self, group: Group) -> list[str]:
        """The names in use in a group, sorted. A removed cell may still be listed."""

    @abstractmethod
    async def cell_changes(self, group: Group, since: Version) -> CellChanges: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def read(self, log: LogId) -> Versioned[LogEpochs] | None:
        """The epochs of a log; None for a log that never had one."""
        return await self._read(_log(log), codec.decode_log_epochs)

    async def write(self, log: LogId, value: LogEpochs, expected: Version) -> Version:
        return await self._write(_log(log), codec.encode_log_epochs(value), expected)

    async def logs(self) -> list[LogId]:
        """Every log that ever had an epoch, in the order of their numbers."""
        return sorted(LogId(_number(name)) for name in await self.names(Group.LOGS))

    async def next_incarnation(self, writer: str) -> int:
        """A number for this writer that nobody got before: 1, 2, ... Some may never be used."""
        cell = _writer(writer)
        while True:
            found = await self._read(cell, codec.decode_incarnation)
            incarnation = found.value + 1 if found else 1
            try:
                await self._write(cell, codec.encode_incarnation(incarnation), _version(found))
            except ConflictError:
                continue  # somebody else got this number; the next one is free
            return incarnation

    async def advance_purge(self, log: LogId, end: Lsn) -> Lsn:
        """Moves the log's `purged_end` on to `end`, never back; gives where it is then."""
        cell = Cell(Group.PURGES, str(int(log)))
        while True:
            found = await self._read(cell, codec.decode_purge)
            if found and found.value >= end:
                return found.value
            if not end:
                return end
            try:
                await self._write(cell, codec.encode_purge(end), _version(found))
            except ConflictError:
                continue
            return end

    async def join_cluster(self, name: str) -> None:
        """Names the cluster if it has no name yet; WrongClusterError if it has another."""
        try:
            await self._write(CLUSTER, codec.encode_cluster(Cluster(name)), ABSENT)
        except ConflictError:
            found = await self.read_cluster()
            if found is None or found.value.name != name:
                other = found.value.name if found else None
                raise WrongClusterError(
                    f"the metadata belongs to cluster {other!r}, not to {name!r}"
                ) from None

    async def read_cluster(self) -> Versioned[Cluster] | None:
        return await self._read(CLUSTER, codec.decode_cluster)

    async def nodes(self) -> dict[NodeId, Versioned[NodeEntry]]:
        """The registered nodes, by number."""
        names = [name for name in await self.names(Group.CONFIGURATION) if name.startswith(NODE_PREFIX)]
        entries = {}
        for node in sorted(NodeId(_number(name.removeprefix(NODE_PREFIX))) for name in names):
            if found := await self.read_node(node):
                entries[node] = found
        return entries

    async def read_node(self, node: NodeId) -> Versioned[NodeEntry] | None:
        return await self._read(_node(node), codec.decode_node)

    async def write_node(self, node: NodeId, entry: NodeEntry, expected: Version) -> Version:
        return await self._write(_node(node), codec.encode_node(entry), expected)

    async def remove_node(self, node: NodeId, expected: Version) -> Version:
        return await self._write(_node(node), None, expected)

    async def read_directory(self) -> Versioned[LogDirectory]:
        found = await self._read(DIRECTORY, codec.decode_directory)
        return found or Versioned(LogDirectory(), ABSENT)

    async def write_directory(self, directory: LogDirectory, expected: Version) -> Version:
        return await self._write(DIRECTORY, codec.encode_directory(directory), expected)

    async def change_directory(
        self, change: Callable[[LogDirectory], LogDirectory]
    ) -> Versioned[LogDirectory]:
        """Applies `change`, again to the newer directory when somebody else was faster."""
        while True:
            found = await self.read_directory()
            directory = change(found.value)
            try:
                return Versioned(directory, await self.write_directory(directory, found.version))
            except ConflictError:
                continue

    async def read_events(self) -> Versioned[NodeEvents]:
        """What became of the data of nodes, summed up."""
        found = await self._read(EVENTS, codec.decode_events)
        return found or Versioned(NodeEvents(), ABSENT)

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
                await self._write(EVENTS, codec.encode_events(events), found.version)
            except (ConflictError, MetadataOutcomeUnknownError):
                continue  # an event that is there already says nothing new
            return events

    async def read_cut(self, name: str) -> Versioned[Cut] | None:
        return await self._read(_cut(name), codec.decode_cut)

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
                version = await self._write(_cut(cut.cookie), codec.encode_cut(cut), ABSENT)
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
        if len(await self.names(Group.CUTS)) < cuts_max:
            return False
        found = await self._cuts()
        return sum(before is None or each.version < before for each in found) >= cuts_max

    async def _cuts(self) -> list[Versioned[Cut]]:
        found = [await self.read_cut(unquote(name)) for name in await self.names(Group.CUTS)]
        return [each for each in found if each is not None]

    async def remove_cut(self, name: str) -> None:
        while found := await self.read_cut(name):
            try:
                await self._write(_cut(name), None, found.version)
            except ConflictError:
                continue

    async def changes_since(self, version: Version) -> ConfigurationChanges:
        """Which parts of the configuration to read again. Cheap when nothing changed: meant for polling."""
        changes = await self.cell_changes(Group.CONFIGURATION, version)
        names = [name for name in changes.names if name.startswith(NODE_PREFIX)]
        return ConfigurationChanges(
            version=changes.version,
            is_cluster_changed=CLUSTER.name in changes.names,
            is_directory_changed=DIRECTORY.name in changes.names,
            nodes=tuple(sorted(NodeId(_number(name.removeprefix(NODE_PREFIX))) for name in names)),
            is_event_log_changed=EVENTS.name in changes.names,
        )

    async def _read(self, cell: Cell, decode: Callable[[bytes, str], Value]) -> Versioned[Value] | None:
        found = await self.get(cell)
        return Versioned(decode(found.value, str(cell)), found.version) if found else None

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


def _version(found: Versioned[Value] | None) -> Version:
    return found.version if found else ABSENT


def _log(log: LogId) -> Cell:
    return Cell(Group.LOGS, str(int(log)))


def _node(node: NodeId) -> Cell:
    return Cell(Group.CONFIGURATION, f"{NODE_PREFIX}{int(node)}")


def _number(name: str) -> int:
    if not name.isdecimal():
        raise UnreadableMetadataError(f"there is a cell {name!r} where a number was expected")
    return int(name)


def _cut(name: str) -> Cell:
    return Cell(Group.CUTS, check_cut_name(name).replace(".", "%2E"))


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
    return Cell(Group.WRITERS, name)
