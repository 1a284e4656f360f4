"""What a reader is promised, one small check per promise.

Each check is a function of the truth and of what an outside observer saw; it returns the text of a complaint,
or None. The checks do not look into machines. They count quorums themselves, in the simplest way, and do not
use the code under test. I1 to I8 are the promises in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdevice.protocol.messages.read import ReadMode, Start, Window
from logdevice.protocol.read_stream.health import StreamHealth, Waiting
from logdevice.simulation.reading.oracle import is_f_majority
from logdevice.simulation.reading.truth import Slot, SlotKind, Truth
from logdevice.simulation.reading.view import ReaderView
from logdevice.types import AuthoritativeStatus, Gap, GapType, Lsn, NodeId, Record, epoch_start

Item = Record | Gap
_COUNTS = (AuthoritativeStatus.FULLY_AUTHORITATIVE, AuthoritativeStatus.UNAVAILABLE)
_FINAL = (GapType.ACCESS, GapType.NOTINCONFIG)
_BY_SILENCE = (GapType.DATALOSS, GapType.BRIDGE)


def out_of_order(view: ReaderView, item: Item) -> str | None:
    """I1, I2: LSNs strictly increase, and each is in exactly one record or gap."""
    expected = view.request.start if view.next is None else view.next
    start = item.lsn if isinstance(item, Record) else item.start
    if start != expected:
        return f"expected {expected} next, got {_name(item)}"
    if isinstance(item, Gap) and item.end <= item.start:
        return f"{item} is empty"
    if (item.lsn.next if isinstance(item, Record) else item.end) > view.request.end:
        return f"{_name(item)} goes past the end {view.request.end}"
    return None


def wrong_content(truth: Truth, view: ReaderView, record: Record) -> str | None:
    """A record has what was written at its LSN."""
    slot = truth.slots.get(record.lsn)
    if slot is None or slot.kind is not SlotKind.DATA:
        return f"record {record.lsn} was never written"
    body = b"" if view.request.headers_only else slot.record.body
    if (record.body, record.timestamp_ms, record.flags) != (
        body,
        slot.record.timestamp_ms,
        slot.record.flags,
    ):
        return f"record {record.lsn} is not what was written"
    time_range = view.request.time_range
    if time_range is not None and record.timestamp_ms not in time_range:
        return f"record {record.lsn} is outside the time range of the reader"
    return None


def unreleased(truth: Truth, item: Item) -> str | None:
    """I6: nothing at or above the release is delivered. A released bridge covers the rest of its epoch."""
    if isinstance(item, Record):
        is_early = item.lsn >= truth.released_end
    elif item.type is GapType.BRIDGE:
        # Epoch 0 and ESN 0 are never used: no release is needed to know that.
        first = max(item.start, epoch_start(max(1, item.start.epoch)))
        is_early = truth.released_end <= first < item.end
    else:
        is_early = item.end > truth.released_end and item.type not in _FINAL
    return f"{_name(item)} delivered, but only {truth.released_end} is released" if is_early else None


def untrue_gap(truth: Truth, view: ReaderView, gap: Gap) -> str | None:
    """A gap covers only LSNs that fit its type."""
    slots = truth.slots_in(gap.start, gap.end)
    time_range = view.request.time_range
    match gap.type:
        case GapType.TRIM:
            is_true = gap.end <= truth.trim_end
        case GapType.HOLE:
            is_true = len(slots) == gap.end - gap.start and all(slot.kind is SlotKind.HOLE for slot in slots)
        case GapType.FILTERED_OUT:
            is_true = len(slots) == gap.end - gap.start and all(
                slot.kind is SlotKind.DATA
                and time_range is not None
                and slot.record.timestamp_ms not in time_range
                for slot in slots
            )
        case GapType.DATALOSS:
            # After the last LSN of an epoch nothing can be lost, unless the bridge is missing as well or
            # is beyond the reader's own end.
            is_bridge_gone = _is_bridge_gone(truth, view, gap)
            is_true = len(slots) == gap.end - gap.start or is_bridge_gone or gap.end == view.request.end
        case GapType.BRIDGE:
            is_true = True  # `invented_loss` checks whether it hides a record
        case _:
            is_true = gap.type is view.ends_by and gap.end == view.request.end
    return None if is_true else f"{gap} is not true: there is {_content(slots)}"


def mistaken_trim(truth: Truth, view: ReaderView, gap: Gap) -> str | None:
    """What every node had trimmed before it was asked is reported as TRIM, not as DATALOSS."""
    if gap.type is GapType.DATALOSS and gap.start < truth.trim_end:
        metadata = truth.metadata_of(gap.start.epoch)
        if all(
            node in view.reading.starts and truth.had_trimmed(node, gap.start, view.reading.starts[node])
            for node in metadata.nodeset
        ):
            return f"{gap}, but {gap.start} was trimmed, as every node knew"
    return None


def _is_bridge_gone(truth: Truth, view: ReaderView, gap: Gap) -> bool:
    """Whether this reader had reason to miss the bridge record of the gap's epoch."""
    spoiled = {lsn for _, _, lsn in view.spoiled}
    slots = truth.slots_in(Lsn.of(gap.start.epoch, 0), gap.end)
    return any(
        slot.kind is SlotKind.BRIDGE and (slot.is_damaged or slot.record.lsn in spoiled) for slot in slots
    )


def invented_loss(truth: Truth, view: ReaderView, gap: Gap) -> str | None:
    """I4: a record that enough nodes would have sent is not reported as lost, nor hidden by a BRIDGE gap."""
    if gap.type not in _BY_SILENCE:
        return None
    for slot in truth.slots_in(max(gap.start, truth.trim_end), gap.end):
        if slot.kind is SlotKind.BRIDGE and gap.type is GapType.BRIDGE:
            continue
        witnesses = _holders_that_count(view, slot)
        if witnesses and not _is_loss_excusable(truth, view, slot):
            return f"{gap} covers {slot.record.lsn}, which {_names(witnesses)} had all the time"
    return None


def _holders_that_count(view: ReaderView, slot: Slot) -> list[NodeId]:
    """Nodes that had a good copy when they were asked, and whose vote counts for this reader."""
    return [
        node
        for node, since_ms in sorted(slot.intact_since_ms.items())
        if view.status(node) in _COUNTS
        and since_ms <= view.reading.starts.get(node, since_ms)
        and (view.reading.filter_version, node, slot.record.lsn) not in view.spoiled
    ]


def _is_loss_excusable(truth: Truth, view: ReaderView, slot: Slot) -> bool:
    """Whether the nodes that may correctly report nothing at this LSN are an f-majority."""
    lsn = slot.record.lsn
    metadata = truth.metadata_of(lsn.epoch)
    holders = _holders_that_count(view, slot)
    voters = {
        node
        for node in metadata.nodeset
        if node in view.reading.starts
        and node not in holders
        and node not in slot.spoiled
        and view.status(node) in _COUNTS
        and not truth.is_dirty(node, lsn, view.reading.starts[node])
        and not truth.was_rebuilding(node, view.reading.starts[node])
    }
    empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
    counted = [node for node in metadata.nodeset if view.status(node) is not empty]
    return is_f_majority(voters, counted, metadata.replication, truth.locations)


def gap_by_silence_in_scd(truth: Truth, view: ReaderView, gap: Gap) -> str | None:
    """I5: in single-copy delivery the silence of a node proves nothing."""
    if gap.type not in _BY_SILENCE or ReadMode.ALL_SEND_ALL in (view.reading.mode, view.reading.mode_before):
        return None
    if gap.type is GapType.BRIDGE:
        slot = truth.slots.get(gap.start)
        is_bridge_record = slot is not None and slot.kind is SlotKind.BRIDGE
        # In any mode, the first record of an epoch proves that the LSNs before it are unused.
        is_epoch_start = gap.end.esn <= 1 and not truth.slots_in(gap.start, gap.end)
        if is_bridge_record or is_epoch_start:
            return None
    return f"{gap} delivered in {view.reading.mode.value if view.reading.mode else 'no mode'}"


def window_too_wide(view: ReaderView, message: Start | Window) -> str | None:
    """The window that nodes get never reaches further ahead of the consumed records than its width."""
    consumed = view.request.start if view.next is None else view.next
    limit = Lsn(consumed + view.window_lsns)
    return f"window to {message.window_end}, consumed {consumed}" if message.window_end > limit else None


def disagreement(truth: Truth, first: ReaderView, second: ReaderView) -> str | None:
    """I3: if one reader got a record, another reader may miss it only if a copy was lost or trimmed."""
    for one, other in ((first, second), (second, first)):
        for gap in other.gaps:
            if gap.type not in _BY_SILENCE:
                continue
            for slot in truth.slots_in(gap.start, gap.end):
                was_read = slot.record.lsn in one.records
                spoiled = any(lsn == slot.record.lsn for _, _, lsn in other.spoiled)
                if was_read and not slot.is_damaged and not spoiled:
                    return f"{one.name} read {slot.record.lsn}, {other.name} got {gap}, and nothing was lost"
    return None


def stall_without_cause(
    health: StreamHealth, *, has_unread: bool, released_end: Lsn, is_settled: bool
) -> str | None:
    """I8: if the head does not move, `health` names a cause, and the cause is true."""
    if health.violations:
        return f"{health.violations} messages of honest nodes were taken for violations"
    match health.waiting:
        case Waiting.APPLICATION | Waiting.ENDED:
            is_true = has_unread
        case Waiting.RELEASE:
            is_true = not is_settled or health.head >= released_end
        case _:
            is_true = bool(health.waiting_for)
    return None if is_true else f"stands still without a true cause: {health}"


def not_converged(truth: Truth, view: ReaderView) -> str | None:
    """I8: once faults have stopped, a reader gets everything that is released, and then ends."""
    if view.is_ended:
        return None if view.next == view.request.end else f"ended at {view.next} before {view.request.end}"
    reached = view.request.start if view.next is None else view.next
    if reached < min(truth.released_end, view.request.end):
        return f"is still at {reached}, released is {truth.released_end}"
    return f"has everything up to {reached}, but did not end" if reached >= view.request.end else None


def wasted_copies(view: ReaderView, wire: Mapping[Lsn, int], *, rewinds: int) -> str | None:
    """I7: without faults, each record crosses the wire once and nothing is rewound."""
    if rewinds:
        return f"rewound {rewinds} times although nothing was wrong"
    wrong = [lsn for lsn in view.records if wire.get(lsn, 0) != 1]
    return f"{wrong[0]} crossed the wire {wire.get(wrong[0], 0)} times" if wrong else None


def left_scd_needlessly(view: ReaderView, victim: NodeId, *, copies: int) -> str | None:
    """If one node fails and there are other copies, the reader stays in single-copy delivery."""
    if copies > 1 and ReadMode.ALL_SEND_ALL in view.reading.modes:
        return f"went to all-send-all because of {victim} alone"
    return None


def not_forgiven(victim: NodeId, health: StreamHealth) -> str | None:
    """A node that is back and sends what it should leaves the known-down list."""
    return f"{victim} is back, but still listed in {health}" if victim in health.known_down else None


def second_copy(slot: Slot, view: ReaderView, *, earlier: NodeId, sender: NodeId) -> str | None:
    """If no node is known down, no two nodes send the same record under one filter version."""
    start = view.reading.latest
    if start is None or start.mode is ReadMode.ALL_SEND_ALL or start.known_down:
        return None
    has_extras = len(slot.record.copyset) > start.replication
    if earlier == sender or slot.kind is not SlotKind.DATA or slot.is_moved or has_extras:
        return None
    return f"{slot.record.lsn} sent by {earlier} and {sender} under version {start.filter_version}"


def _name(item: Item) -> str:
    return f"record {item.lsn}" if isinstance(item, Record) else str(item)


def _names(nodes: list[NodeId]) -> str:
    return " and ".join(str(node) for node in nodes)


def _content(slots: list[Slot]) -> str:
    return ", ".join(f"{slot.kind.value} {slot.record.lsn}" for slot in slots[:4]) or "nothing"
