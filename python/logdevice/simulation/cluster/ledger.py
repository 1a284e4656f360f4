"""What was promised to whom: every attempt to append and its outcome, everything that was ever released.

Filled by those who watch the cluster, never by the machines. It lives as long as the run and forgets
nothing: a promise that was made once holds for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from logdevice.protocol.messages.write import Append
from logdevice.types import Epoch, EpochMetadata, Location, Lsn, LsnRange, NodeId

# Writer, whether it is ordered, and when the append was made (life, number in it).
Write = tuple[int, bool, tuple[int, int]]


class AppendOutcome(Enum):
    PENDING = "PENDING"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    REFUSED = "REFUSED"  # certainly not in the log, now and for ever
    UNKNOWN = "UNKNOWN"


@dataclass(slots=True)
class AppendAttempt:
    append: Append
    outcome: AppendOutcome = AppendOutcome.PENDING
    arrived_ms: int | None = None  # at a sequencer


@dataclass(slots=True)
class Promises:
    """What one node has said about itself, and may never take back."""

    seal: Epoch = Epoch(0)
    trim_end: Lsn = Lsn(0)
    recovered: set[Epoch] = field(default_factory=set)


@dataclass(slots=True)
class TaggedPromises:
    """Of appends with a tag, whose answer does not always say where they are."""

    made: dict[bytes, Write] = field(default_factory=dict)
    somewhere: set[bytes] = field(default_factory=set)  # acknowledged, without a position
    later: set[Lsn] = field(default_factory=set)  # acknowledged by another sequencer than took it


class Ledger:
    def __init__(self, locations: Mapping[NodeId, Location]) -> None:
        self.locations = locations
        self.attempts: dict[bytes, AppendAttempt] = {}
        self.promised: dict[Lsn, bytes] = {}  # acknowledged
        self.tagged = TaggedPromises()
        self.contents: dict[Lsn, bytes | None] = {}  # released; None: nothing is there
        self.homes: dict[bytes, Lsn] = {}  # of released bodies
        self.empty: list[LsnRange] = []  # covered by a bridge, as a reader was told
        self.epochs: dict[Epoch, EpochMetadata] = {}  # as given out
        self.released_end = Lsn(0)  # the furthest that any sequencer has released
        self.trim_end = Lsn(0)  # the furthest that anybody was asked to trim
        self.has_branched = False  # recovery could not prove that nothing is lost: it forgets writers (O8)
        self.seals: dict[NodeId, Epoch] = {}  # durable
        self.sealed_ms: dict[Epoch, int] = {}  # when enough nodes had sealed it
        self.tails_known: set[Epoch] = set()  # epochs that began where the one before them ended

    def sent(self, append: Append) -> None:
        assert append.body not in self.attempts, "each attempt has a body of its own"
        self.attempts[bytes(append.body)] = AppendAttempt(append)

    def acknowledged(self, body: bytes, lsn: Lsn) -> None:
        self.attempts[body].outcome = AppendOutcome.ACKNOWLEDGED
        self.promised[lsn] = body

    def settled(self, body: bytes, lsn: Lsn) -> None:
        """A writer was told that its append is in the log, if not always where."""
        self.attempts[body].outcome = AppendOutcome.ACKNOWLEDGED
        if lsn:
            if lsn not in self.promised:
                self.tagged.later.add(lsn)
            self.promised[lsn] = body
        else:
            self.tagged.somewhere.add(body)

    def unknown(self, body: bytes) -> None:
        self.attempts[body].outcome = AppendOutcome.UNKNOWN

    def refused(self, body: bytes) -> None:
        self.attempts[body].outcome = AppendOutcome.REFUSED

    def note(self, lsn: Lsn, content: bytes | None) -> None:
        self.contents.setdefault(lsn, content)
        if content is not None:
            self.homes.setdefault(content, lsn)

    def records_in(self, start: Lsn, end: Lsn) -> list[Lsn]:
        """The LSNs that hold a record, as far as anybody was told."""
        known = {lsn for lsn, content in self.contents.items() if content is not None} | self.promised.keys()
        return sorted(lsn for lsn in known if start <= lsn < end)
