"""What each storage node of the read set has promised and sent so far.

A sender lives as long as its node is in the read set. Its promises belong to one START: a new START
(rewind or reconnect) wipes them. `next` is the promise: below `next`, the node will send nothing more
under this START. Gap detection relies on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from logdevice.types import AuthoritativeStatus, Lsn, LsnRange, NodeId, Record


class SenderState(Enum):
    """How far the stream has come with a node."""

    NEW = "NEW"  # not asked yet
    STARTING = "STARTING"  # START sent, no answer yet
    READING = "READING"  # STARTED; records may come
    REBUILDING = "REBUILDING"  # connected, but the node lacks data and sends nothing for now
    WAITING = "WAITING"  # not reachable, or it refused; it is asked again later


@dataclass(slots=True)
class Credit:
    """The byte window of one START: how many bytes the node may send, has sent, and has been given back."""

    granted: int = 0
    received: int = 0
    returned: int = 0
    is_retired: bool = False  # a newer START has a credit of its own; bytes returned now do not extend it

    @property
    def outstanding(self) -> int:
        return self.received - self.returned


@dataclass(slots=True)
class Sender:
    """One node of the read set, under its latest START."""

    node: NodeId
    state: SenderState = SenderState.NEW
    next: int = 0
    # Under-replicated regions: the node may have lost records there, so its silence proves nothing
    # (read_path.md G5).
    thin: list[LsnRange] = field(default_factory=list)
    has_sent_data: bool = False
    grace_counter: int = 0
    status: AuthoritativeStatus = AuthoritativeStatus.FULLY_AUTHORITATIVE
    credit: Credit = field(default_factory=Credit)
    told_window_end: int = 0
    # The connection was silent when an answer was due; do not use it again.
    is_suspect: bool = False
    failures: int = 0  # in a row; the pause before the next attempt grows with them
    bytes_received: int = 0
    records_received: int = 0

    def restart(self, *, head: int, granted: int, window_end: int) -> bool:
        """A new START goes out: forget every promise. Returns whether a new connection is needed."""
        needs_new_connection = self.is_suspect
        self.credit.is_retired = True
        self.credit = Credit(granted=granted)
        self.state = SenderState.STARTING
        self.next = head
        self.thin.clear()
        self.has_sent_data = False
        self.told_window_end = window_end
        self.is_suspect = False
        return needs_new_connection

    def is_past(self, head: int) -> bool:
        """Whether the node will not send `head` any more."""
        return self.next > head

    def is_thin_at(self, head: int) -> bool:
        """Whether the node may have lost the record at `head`."""
        return any(head in region for region in self.thin)

    def promise(self, end: int) -> None:
        """The node will send nothing more below `end`. A smaller promise than before changes nothing."""
        self.next = max(self.next, end)

    def note_thin(self, start: int, end: int) -> None:
        """The node may have lost records of [start, end)."""
        if start < end:
            self.thin.append(LsnRange(Lsn(start), Lsn(end)))

    def forget_thin_below(self, head: int) -> None:
        if self.thin:
            self.thin = [region for region in self.thin if region.end > head]

    def count(self, records: tuple[Record, ...]) -> None:
        """Count a message's records and their bytes."""
        size = sum(record.size for record in records)
        self.bytes_received += size
        self.records_received += len(records)
        self.credit.received += size

    @property
    def is_fit_for_scd(self) -> bool:
        """Whether single-copy delivery may begin without listing the node."""
        return (
            self.state in (SenderState.READING, SenderState.STARTING)
            and self.status is AuthoritativeStatus.FULLY_AUTHORITATIVE
            and not self.thin
        )
