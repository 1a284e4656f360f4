"""The ledger of promises: every attempt to append and its outcome, everything that was ever released.

It is filled by witnesses, clients and writers of the simulation, never by the machines. It lives as long as
the run and forgets nothing: a promise holds for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from logdevice.protocol.messages.write import Append
from logdevice.types import Epoch, EpochMetadata, Location, Lsn, LsnRange, NodeId

# Writer, whether it is ordered, and the place of the append among the writer's (life, number of the append).
Write = tuple[int, bool, tuple[int, int]]


class AppendOutcome(Enum):
    PENDING = "PENDING"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    REFUSED = "REFUSED"  # not in the log, now and for ever
    UNKNOWN = "UNKNOWN"


@dataclass(slots=True)
class AppendAttempt:
    append: Append
    outcome: AppendOutcome = AppendOutcome.PENDING
    arrived_ms: int | None = None  # at a sequencer


@dataclass(slots=True)
class Promises:
    """What one node has said about itself and may never take back."""

    seal: Epoch = Epoch(0)
    trim_end: Lsn = Lsn(0)
    recovered: set[Epoch] = field(default_factory=set)


@dataclass(slots=True)
class TaggedPromises:
    """Promises about appends with a tag. Their answers do not always contain a position."""

    made: dict[bytes, Write] = field(default_factory=dict)
    somewhere: set[bytes] = field(default_factory=set)  # acknowledged, without a position
    later: set[Lsn] = field(default_factory=set)  # acknowledged by a later sequencer than took the append


class Ledger:
    def __init__(self, locations: Mapping[NodeId, Location]) -> None:
        self.locations = locations
        self.attempts: dict[bytes, AppendAttempt] = {}
        self.promised: dict[Lsn, bytes] = {}  # acknowledged
        self.tagged = TaggedPromises()
        self.contents: dict[Lsn, bytes | None] = {}  # what is released; None: a hole
        self.homes: dict[bytes, Lsn] = {}  # where each released body is
        self.empty: list[LsnRange] = []  # ranges that a reader got as a BRIDGE gap
        self.epochs: dict[Epoch, EpochMetadata] = {}  # as given out
        self.released_end = Lsn(0)  # the furthest that any sequencer has released
        self.trim_end = Lsn(0)  # the furthest that the operator has trimmed
        self.has_branched = False  # recovery could not prove that nothing is lost: it forgets writers (O8)
        self.seals: dict[NodeId, Epoch] = {}  # durable seal of each node
        self.sealed_ms: dict[Epoch, int] = {}  # when enough nodes had sealed it
        self.tails_known: set[Epoch] = set()  # epochs that began where the one before them ended

    def sent(self, append: Append) -> None:
        assert append.body not in self.attempts, "each attempt has its own body"
        self.attempts[bytes(append.body)] = AppendAttempt(append)

    def acknowledged(self, body: bytes, lsn: Lsn) -> None:
        self.attempts[body].outcome = AppendOutcome.ACKNOWLEDGED
        self.promised[lsn] = body

    def settled(self, body: bytes, lsn: Lsn) -> None:
        """A writer was told that its append is in the log; LSN 0 if it was not told where."""
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
        """The LSNs in a range that are known to hold a record: released or acknowledged."""
        known = {lsn for lsn, content in self.contents.items() if content is not None} | self.promised.keys()
        return sorted(lsn for lsn in known if start <= lsn < end)
