"""The messages between nodes: pings, and requests about copies when data is rebuilt or moved.

A request about copies names the rebuilding it belongs to. A node that knows of a later rebuilding refuses
it, so an outdated donor cannot undo what another donor has done since. Every request may be sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Request
from logdevice.types import LogId, Lsn, NodeId, Record


@dataclass(frozen=True, slots=True)
class Ping(Request["Pong"]):
    """Is this node alive? Every node pings every other node, and gets a PONG."""

    node: NodeId  # the sender
    # Of the sender's process: its start time, so that a restart shows; negative when it is about to stop.
    generation: int


@dataclass(frozen=True, slots=True)
class Pong:
    """Answer to PING. The generation is that of the process that answers."""

    generation: int


@dataclass(frozen=True, slots=True)
class PutCopies(Request["CopiesStored"]):
    """Store these copies of released records."""

    log: LogId
    version: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class AmendCopies(Request["CopiesStored"]):
    """Replace the headers of records that this node holds. The records come without bodies."""

    log: LogId
    version: int
    records: tuple[Record, ...]


class CopiesStatus(Enum):
    OK = "OK"
    AGAIN = "AGAIN"  # the records are not released here yet, or the node has too much to do: try later
    OUTDATED = "OUTDATED"  # the node knows of a later rebuilding: begin again
    NO_SPACE = "NO_SPACE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class CopiesStored:
    """Answer to PUT COPIES and AMEND COPIES, after the change is durable."""

    status: CopiesStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class GetCopies(Request["CopiesAre"]):
    """Which copies does this node hold of [start, end)?"""

    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesAre:
    """All copies of [start, next) that a node has, without their bodies. Answer to GET COPIES."""

    next: Lsn  # the end of what this answer covers
    records: tuple[Record, ...]
    checksums: tuple[int, ...]  # of the bodies; -1 where a body cannot be read
    trim_end: Lsn  # everything below was removed on purpose, as the node knows it
    released_end: Lsn  # records below are released, as the node knows it
