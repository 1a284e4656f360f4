"""What each storage node of the read set has promised and sent so far.

A sender lives as long as its node is in the read set. Everything it promised belongs to one START:
a new START (rewind or reconnect) wipes it. `next` is the promise: whatever this node will ever send
below `next` under this START has been sent. It is the only thing gap detection believes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from logdevice.types import AuthoritativeStatus, Lsn, LsnRange, NodeId, Record


class SenderState(Enum):
    """Where the conversation with a node stands."""

    NEW = "NEW"  # not asked yet
    STARTING = "STARTING"  # START sent, no answer yet
    READING = "READING"  # STARTED; records may come
    REBUILDING = "REBUILDING"  # connected, but the node lacks data and sends nothing for now
    WAITING = "WAITING"  # not reachable or refused; asked again after a while


@dataclass(slots=True)
class Credit:
    """The byte window of one START: how much the node may send, did send, and we have let go of."""

    granted: int = 0
    received: int = 0
    returned: int = 0
    is_retired: bool = False  # another START has taken over; what is returned now is nobody's credit

    @property
    def outstanding(self) -> int:
        return self.received - self.returned


@dataclass(slots=True)
class Sender:
    """One node of the read set, under its latest START."""

    node: NodeId
    state: SenderState = SenderState.NEW
    next: int = 0
    # Where the node may have lost something: its silence there proves nothing (read_path.md G5).
    thin: list[LsnRange] = field(default_factory=list)
    has_sent_data: bool = False
    grace_counter: int = 0
    status: AuthoritativeStatus = AuthoritativeStatus.FULLY_AUTHORITATIVE
    credit: Credit = field(default_factory=Credit)
    told_window_end: int = 0
    # The connection gave no sign of life when it should have; do not use it again.
    is_suspect: bool = False
    failures: int = 0  # in a row; the delay before the next attempt grows with it
    bytes_received: int = 0
    records_received: int = 0

    def restart(self, *, head: int, granted: int, window_end: int) -> bool:
        """A new START goes out: forget every promise. Says whether a new connection is needed."""
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
        """Whether it will send nothing for `head` any more."""
        return self.next > head

    def is_thin_at(self, head: int) -> bool:
        return any(head in region for region in self.thin)

    def promise(self, end: int) -> None:
        """Nothing below `end` will come from this node; a smaller promise changes nothing."""
        self.next = max(self.next, end)

    def note_thin(self, start: int, end: int) -> None:
        if start < end:
            self.thin.append(LsnRange(Lsn(start), Lsn(end)))

    def forget_thin_below(self, head: int) -> None:
        if self.thin:
            self.thin = [region for region in self.thin if region.end > head]

    def count(self, records: tuple[Record, ...]) -> int:
        """Book a message's records, and say how many bytes they are."""
        size = sum(record.size for record in records)
        self.bytes_received += size
        self.records_received += len(records)
        self.credit.received += size
        return size

    @property
    def is_fit_for_scd(self) -> bool:
        """Whether single-copy delivery may rely on it from the start."""
        return (
            self.state in (SenderState.READING, SenderState.STARTING)
            and self.status is AuthoritativeStatus.FULLY_AUTHORITATIVE
            and not self.thin
        )
