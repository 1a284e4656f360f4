"""The worlds that scenarios are played in: copies on nodes, votes of nodes, one node and one reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from logdevice.protocol.log_state.events import RebuildingChanged, ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_read import ReadFailed, StoreRead
from logdevice.protocol.messages.read import (
    GapNotice,
    ReadMode,
    Records,
    Start,
    Started,
    StatusNotice,
    Stop,
    ToReader,
    Window,
)
from logdevice.protocol.quorum import Quorum
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.protocol.server_stream.stream import EndServerStream, Event, MessageSent, ServerReadStream
from logdevice.protocol.tests.scenario import Arguments, Handler
from logdevice.settings import NodeReadSettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.types import (
    AuthoritativeStatus,
    Location,
    LogId,
    Lsn,
    LsnRange,
    NodeId,
    Record,
    RecordFlags,
    Replication,
)

LOG = LogId(1)


def start_message(arguments: Arguments) -> Start:
    seed = arguments.text("seed", "")
    return Start(
        log=LOG,
        filter_version=arguments.integer("version", 1),
        start=arguments.lsn("start", "oldest"),
        end=arguments.lsn("end", "max"),
        window_end=arguments.lsn("window", "max"),
        window_bytes=arguments.integer("bytes", 1_000_000),
        mode=ReadMode[arguments.text("mode", "SCD")],
        known_down=arguments.nodes("down", ""),
        replication=arguments.integer("replication", 0),
        shuffle_seed=int(seed) if seed else None,
        location=arguments.location("reader", ""),
    )


def record_of(arguments: Arguments) -> Record:
    names = arguments.text("flags", "")
    flags = sum(RecordFlags[name] for name in names.split("+")) if names else 0
    return Record(
        arguments.lsn("lsn"),
        timestamp_ms=0,
        copyset=arguments.nodes("copyset"),
        body=b"x" * arguments.integer("body", 0),
        flags=flags,
    )


class CopiesWorld:
    """Which nodes send which record: `node` gives the location of a node, `record` adds a record."""

    def __init__(self) -> None:
        self._locations: dict[NodeId, Location] = {}
        self._records: list[Record] = []

    def commands(self) -> Mapping[str, Handler]:
        return {"node": self.node, "record": self.record, "sends": self.sends, "shippers": self.shippers}

    def node(self, arguments: Arguments) -> Iterator[str]:
        self._locations[arguments.node("id")] = arguments.location("location")
        yield from ()

    def record(self, arguments: Arguments) -> Iterator[str]:
        self._records.append(record_of(arguments))
        yield from ()

    def sends(self, arguments: Arguments) -> Iterator[str]:
        """What each of the nodes sends of the records it holds."""
        members = arguments.nodes("nodes")
        start = start_message(arguments)
        for node in members:
            copies = CopyFilter(node, start, self._locations)
            sent = [
                str(int(record.lsn))
                for record in self._records
                if node in record.copyset and copies.ships(record.copyset, record.flags)
            ]
            yield f"{node} sends {', '.join(sent) or 'nothing'}"

    def shippers(self, arguments: Arguments) -> Iterator[str]:
        """The nodes that send each record. A node that is listed as known down but alive sends, too."""
        start = start_message(arguments)
        for record in self._records:
            shipping = [
                str(node)
                for node in record.copyset
                if CopyFilter(node, start, self._locations).ships(record.copyset, record.flags)
            ]
            yield f"{int(record.lsn)} {list(record.copyset)} is sent by {', '.join(shipping) or 'nobody'}"


class VotesWorld:
    """What the votes of a nodeset prove. The command `nodeset` begins anew."""

    def __init__(self) -> None:
        self._locations: dict[NodeId, Location] = {}
        self._quorum = Quorum({}, Replication.parse("1"))

    def commands(self) -> Mapping[str, Handler]:
        return {
            "node": self.node,
            "nodeset": self.nodeset,
            "vote": self.vote,
            "withdraw": self.withdraw,
            "status": self.status,
        }

    def node(self, arguments: Arguments) -> Iterator[str]:
        self._locations[arguments.node("id")] = arguments.location("location")
        yield from ()

    def nodeset(self, arguments: Arguments) -> Iterator[str]:
        members = arguments.nodes("nodes")
        locations = {node: self._locations.get(node, Location()) for node in members}
        self._quorum = Quorum(locations, Replication.parse(arguments.text("replication")))
        yield self._quorum.answer().value

    def vote(self, arguments: Arguments) -> Iterator[str]:
        for node in arguments.nodes("nodes"):
            self._quorum.vote(node, True)
        yield self._quorum.answer().value

    def withdraw(self, arguments: Arguments) -> Iterator[str]:
        for node in arguments.nodes("nodes"):
            self._quorum.vote(node, False)
        yield self._quorum.answer().value

    def status(self, arguments: Arguments) -> Iterator[str]:
        status = AuthoritativeStatus[arguments.text("is")]
        for node in arguments.nodes("nodes"):
            self._quorum.set_status(node, status)
        yield self._quorum.answer().value


class NodeWorld:
    """Node N1, its store, and one reader. The store answers at the command `read`."""

    def __init__(self) -> None:
        self._store = MemoryLogStore()
        self._stream = ServerReadStream(
            NodeId(1), NodeReadSettings(), {}, released_end=Lsn(0), trim_end=Lsn(0)
        )
        self._read: StoreRead | None = None

    def commands(self) -> Mapping[str, Handler]:
        return {
            "record": self.record,
            "lost": self.lost,
            "start": lambda arguments: self._feed(start_message(arguments)),
            "window": self.window,
            "stop": lambda _: self._feed(Stop(LOG)),
            "release": lambda arguments: self._feed(ReleaseAdvanced(arguments.lsn("end"))),
            "trim": self.trim,
            "rebuilding": self.rebuilding,
            "sent": lambda arguments: self._feed(MessageSent(arguments.integer("bytes"))),
            "read": self.read,
            "fail": self.fail,
        }

    def record(self, arguments: Arguments) -> Iterator[str]:
        self._store.put(LOG, record_of(arguments))
        yield from ()

    def lost(self, arguments: Arguments) -> Iterator[str]:
        self._store.mark_under_replicated(LOG, LsnRange(arguments.lsn("start"), arguments.lsn("end")))
        yield from ()

    def window(self, arguments: Arguments) -> Iterator[str]:
        window = Window(
            LOG,
            arguments.integer("version", 1),
            arguments.lsn("end"),
            arguments.integer("bytes", 1_000_000),
        )
        return self._feed(window)

    def trim(self, arguments: Arguments) -> Iterator[str]:
        end = arguments.lsn("end")
        yield from self._feed(TrimAdvanced(end))
        self._store.trim(LOG, end)

    def rebuilding(self, arguments: Arguments) -> Iterator[str]:
        return self._feed(RebuildingChanged(arguments.text("is") == "yes"))

    def read(self, _: Arguments) -> Iterator[str]:
        return self._feed(self._store.scan(self._take_read()))

    def fail(self, _: Arguments) -> Iterator[str]:
        return self._feed(ReadFailed(self._take_read().read_id))

    def _take_read(self) -> StoreRead:
        read, self._read = self._read, None
        assert read is not None, "no read is in flight"
        return read

    def _feed(self, event: Event) -> Iterator[str]:
        for effect in self._stream.handle(event, 0):
            match effect:
                case StoreRead():
                    self._read = effect
                    yield f"reads [{effect.start}, {effect.end})"
                case EndServerStream():
                    yield "ends"
                case _:
                    yield f"-> {describe(effect)}"


def describe(message: ToReader) -> str:
    """A message on one line."""
    match message:
        case Started():
            return f"STARTED v{message.filter_version} {message.status.value} released {message.released_end}"
        case Records():
            thin = " under-replicated" if message.under_replicated else ""
            return f"RECORDS v{message.filter_version} {' '.join(str(r.lsn) for r in message.records)}{thin}"
        case GapNotice():
            span = f"[{message.start}, {message.end})"
            return f"GAP v{message.filter_version} {message.reason.value} {span}"
        case StatusNotice():
            statuses = (f"{node} {status.name}" for node, status in message.statuses)
            return f"STATUS {message.version} {', '.join(statuses)}"
        case _:
            assert_never(message)
