"""A server read stream for tests; the test answers its reads of the store.

The node is N1. `Stream` feeds events and returns what the machine sends; the reads it asks for
collect in `reads`. The functions below build the messages a test expects.
"""

from __future__ import annotations

from logdevice.protocol.log_state.events import ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd, RecordsRead, StoreRead
from logdevice.protocol.messages.read import (
    GapNotice,
    GapReason,
    ReadMode,
    Records,
    Start,
    Started,
    StartedStatus,
    Window,
)
from logdevice.protocol.server_stream.stream import Effect, Event, ServerReadStream
from logdevice.settings import NodeReadSettings
from logdevice.types import LogId, Lsn, NodeId, Record, nodes

LOG = LogId(7)
N1 = NodeId(1)
START = Start(
    log=LOG,
    filter_version=1,
    start=Lsn(10),
    end=Lsn(100),
    window_end=Lsn(50),
    window_bytes=10_000,
    mode=ReadMode.SCD,
    replication=3,
)


def record(lsn: int, *, body: int = 0, flags: int = 0) -> Record:
    return Record(Lsn(lsn), timestamp_ms=lsn, copyset=nodes([1, 2, 3]), body=b"x" * body, flags=flags)


class Stream:
    """A machine and the read it waits for."""

    def __init__(
        self,
        *,
        released: int = 1000,
        trimmed: int = 0,
        rebuilding: bool = False,
        settings: NodeReadSettings | None = None,
    ) -> None:
        self.machine = ServerReadStream(
            N1,
            settings or NodeReadSettings(),
            {},
            released_end=Lsn(released),
            trim_end=Lsn(trimmed),
            rebuilding=rebuilding,
        )
        self.reads: list[StoreRead] = []

    def feed(self, event: Event) -> list[Effect]:
        """The effects of an event, without the read of the store."""
        effects = self.machine.handle(event, 0)
        self.reads += [effect for effect in effects if isinstance(effect, StoreRead)]
        return [effect for effect in effects if not isinstance(effect, StoreRead)]

    def start(self, start: Start = START) -> list[Effect]:
        return self.feed(start)

    def window(self, end: int, *, size: int = 10_000, version: int = 1) -> list[Effect]:
        return self.feed(Window(LOG, version, Lsn(end), size))

    def release(self, end: int) -> list[Effect]:
        return self.feed(ReleaseAdvanced(Lsn(end)))

    def trim(self, end: int) -> list[Effect]:
        return self.feed(TrimAdvanced(Lsn(end)))

    def found(
        self,
        *items: int | Record | FilteredOut,
        next: int | None = None,
        end: ReadEnd = ReadEnd.LIMIT,
        thin: bool = False,
        behind_bridge: bool = False,
    ) -> list[Effect]:
        """The store answers the last read: it read up to `next` and found these records."""
        read = self.reads[-1]
        found = tuple(record(item) if isinstance(item, int) else item for item in items)
        looked_to = read.end if next is None else Lsn(next)
        return self.feed(RecordsRead(read.read_id, found, looked_to, end, thin, behind_bridge))

    @property
    def reading(self) -> tuple[int, int]:
        """The range of the last read."""
        return int(self.reads[-1].start), int(self.reads[-1].end)


def started(status: StartedStatus = StartedStatus.OK, *, version: int = 1, released: int = 1000) -> Started:
    return Started(LOG, version, status, Lsn(released))


def records(*items: int | Record, version: int = 1, thin: bool = False) -> Records:
    sent = tuple(record(item) if isinstance(item, int) else item for item in items)
    return Records(LOG, version, sent, thin)


def gap(start: int, end: int, reason: GapReason = GapReason.NO_RECORDS, *, version: int = 1) -> GapNotice:
    return GapNotice(LOG, version, Lsn(start), Lsn(end), reason)
