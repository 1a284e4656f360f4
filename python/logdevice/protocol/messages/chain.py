"""What clients, sequencers and storage nodes say to each other about logs that are written along chains.

    client     ->  SETTLE                      sequencer ->  SETTLED
    client     ->  STORE, CHAIN READ           node      ->  STORED, CHAIN COPY
    sequencer  ->  STORE, CHAIN READ           the tail  ->  CHAIN COMPLETED, to the sequencer

Positions are given out in answer to an APPEND that claims one, and written by write-once STOREs
(`write.py`). Every request may be
sent again. What a node answers about a position is true for as long as the epoch is: what is there first
stays. CHAIN COMPLETED has no answer: a sequencer that misses one looks by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Request
from logdevice.protocol.messages.write import AppendStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Request["Settled"]):
    """What is at this position? See to it that it is decided, or else only say who can tell."""

    log: LogId
    lsn: Lsn
    decide: bool = True
    token: int = 0  # of the append it was given to: whoever asks will not write there any more
    seen_epoch: Epoch = Epoch(0)  # as in APPEND


class Fate(Enum):
    """What is at a position, or who can tell."""

    DATA = "DATA"  # the record is on every node of its chain
    HOLE = "HOLE"  # nothing is there, for ever
    READ = "READ"  # the log itself tells: it is released, or recovery decides it
    TAIL = "TAIL"  # `node`, the tail of its chain, can tell: it was not to be decided
    UNISSUED = "UNISSUED"  # nobody has been given this position


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Answer to SETTLE; with another status than OK only `node` means something: who to ask instead."""

    status: AppendStatus
    lsn: Lsn = Lsn(0)
    fate: Fate = Fate.READ
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class ChainRead(Request["ChainCopy"]):
    """What do you have at this position, released or not?"""

    log: LogId
    lsn: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCopy:
    """Answer to CHAIN READ."""

    lsn: Lsn
    records: tuple[Record, ...] = ()  # one, or none
    has_failed: bool = False  # the store could not be read, or lacks what it should have
    is_sealed: bool = False  # recovery may have decided, or be about to decide, otherwise


@dataclass(frozen=True, slots=True)
class ChainCompleted:
    """The tail has this position, so its whole chain does."""

    log: LogId
    lsn: Lsn
    is_hole: bool
