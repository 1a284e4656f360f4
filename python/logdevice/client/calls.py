"""The table of all calls of a client: both faces of it have these calls.

`client.py` is the face for programs with an event loop, `blocking.py` the face for all others; each decides
in `perform` how to do a call. Each call belongs to a part of the client, which does the work and has the
docstring. Ranges are half-open: `until` and `end` are not included. A log is named by its path or its number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from logdevice.client.admin.backup import Backups
from logdevice.client.admin.chain_points import Points
from logdevice.client.admin.cuts import Cuts
from logdevice.client.admin.keyed_logs import KeyedLogs
from logdevice.client.admin.nodes import NodeAdministration
from logdevice.client.admin.queries import Queries
from logdevice.client.append.appending import Appending
from logdevice.client.append.batching_writer import Writers
from logdevice.client.blocking_streams import BlockingLogsReader, BlockingReader, BlockingWriter
from logdevice.client.directory import Directory
from logdevice.client.loop_thread import LoopThread
from logdevice.client.read.lineages import Lineages
from logdevice.client.read.reading import Reading

if TYPE_CHECKING:
    from logdevice.client.blocking import Client
    from logdevice.client.client import AsyncClient

P = ParamSpec("P")
Part = TypeVar("Part")
Result = TypeVar("Result")
Here = TypeVar("Here", covariant=True)
There = TypeVar("There", covariant=True)

Work = Callable[[Part], Any]  # a call with its arguments, for the part that does it
Face = Callable[[Any, LoopThread], Any]


class Call(Protocol[P, Here, There]):
    """A call as a method of both faces: the async client returns `Here`, the blocking client `There`."""

    @overload
    def __get__(self, client: AsyncClient, kind: object) -> Callable[P, Here]: ...
    @overload
    def __get__(self, client: Client, kind: object) -> Callable[P, There]: ...


def call_of(
    part: type[Part], call: Callable[Concatenate[Part, P], Coroutine[Any, Any, Result]]
) -> Call[P, Coroutine[Any, Any, Result], Result]:
    """A call that does one thing. The method of the blocking client returns once it is done."""
    made: Call[P, Coroutine[Any, Any, Result], Result] = _method(part, call, None)
    return made


def opening(
    part: type[Part], call: Callable[Concatenate[Part, P], Here], face: Callable[[Any, LoopThread], There]
) -> Call[P, Here, There]:
    """A call that opens a reader or a writer. The blocking client wraps the result in `face`."""
    made: Call[P, Here, There] = _method(part, call, face)
    return made


def _method(part: type[Part], call: Callable[..., Any], face: Face | None) -> Any:
    @wraps(call)
    def method(client: Calls, /, *args: Any, **options: Any) -> Any:
        return client.perform(part, lambda doing: call(doing, *args, **options), face)

    return method


class Calls(ABC):
    """All calls, as methods. A face of the client inherits them and decides how they are done."""

    @abstractmethod
    def perform(self, part: type[Part], work: Work[Part], face: Face | None) -> Any:
        """Does a call: hands the part to `work`. A blocking client wraps a reader or writer in `face`."""

    append = call_of(Appending, Appending.append)
    append_many = call_of(Appending, Appending.append_many)
    append_batch = call_of(Appending, Appending.append_batch)
    append_tagged = call_of(Appending, Appending.append_tagged)
    append_status = call_of(Appending, Appending.append_status)
    writer = opening(Writers, Writers.writer, BlockingWriter)

    read = opening(Reading, Reading.read, BlockingReader)
    subscribe = opening(Reading, Reading.subscribe, BlockingReader)
    read_logs = opening(Reading, Reading.read_logs, BlockingLogsReader)

    tail = call_of(Queries, Queries.tail)
    tails = call_of(Queries, Queries.tails)
    first_lsn = call_of(Queries, Queries.first_lsn)
    find_time = call_of(Queries, Queries.find_time)
    find_key = call_of(Queries, Queries.find_key)
    is_empty = call_of(Queries, Queries.is_empty)
    data_size = call_of(Queries, Queries.data_size)
    lsn_after = call_of(Queries, Queries.lsn_after)
    find_record = call_of(Queries, Queries.find_record)
    trim = call_of(Queries, Queries.trim)

    peek = call_of(Points, Points.peek)
    read_at = call_of(Points, Points.read_at)
    fill = call_of(Points, Points.fill)

    create_log = call_of(Directory, Directory.create_log)
    create_directory = call_of(Directory, Directory.create_directory)
    set_attributes = call_of(Directory, Directory.set_attributes)
    remove_log = call_of(Directory, Directory.remove_log)
    rename = call_of(Directory, Directory.rename)
    logs = call_of(Directory, Directory.logs)
    find_log = call_of(Directory, Directory.find)

    cluster = call_of(NodeAdministration, NodeAdministration.cluster)
    sequencer = call_of(NodeAdministration, NodeAdministration.sequencer)
    node_status = call_of(NodeAdministration, NodeAdministration.node_status)
    node_states = call_of(NodeAdministration, NodeAdministration.node_states)
    mark_unrecoverable = call_of(NodeAdministration, NodeAdministration.mark_unrecoverable)
    rebuild_node = call_of(NodeAdministration, NodeAdministration.rebuild_node)
    drain_node = call_of(NodeAdministration, NodeAdministration.drain_node)
    undrain_node = call_of(NodeAdministration, NodeAdministration.undrain_node)
    remove_node = call_of(NodeAdministration, NodeAdministration.remove_node)
    copies = call_of(NodeAdministration, NodeAdministration.copies)
    epoch_metadata = call_of(NodeAdministration, NodeAdministration.epoch_metadata)

    lineage = call_of(Lineages, Lineages.lineage)
    check = call_of(Lineages, Lineages.check)

    barrier = call_of(Cuts, Cuts.barrier)
    create_cut = call_of(Cuts, Cuts.create_cut)
    cuts = call_of(Cuts, Cuts.cuts)
    cut = call_of(Cuts, Cuts.cut)
    remove_cut = call_of(Cuts, Cuts.remove_cut)

    purged_end = call_of(KeyedLogs, KeyedLogs.purged_end)
    note_purge = call_of(KeyedLogs, KeyedLogs.note_purge)
    drop = call_of(KeyedLogs, KeyedLogs.drop)

    backup = call_of(Backups, Backups.backup)
    restore = call_of(Backups, Backups.restore)
