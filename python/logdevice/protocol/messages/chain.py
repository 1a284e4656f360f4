"""What clients, sequencers and storage nodes say to each other about logs that are written along chains.

    client     ->  SETTLE                      sequencer ->  SETTLED
    client     ->  STORE, CHAIN READ           node      ->  STORED, CHAIN COPY
    sequencer  ->  STORE, CHAIN READ           the tail  ->  CHAIN COMPLETED, to the sequencer

A position is given out in answer to an APPEND that claims one, and written by write-once STOREs (`write.py`).
Every request may be sent again. A node's answer about a position stays true for the whole epoch: what is
stored there first stays. CHAIN COMPLETED has no answer: a sequencer that misses one asks the nodes itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Request
from logdevice.protocol.messages.write import AppendStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Request["Settled"]):
    """What is at this position? With `decide` it gets decided; without, the answer may name a node to ask."""

    log: LogId
    lsn: Lsn
    decide: bool = True
    token: int = 0  # of the append that got the position: the client that asks will not write there any more
    seen_epoch: Epoch = Epoch(0)  # as in APPEND


class Fate(Enum):
    """What is at a position, or where to ask."""

    DATA = "DATA"  # the record is on every node of its chain
    HOLE = "HOLE"  # nothing is there, for ever
    READ = "READ"  # read the log: the position is released, or recovery decides it
    TAIL = "TAIL"  # ask `node`, the tail of its chain; only without `decide`
    UNISSUED = "UNISSUED"  # this position has not been given out


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Answer to SETTLE. If the status is not OK, only `node` is set: the node to ask instead."""

    status: AppendStatus
    lsn: Lsn = Lsn(0)
    fate: Fate = Fate.READ
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class ChainRead(Request["ChainCopy"]):
    """What does this node have at this position, released or not?"""

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
