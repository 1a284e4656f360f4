"""What an observer knows about one reader: what it was told, what it asked for, what it accepted.

The reader's host fills it from messages, never from the state of the machine, so that checkers do not rely on
the code that they check.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from logdevice.protocol.messages.read import ReadMode, Start, StatusNotice
from logdevice.protocol.read_stream.events import ReadRequest
from logdevice.types import AuthoritativeStatus, Gap, GapType, Lsn, NodeId, Record


@dataclass(slots=True, eq=False)
class StartsSeen:
    """What the reader has asked nodes for, by START."""

    mode: ReadMode | None = None  # of the latest START
    modes: set[ReadMode] = field(default_factory=set)  # of all STARTs so far
    mode_before: ReadMode | None = None  # before the event that is being handled
    filter_version: int = 0
    starts: dict[NodeId, int] = field(default_factory=dict)  # first START of this version, by node
    latest: Start | None = None

    def note(self, node: NodeId, start: Start, now_ms: int) -> None:
        if start.filter_version != self.filter_version:
            self.filter_version = start.filter_version
            self.starts.clear()
        self.mode = start.mode
        self.modes.add(start.mode)
        self.latest = start
        self.starts.setdefault(node, now_ms)


@dataclass(slots=True, eq=False)
class ReaderView:
    name: str
    request: ReadRequest
    window_lsns: int = 1 << 31
    is_started: bool = False
    is_ended: bool = False
    ends_by: GapType | None = None  # the log was removed, or access denied
    reading: StartsSeen = field(default_factory=StartsSeen)
    told: dict[NodeId, AuthoritativeStatus] = field(default_factory=dict)  # by the newest notice
    status_version: int = 0
    # Bad checksums found on receipt: (filter version, node, LSN).
    spoiled: set[tuple[int, NodeId, Lsn]] = field(default_factory=set)
    next: Lsn | None = None  # one after the last accepted item
    records: dict[Lsn, Record] = field(default_factory=dict)  # accepted
    gaps: list[Gap] = field(default_factory=list)  # accepted

    def learn_status(self, notice: StatusNotice) -> None:
        if notice.version > self.status_version:
            self.status_version = notice.version
            self.told = dict(notice.statuses)

    def status(self, node: NodeId) -> AuthoritativeStatus:
        return self.told.get(node, AuthoritativeStatus.FULLY_AUTHORITATIVE)
