"""Server read stream: one reader's stream of one log, as a storage node sees it.

It lives on one connection, from the reader's first START until EndServerStream or the end of the
connection. It reads the node's own store in bounded steps, one at a time, and sends in LSN order what
the copy filter assigns to this node. It promises two things: nothing below what it has sent or covered
with a gap notice follows under the same filter version, and when it pauses, it has told the reader
everything it knows. The rules S1 to S15 are in docs/protocol/read_path.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from logdevice.protocol.log_state.events import RebuildingChanged, ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_read import ReadEnd, ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.messages.read import (
    Start,
    Started,
    StartedStatus,
    StatusNotice,
    Stop,
    ToReader,
    Window,
)
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.protocol.server_stream.delivery import ServerDelivery
from logdevice.settings import NodeReadSettings
from logdevice.types import Location, Lsn, NodeId


@dataclass(frozen=True, slots=True)
class MessageSent:
    """`bytes` of records, as Record.size counts them, have left the connection's send queue."""

    bytes: int


@dataclass(frozen=True, slots=True)
class EndServerStream:
    """The reader has everything up to its end, or wants no more. The stream may be dropped.

    A START that comes later opens a new stream; a stream that was kept handles it as well.
    """


Event = (
    RecordsRead
    | MessageSent
    | Window
    | ReleaseAdvanced
    | Start
    | Stop
    | TrimAdvanced
    | ReadFailed
    | RebuildingChanged
    | StatusNotice
)
Effect = ToReader | StoreRead | EndServerStream  # records that are queued for the reader end in MessageSent


@dataclass(slots=True)
class _Version:
    """The state of one START."""

    start: Start
    filter: CopyFilter
    delivery: ServerDelivery
    read_pointer: Lsn  # everything below has been read from the store
    window_end: Lsn
    window_bytes: int
    has_failed: bool = False  # S13: silent until a START with a higher version


class ServerReadStream:
    """The machine that serves one log to one reader. It has no `start`: a START begins it."""

    def __init__(
        self,
        me: NodeId,
        settings: NodeReadSettings,
        locations: Mapping[NodeId, Location],
        *,
        released_end: Lsn,
        trim_end: Lsn,
        rebuilding: bool = False,
    ) -> None:
        self._me = me
        self._settings = settings
        self._locations = locations
        self._released_end = released_end
        self._trim_end = trim_end
        self._rebuilding = rebuilding
        self._status_version = -1
        self._version: _Version | None = None
        # These outlive a START: one store read (S6) and the bytes waiting in the connection.
        self._read: StoreRead | None = None
        self._read_is_outdated = False
        self._read_id = 0
        self._unsent_bytes = 0
        self._effects: list[Effect] = []

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event in. Returns the messages to send, and the next read of the store if there is one."""
        effects: list[Effect] = []
        self._effects = effects
        match event:
            case RecordsRead():
                self._on_records_read(event)
            case MessageSent():
                self._unsent_bytes = max(0, self._unsent_bytes - event.bytes)
            case Window():
                self._on_window(event)
            case ReleaseAdvanced():
                self._released_end = max(self._released_end, event.end)
            case Start():
                self._on_start(event)
            case Stop():
                self._end()
            case TrimAdvanced():
                self._trim_end = max(self._trim_end, event.end)
            case ReadFailed():
                self._on_read_failed(event)
            case RebuildingChanged():
                self._on_rebuilding(event.rebuilding)
            case StatusNotice():
                self._on_status(event)
            case _:
                assert_never(event)
        version = self._version
        if version is not None and not version.has_failed and not self._rebuilding:  # S12, S13
            self._advance(version)
        return effects

    def _on_records_read(self, result: RecordsRead) -> None:
        read = self._take_read(result.read_id)
        version = self._version
        if read is None or version is None:
            return
        assert read.start <= result.next <= read.gap_end, f"looked up to {result.next} for {read}"
        delivery = version.delivery
        bytes_before = delivery.bytes
        if result.is_behind_bridge:
            delivery.close_epoch(read.start)
        delivery.add(result.items, next=result.next, under_replicated=result.under_replicated)
        self._unsent_bytes += delivery.bytes - bytes_before
        version.read_pointer = max(version.read_pointer, result.next, delivery.end)
        # S8: after a full read, the next read begins with a record, which tells the reader as much.
        if result.end is not ReadEnd.BYTES or not result.items:
            delivery.cover(result.next)

    def _on_window(self, window: Window) -> None:
        version = self._version
        if version is not None and window.filter_version == version.start.filter_version:  # S3
            version.window_end = max(version.window_end, window.window_end)
            version.window_bytes = max(version.window_bytes, window.window_bytes)

    def _on_start(self, start: Start) -> None:
        if self._version is not None and start.filter_version <= self._version.start.filter_version:  # S2
            self._on_window(Window(start.log, start.filter_version, start.window_end, start.window_bytes))
            return
        self._version = version = _Version(
            start=start,
            filter=CopyFilter(self._me, start, self._locations),
            delivery=ServerDelivery(start),
            read_pointer=start.start,
            window_end=start.window_end,
            window_bytes=start.window_bytes,
        )
        self._read_is_outdated = True
        if start.start > start.end:
            # This is no range: refuse it.
            self._fail(version)
        else:
            status = StartedStatus.REBUILDING if self._rebuilding else StartedStatus.OK
            self._send_started(start, status)  # S1

    def _on_read_failed(self, failed: ReadFailed) -> None:
        if self._take_read(failed.read_id) is not None and self._version is not None:
            self._fail(self._version)

    def _on_rebuilding(self, rebuilding: bool) -> None:
        was_rebuilding, self._rebuilding = self._rebuilding, rebuilding
        if rebuilding and not was_rebuilding:
            # A read of a store that has just lost its data proves nothing.
            self._read_is_outdated = True
            if self._version is not None and not self._version.has_failed:
                self._send_started(self._version.start, StartedStatus.REBUILDING)  # S12

    def _on_status(self, notice: StatusNotice) -> None:
        if notice.version > self._status_version:
            self._status_version = notice.version
            self._effects.append(notice)

    def _advance(self, version: _Version) -> None:
        """Send what is due, then take the next step, if there is one: the end, or a read."""
        start, delivery = version.start, version.delivery
        trim_end = min(self._trim_end, start.end)
        version.read_pointer = max(version.read_pointer, trim_end)  # S7
        delivery.trim(trim_end)
        limit = min(start.end, self._released_end, version.window_end)  # S4, S14
        window_bytes = version.window_bytes - delivery.bytes
        is_resting = version.read_pointer >= limit or window_bytes <= 0  # S5
        if is_resting:
            # No read until the reader or the log moves, so tell the reader now what is known.
            delivery.cover(version.read_pointer)
        self._send_outbox(delivery)
        if delivery.end >= start.end:  # S11
            self._end()
        elif not is_resting:
            self._read_on(version, limit, window_bytes)

    def _read_on(self, version: _Version, end: Lsn, window_bytes: int) -> None:
        queue_bytes = self._settings.send_queue_bytes_max - self._unsent_bytes
        # S6: wait for enough room, or a full queue would lead to many small reads.
        has_room = queue_bytes >= self._settings.read_bytes_max or self._unsent_bytes == 0
        if self._read is not None or not has_room:
            return
        self._read_id += 1
        self._read_is_outdated = False
        self._read = StoreRead(
            read_id=self._read_id,
            log=version.start.log,
            start=version.read_pointer,
            end=end,
            # S4: a gap may reach past the window, a record may not.
            gap_end=min(version.start.end, self._released_end),
            bytes_max=min(self._settings.read_bytes_max, queue_bytes, window_bytes),
            time_ms_max=self._settings.read_time_ms_max,
            filter=version.filter,
            time_range=version.start.time_range,
            headers_only=version.start.headers_only,
        )
        self._effects.append(self._read)

    def _take_read(self, read_id: int) -> StoreRead | None:
        """The read in flight, if it is this one and its result is still wanted (S3)."""
        read = self._read
        if read is None or read.read_id != read_id:
            return None
        self._read = None
        return None if self._read_is_outdated else read

    def _send_outbox(self, delivery: ServerDelivery) -> None:
        self._effects += delivery.outbox
        delivery.outbox.clear()

    def _send_started(self, start: Start, status: StartedStatus) -> None:
        self._effects.append(Started(start.log, start.filter_version, status, self._released_end))

    def _fail(self, version: _Version) -> None:
        version.has_failed = True
        self._send_started(version.start, StartedStatus.FAILED)

    def _end(self) -> None:
        self._version = None
        self._read_is_outdated = True
        self._effects.append(EndServerStream())
