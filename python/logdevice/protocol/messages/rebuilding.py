"""What nodes say to each other about themselves: that they are there, and what they copy when data is moved.

A request about copies names the rebuilding it belongs to. A node that knows of a later one refuses it, so a
donor that is behind cannot undo what another one has decided since. Every request may be sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Request
from logdevice.types import LogId, Lsn, NodeId, Record


@dataclass(frozen=True, slots=True)
class Ping(Request["Pong"]):
    """Are you there? Sent by every node to every other, and answered by PONG."""

    node: NodeId  # the sender
    # Of the sender's process: its start time, so that a restart shows; negative when it is about to stop.
    generation: int


@dataclass(frozen=True, slots=True)
class Pong:
    """I am. The generation is that of the process which answers."""

    generation: int


@dataclass(frozen=True, slots=True)
class PutCopies(Request["CopiesStored"]):
    """Keep these copies of released records."""

    log: LogId
    version: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class AmendCopies(Request["CopiesStored"]):
    """You hold these records: their headers are new. They come without bodies."""

    log: LogId
    version: int
    records: tuple[Record, ...]


class CopiesStatus(Enum):
    OK = "OK"
    AGAIN = "AGAIN"  # the records are not released here yet, or the node has too much to do: try later
    OUTDATED = "OUTDATED"  # something has happened to nodes since: begin again
    NO_SPACE = "NO_SPACE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class CopiesStored:
    """Answer to both, after it is durable."""

    status: CopiesStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class GetCopies(Request["CopiesAre"]):
    """Which copies do you hold of [start, end)?"""

    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesAre:
    """Answer to GET COPIES: everything held of [start, next), without bodies but with their checksums."""

    next: Lsn
    records: tuple[Record, ...]
    checksums: tuple[int, ...]  # of the bodies; -1 where one cannot be read
    trim_end: Lsn
    released_end: Lsn
