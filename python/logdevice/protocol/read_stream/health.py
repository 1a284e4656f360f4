"""What a read stream reports to a person: how it reads, what it waits for, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.connections import Connections
from logdevice.protocol.read_stream.delivery import Delivery
from logdevice.protocol.read_stream.failover import Failover
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.types import Lsn, NodeId


class Waiting(Enum):
    """Why the head of a stream does not move. A stream that reads at full speed waits for NODES."""

    NODES = "NODES"  # nodes that could have the head have not answered
    RELEASE = "RELEASE"  # caught up: nothing is released at the head
    APPLICATION = "APPLICATION"  # what was delivered has not been consumed
    METADATA = "METADATA"  # it is not known which nodes store the head's epoch
    REWIND = "REWIND"  # a rewind is about to happen
    COPIES = "COPIES"  # the head is here, and a durable reader waits until its lost copies are restored
    GRACE = "GRACE"  # enough nodes lack the head; the last ones get some time to answer
    ENDED = "ENDED"  # nothing more to read


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHealth:
    """How a reader reads and what it waits for, at one moment; `str()` of it is one line for a person."""

    mode: ReadMode  # single-copy delivery (SCD) or all-send-all
    head: Lsn  # the next LSN to be delivered
    released_end: Lsn  # records below are released; 0: not known
    waiting: Waiting  # why the head does not move
    waiting_for: str  # names the nodes, the epoch or the rewind reasons
    waiting_since_ms: int
    is_healthy: bool  # enough nodes are connected, or were a moment ago
    known_down: tuple[NodeId, ...]  # nodes whose records other nodes send
    slow: tuple[NodeId, ...]  # nodes found much slower than their peers
    rewinds: int  # how often all nodes were started again at the head
    rewind_reasons: Mapping[str, int]  # how often each reason was among the causes
    bytes_by_node: Mapping[NodeId, int]
    records_by_node: Mapping[NodeId, int]
    duplicates: int  # copies of records that were there already
    violations: int  # messages that broke the protocol and were dropped

    def __str__(self) -> str:
        lists = "".join(
            f", {name} {' '.join(map(str, nodes))}"
            for name, nodes in (("known down", self.known_down), ("slow", self.slow))
            if nodes
        )
        waiting_for = f" ({self.waiting_for})" if self.waiting_for else ""
        return (
            f"{self.mode.value} at {self.head}, waiting for {self.waiting.value}{waiting_for} "
            f"since {self.waiting_since_ms} ms{lists}, {self.rewinds} rewinds"
        )


def snapshot(
    window: SlidingWindow,
    connections: Connections,
    failover: Failover,
    delivery: Delivery,
    *,
    violations: int,
    is_healthy: bool,
) -> StreamHealth:
    """The health of a stream with these parts."""
    waiting, waiting_for = _waiting(window, connections, failover, delivery)
    return StreamHealth(
        mode=failover.scd.mode,
        head=Lsn(window.head),
        released_end=Lsn(connections.released_end),
        waiting=waiting,
        waiting_for=waiting_for,
        waiting_since_ms=failover.progress_ms,
        is_healthy=is_healthy,
        known_down=tuple(sorted(failover.scd.down)),
        slow=failover.detector.on_probation,
        rewinds=failover.rewinds.done,
        rewind_reasons={reason.value: count for reason, count in failover.rewinds.reasons.items()},
        bytes_by_node={sender.node: sender.bytes_received for sender in connections.senders},
        records_by_node={sender.node: sender.records_received for sender in connections.senders},
        duplicates=window.duplicates,
        violations=violations,
    )


def _waiting(
    window: SlidingWindow, connections: Connections, failover: Failover, delivery: Delivery
) -> tuple[Waiting, str]:
    """The first thing that must happen before the head can move, and its details (H2)."""
    head = window.head
    if head >= window.end and not window.has_unconsumed:
        return Waiting.ENDED, ""
    if head >= min(window.window_end, window.end):
        return Waiting.APPLICATION, f"it has consumed only up to {Lsn(window.consumed)}"
    if not delivery.knows_head and (delivery.epochs.is_open_question or connections.released_end > head):
        return Waiting.METADATA, f"of epoch {Lsn(head).epoch}"
    if delivery.knows_head and delivery.is_held:
        return Waiting.COPIES, ", ".join(map(str, sorted(connections.lacking)))
    if failover.rewinds.is_pending:
        return Waiting.REWIND, ", ".join(reason.value for reason in failover.rewinds.pending)
    if connections.released_end <= head and connections.nodes:
        return Waiting.RELEASE, f"of {Lsn(head)}"
    if delivery.is_in_grace:
        return Waiting.GRACE, ", ".join(str(node) for node in _silent(connections, head))
    return Waiting.NODES, ", ".join(str(node) for node in _silent(connections, head)) or "no node is known"


def _silent(connections: Connections, head: int) -> list[NodeId]:
    return [sender.node for sender in connections.senders if not sender.is_past(head)]
