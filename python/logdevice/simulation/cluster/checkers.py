"""What a cluster promises, one small check per promise.

Each check is a function of the ledger and of what was seen from outside; it returns the text of a complaint,
or None. Quorums are counted here in the simplest way: a set of nodes is an f-majority if the other nodes are
too few for a copyset. I3, I4, I11 and I12 are promises in ARCHITECTURE.md; other rules are in docs/protocol/.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from logdevice.protocol.log_state.copies import precedence
from logdevice.protocol.log_state.store_write import AmendRecord, PutRecord, StoreWrite
from logdevice.protocol.log_state.stored_log import StoredLog
from logdevice.protocol.messages.write import Release
from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.simulation.cluster.ledger import AppendAttempt, AppendOutcome, Ledger, Promises
from logdevice.simulation.reading.oracle import satisfies
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Gap,
    GapType,
    Location,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    epoch_start,
)

_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
_BRIDGE = int(RecordFlags.BRIDGE)
_HOLE = int(RecordFlags.HOLE)


def early_tail(next_: Lsn, acknowledged: Lsn) -> str | None:
    """U19: the tail is after every record that was acknowledged before the question."""
    if next_ <= acknowledged:
        return f"the log is said to end at {next_}, and {acknowledged} had been acknowledged before"
    return None


def changed_content(ledger: Ledger, lsn: Lsn, content: bytes | None) -> str | None:
    """I3, I4: what is released at an LSN is the same for all readers, until it is trimmed."""
    if content is None and lsn < ledger.trim_end:
        return None  # nodes trim one after the other, so recovery may find nothing here
    if lsn in ledger.contents and ledger.contents[lsn] != content:
        return f"{lsn} is {_text(content)}, and was {_text(ledger.contents[lsn])}"
    if content is not None and any(lsn in empty for empty in ledger.empty):
        return f"{lsn} is {_text(content)}, and a reader was told that nothing is there"
    return None


def strange_record(ledger: Ledger, lsn: Lsn, body: bytes) -> str | None:
    """A released record was appended, is in the log once, and its client was not told otherwise (E9)."""
    attempt = ledger.attempts.get(body)
    if attempt is None:
        return f"{lsn} holds {_text(body)}, which was never appended"
    if attempt.outcome is AppendOutcome.REFUSED:
        return f"{lsn} holds {_text(body)}, whose client was told that it is not stored"
    if ledger.homes.get(body, lsn) != lsn:
        return f"{_text(body)} is at {lsn} and at {ledger.homes[body]}"
    return None


def broken_acknowledgement(ledger: Ledger, lsn: Lsn, content: bytes | None) -> str | None:
    """An LSN holds the record that was acknowledged at it."""
    promised = ledger.promised.get(lsn)
    if content is None and lsn < ledger.trim_end:
        return None
    if promised is not None and promised != content:
        return f"{_text(promised)} was acknowledged at {lsn}, where there is {_text(content)}"
    return None


def too_few_copies(
    lsn: Lsn, holders: Collection[NodeId], replication: Replication, locations: Mapping[NodeId, Location]
) -> str | None:
    """What is acknowledged or released is durable on as many nodes as the replication asks for."""
    if satisfies(tuple(holders), replication, locations):
        return None
    return f"{lsn} is durable on {_names(holders)} only"


def late_acknowledgement(attempt: AppendAttempt, lsn: Lsn, sealed_ms: int | None) -> str | None:
    """J1: an append that arrives after enough nodes have sealed the epoch is not acknowledged in it."""
    if sealed_ms is None or attempt.arrived_ms is None or attempt.arrived_ms <= sealed_ms:
        return None
    return f"{lsn} acknowledged: arrived at {attempt.arrived_ms} ms, epoch sealed since {sealed_ms} ms"


def stored_after_seal(write: StoreWrite, seal: Epoch) -> str | None:
    """J1, J2: a node that has sealed stores nothing more from sequencers and recoveries below its seal."""
    match write:
        case PutRecord(_, record):
            lsn, flags, wave = record.lsn, record.flags, record.wave
        case AmendRecord():
            lsn, flags, wave = write.lsn, write.flags, write.wave
        case _:
            return None
    sent_in = wave if flags & _BY_RECOVERY else lsn.epoch - 1
    return f"{lsn} of {sent_in} stored, although sealed up to {seal}" if sent_in < seal else None


def broken_promise(promises: Promises, stored: StoredLog) -> str | None:
    """I11: what a node has answered is still true after a crash."""
    if stored.seal.epoch < promises.seal:
        return f"forgot its seal {promises.seal}, knows {stored.seal.epoch}"
    if stored.trim_end < promises.trim_end:
        return f"forgot that it is trimmed to {promises.trim_end}, knows {stored.trim_end}"
    forgotten = sorted(promises.recovered - stored.recovered.keys())
    return f"forgot the recovery of {forgotten}" if forgotten else None


def epoch_store_went_back(before: EpochState, after: EpochState) -> str | None:
    """I11: epochs are given out once and in order, clean epochs stay clean, counters never go back."""
    if after.epoch not in (before.epoch, before.epoch + 1):
        return f"epoch {before.epoch} is followed by {after.epoch}"
    if not before.last_clean <= after.last_clean < after.epoch:
        return f"clean up to {after.last_clean} in epoch {after.epoch}, was {before.last_clean}"
    if after.epoch > before.epoch and after.last_clean != before.last_clean:
        return f"epoch {after.epoch} taken and clean up to {after.last_clean} in one step"
    if before.tail.joined(after.tail) != after.tail:
        return f"the tail goes back from {before.tail} to {after.tail}"
    if after.lineage.version < before.lineage.version:
        return f"the lineage goes back from {before.lineage} to {after.lineage}"
    return None


def needless_branch(before: EpochState, after: EpochState) -> str | None:
    """L31: if no disk is lost, the history never branches."""
    return None if before.lineage == after.lineage else f"the history branched: {after.lineage}"


def early_release(
    ledger: Ledger, release: Release, state: EpochState, history: Iterable[EpochMetadata]
) -> str | None:
    """Nothing of an epoch is released before all epochs below are clean and its metadata is written."""
    epoch = release.end.epoch
    if state.last_clean < epoch - 1:
        return f"{release.end} released, but only {state.last_clean} is clean"
    written = [entry for entry in history if entry.first_epoch <= epoch]
    if not written or written[-1] != ledger.epochs[epoch]:
        return f"{release.end} released without metadata"
    return None


def missed_entry(written: Iterable[EpochMetadata], history: Collection[EpochMetadata]) -> str | None:
    """I12: a read of a metadata log contains every entry that counted as written before."""
    missed = [entry for entry in written if entry not in history]
    return f"the metadata log was read without {missed[0]}" if missed else None


def other_entry(ledger: Ledger, entry: EpochMetadata) -> str | None:
    """I12: an entry of the metadata log is the metadata with which its epoch was taken."""
    taken = ledger.epochs.get(entry.first_epoch)
    return None if taken == entry else f"an entry is {entry}, and the epoch was taken with {taken}"


def release_went_back(before: Lsn, end: Lsn) -> str | None:
    """A node's release only moves forward while it lives."""
    return f"release moves from {before} to {end}" if end <= before else None


def went_back(ledger: Ledger, before: Record | None, record: Record) -> str | None:
    """Times and counters grow within an epoch, and from records that were acknowledged in earlier epochs.

    A sequencer that could not learn in time where the log stood is excused. So are records that were not
    acknowledged and become readable only after the next epoch has begun: no sequencer can know about them.
    """
    if before is None:
        return None
    is_same_epoch = before.lsn.epoch == record.lsn.epoch
    if not is_same_epoch and record.lsn.epoch not in ledger.tails_known:
        return None
    if record.timestamp_ms < before.timestamp_ms:
        return f"{record.lsn} is of {record.timestamp_ms} ms, {before.lsn} of {before.timestamp_ms} ms"
    if record.entry_end < before.entry_end + record.entries:
        return f"{record.lsn} ends at entry {record.entry_end}, {before.lsn} at {before.entry_end}"
    if record.byte_end < before.byte_end + len(record.body):
        return f"{record.lsn} ends at byte {record.byte_end}, {before.lsn} at {before.byte_end}"
    return None


def untrue_gap(ledger: Ledger, gap: Gap) -> str | None:
    """No gap hides a record, and no gap reports a loss where nothing can be lost."""
    if gap.type is GapType.DATALOSS and gap.start >= ledger.trim_end:
        return f"{gap}, and no disk was ever lost"
    # Below the trim point, some nodes have trimmed and others have not yet.
    hidden = ledger.records_in(max(gap.start, ledger.trim_end), gap.end)
    return f"{gap} hides {hidden[0]}" if hidden else None


def unreleased(ledger: Ledger, lsn: Lsn) -> str | None:
    return f"{lsn} delivered, released is {ledger.released_end}" if lsn >= ledger.released_end else None


def wrong_bridges(
    ledger: Ledger, epoch: Epoch, bridges: Mapping[Lsn, Collection[NodeId]], replication: Replication
) -> str | None:
    """Every closed epoch ends with one bridge, on enough nodes, and has no records after it."""
    if len(bridges) != 1:
        return f"epoch {epoch} has bridges at {sorted(bridges)}"
    ((lsn, holders),) = bridges.items()
    after = ledger.records_in(lsn, epoch_start(epoch + 1))
    if after:
        return f"epoch {epoch} has a bridge at {lsn} and a record at {after[0]}"
    return too_few_copies(lsn, holders, replication, ledger.locations)


def missing_append(ledger: Ledger, lsn: Lsn) -> str | None:
    """At the end of a run, everything that was acknowledged is released."""
    if lsn in ledger.contents or lsn < ledger.trim_end:
        return None
    return f"{_text(ledger.promised[lsn])} was acknowledged at {lsn} and is not in the log"


def mixed_up_writes(ledger: Ledger, *, may_forget: bool) -> Iterator[str]:
    """O2, O4: appends of a process are in the log in their order, none after an append of its successor.

    A log that forgets writers also forgets which processes were fenced out.
    """
    newest: dict[int, int] = {}  # writer -> life
    last: dict[tuple[int, int], int] = {}  # writer and life -> append
    for lsn, body in sorted(ledger.contents.items()):
        if body is None or body not in ledger.tagged.made:
            continue
        writer, is_ordered, (life, number) = ledger.tagged.made[body]
        if life < newest.get(writer, 0) and not may_forget:
            yield f"{_text(body)} is at {lsn}, after appends of process {newest[writer]}"
        if is_ordered and number < last.get((writer, life), 0):
            yield f"{_text(body)} is at {lsn}, after append {last[writer, life]}"
        newest[writer] = max(life, newest.get(writer, 0))
        last[writer, life] = max(number, last.get((writer, life), 0))


def missing_writes(ledger: Ledger) -> Iterator[str]:
    """An append that was acknowledged to a writer without a position is in the log."""
    if not ledger.trim_end:
        there = set(ledger.contents.values())
        yield from (
            f"{_text(body)} is not in the log"
            for body in sorted(ledger.tagged.somewhere)
            if body not in there
        )


def wrong_table(copies: Iterable[Record], writers: bytes) -> str | None:
    """O11: the received table after a recovery matches the records that it left in the log."""
    table = ReceivedTable.decode(writers)
    if table.horizon:
        return None
    winners: dict[Lsn, Record] = {}
    for copy in copies:
        if copy.lsn not in winners or precedence(copy) > precedence(winners[copy.lsn]):
            winners[copy.lsn] = copy
    # A node that was away may still have the bridge of an abandoned recovery: only the newest bridge counts.
    bridges = {
        record.lsn.epoch: record.lsn
        for record in sorted(winners.values(), key=precedence)
        if record.flags & _BRIDGE
    }
    expected = ReceivedTable()
    # If a writer was forgotten, its next process may have used its numbers again: the last append counts.
    places: dict[tuple[int, int], Lsn] = {}
    for lsn in sorted(winners):
        tag = winners[lsn].tag
        is_there = lsn < bridges.get(lsn.epoch, lsn.next) and not winners[lsn].flags & _HOLE
        if is_there and tag is not None:
            expected.note(tag, lsn)
            places[tag.writer, tag.first_seq] = lsn
    for (writer, seq), lsn in places.items():
        state = table.state_of(writer, seq)
        if not state.is_stored or state.lsn not in (lsn, Lsn(0)):
            return f"append {seq} of writer {writer} is at {lsn} and not in the table"
    for writer in sorted({record.tag.writer for record in winners.values() if record.tag is not None}):
        found, wanted = table.state_of(writer, 0), expected.state_of(writer, 0)
        if (found.incarnation, found.next_seq) != (wanted.incarnation, wanted.next_seq):
            return f"writer {writer}: {found} in the table, {wanted} there"
    return None


def _text(content: bytes | None) -> str:
    return "nothing" if content is None else content.decode()


def _names(nodes: Iterable[NodeId]) -> str:
    return " and ".join(str(node) for node in sorted(nodes)) or "no node"
