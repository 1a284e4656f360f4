"""Appender: brings one record to its storage nodes.

It sends the record to a copyset (a wave) and waits for answers in three stages. Replication: once any R
of R + X nodes have stored it, the client gets its answer. Sync leaders: once the left-most `sync_leaders`
have stored it, it may be released. Leader redundancy: once the left-most `leaders` have stored it, surplus
copies are deleted. The Appender lives until the last stage ends. It promises that a record it acknowledges
is on nodes that satisfy the replication, and that every later stage ends. Rules E1 to E12 are in
docs/protocol/write_path.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Lost
from logdevice.protocol.messages.write import Delete, Store, Stored, StoreStatus
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer.copysets import Cause, StickyCopysets
from logdevice.protocol.sequencer.events import SequencerConfig, SequencerContext
from logdevice.protocol.timers import Timers, back_off_ms
from logdevice.types import Lsn, NodeId, Record

_CAUSES = {
    StoreStatus.NO_SPACE: Cause.NO_SPACE,
    StoreStatus.REBUILDING: Cause.REBUILDING,
    StoreStatus.OVERLOADED: Cause.OVERLOADED,
    StoreStatus.FAILED: Cause.UNREACHABLE,
}
# A node that answers with one of these has certainly not stored the copy.
_REFUSALS = frozenset(
    {StoreStatus.PREEMPTED, StoreStatus.NO_SPACE, StoreStatus.REBUILDING, StoreStatus.OVERLOADED}
)


class RecordOwner(Protocol):
    """The epoch that an Appender is a part of. The Appender reports to it how far its record has come."""

    def acknowledge(self, lsn: Lsn) -> None:
        """The record is stored well enough to acknowledge the append."""

    def retire(self, lsn: Lsn) -> None:
        """The record may be released."""

    def finish(self, lsn: Lsn) -> None:
        """The Appender may be forgotten."""

    def preempt(self, refusal: Stored) -> None:
        """A higher epoch has sealed this one: the sequencer must step down. The Appender is done."""


class Stage(Enum):
    REPLICATION = "REPLICATION"
    SYNC_LEADERS = "SYNC_LEADERS"
    LEADERS = "LEADERS"
    DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppenderContext:
    """What the Appenders of one epoch share. `timers` has one timer for each record, by its LSN."""

    sequencer: SequencerContext
    config: SequencerConfig
    copysets: StickyCopysets
    good_end: Callable[[], Lsn]
    effects: Effects[Any]
    timers: Timers[Lsn]
    owner: RecordOwner


class Appender:
    """One record on its way to its nodes. `request_id` is the append that brought it."""

    def __init__(self, context: AppenderContext, request_id: int, record: Record) -> None:
        self.request_id = request_id
        self.record = record
        self.stage = Stage.REPLICATION
        self.is_acknowledged = False
        self._context = context
        self._effects = context.effects
        self._is_draining = False
        self._wave = record  # with the header of the newest wave: its number and its copyset
        self._stored: set[NodeId] = set()  # of this wave
        self._failed: set[NodeId] = set()  # of this wave
        self._deleted: set[NodeId] = set()
        self._has_body: set[NodeId] = set()  # from any wave: these nodes need only the header (E5)
        self._unrefused: set[tuple[NodeId, int]] = set()  # stores that may have made a copy, or still may
        self._preempted: Stored | None = None  # the answer of a sealed node
        self._retries = 0  # in this stage

    @property
    def may_be_stored(self) -> bool:
        """Whether any node may have a copy, now or later (E9)."""
        return bool(self._unrefused)

    def start(self) -> None:
        self._send_wave()

    def drain(self) -> None:
        """The sequencer has begun a new epoch; this record belongs to the one before."""
        self._is_draining = True

    def answered(self, node: NodeId, stored: Stored) -> None:
        is_ok = stored.status is StoreStatus.OK
        if is_ok:
            self._has_body.add(node)
        elif stored.status in _REFUSALS:
            self._unrefused.discard((node, stored.wave))
        # E4: answers to an older wave do not count.
        if self.stage is Stage.DONE or stored.wave != self._wave.wave or not self._is_outstanding(node):
            return
        if is_ok:
            self._stored.add(node)
        elif stored.status is StoreStatus.PREEMPTED and not (stored.is_soft and self._is_draining):
            self._failed.add(node)
            self._preempted = stored
        else:
            self._note_failure(node, _CAUSES.get(stored.status))
        self._advance()

    def lost(self, event: Lost[Store]) -> None:
        node, wave = event.node, event.request.record.wave
        if not event.was_sent:
            self._unrefused.discard((node, wave))
        if self.stage is Stage.DONE or wave != self._wave.wave or not self._is_outstanding(node):
            return
        self._note_failure(node, Cause.UNREACHABLE)
        self._advance()

    def _note_failure(self, node: NodeId, cause: Cause | None) -> None:
        # A failed amend may mean that the node has no copy to amend.
        self._has_body.discard(node)
        self._failed.add(node)
        if cause is not None:
            self._context.copysets.health.penalise(node, cause, self._effects.now_ms)

    def _advance(self) -> None:
        """Ends every stage that can end. A wave that cannot succeed any more is followed by the next."""
        if self.stage is Stage.REPLICATION:
            if self._satisfies(self._stored):
                self._acknowledge()
            elif self._preempted is not None:
                # E8: the other nodes may still answer whether a copy exists.
                if not self._outstanding():
                    self._preempt(self._preempted)
            elif not self._satisfies(self._stored | set(self._outstanding())):
                self._context.copysets.has_failed(self._wave.copyset)
                if self._wave.wave < self._context.sequencer.settings.immediate_waves_max:
                    self._send_wave()  # E3
        if self._preempted is not None and self.stage in (Stage.SYNC_LEADERS, Stage.LEADERS):
            self._preempt(self._preempted)
        self._end_later_stages()

    def _end_later_stages(self) -> None:
        if self.stage is Stage.SYNC_LEADERS and self._have_stored(self._context.config.sync_leaders):
            self._retire()
        if self.stage is Stage.LEADERS and self._have_stored(self._context.config.leader_count):
            self._finish()

    def woken(self) -> None:
        if self.stage is Stage.REPLICATION:
            self._on_wave_timeout()
        elif self._retries < self._context.sequencer.settings.leader_retries_max:
            self._ask_leaders_again()
        elif self.stage is Stage.SYNC_LEADERS:
            # E7: availability comes first. Readers fail over from a leader that has no copy.
            self._retire()
            self._arm(0)
            self._end_later_stages()
        else:
            self._finish()

    def _on_wave_timeout(self) -> None:
        if self._preempted is not None:
            self._preempt(self._preempted)
            return
        outstanding = self._outstanding()
        # E6: if no node answered, the cause is not this one node.
        if outstanding and len(outstanding) < len(self._wave.copyset):
            self._context.copysets.health.penalise(outstanding[0], Cause.TIMEOUT, self._effects.now_ms)
        self._context.copysets.has_failed(self._wave.copyset)
        self._send_wave()

    def _send_wave(self) -> None:
        self._stored.clear()
        self._failed.clear()
        copyset = self._context.copysets.current(self.record.size, self._effects.now_ms) or ()
        self._wave = replace(self.record, copyset=copyset, wave=self._wave.wave + 1)
        for node in self._wave.copyset:
            self._send_store(node)
        self._arm(self._wave.wave - 1)  # E2; without a copyset, this is when to try again

    def _send_store(self, node: NodeId) -> None:
        record = self._wave
        is_amend = node in self._has_body
        store = Store(
            log=self._context.sequencer.log,
            record=replace(record, body=b"") if is_amend else record,
            good_end=self._context.good_end(),
            sequencer=self._context.sequencer.me,
            is_amend=is_amend,
            is_draining=self._is_draining,
        )
        self._unrefused.add((node, record.wave))
        self._effects.ask(node, store)

    def _arm(self, attempts: int) -> None:
        settings = self._context.sequencer.settings
        delay_ms = back_off_ms(attempts, settings.store_timeout_ms_min, settings.store_timeout_ms_max)
        self._context.timers.arm_at(self.record.lsn, self._effects.now_ms + delay_ms)

    def _acknowledge(self) -> None:
        self.is_acknowledged = True
        self._context.owner.acknowledge(self.record.lsn)
        self.stage = Stage.SYNC_LEADERS
        self._retries = 0

    def _retire(self) -> None:
        self._delete_surplus()
        self._context.owner.retire(self.record.lsn)
        self.stage = Stage.LEADERS
        self._retries = 0

    def _finish(self) -> None:
        self._delete_surplus()
        self._delete_unanswered()
        self._end()
        self._context.owner.finish(self.record.lsn)

    def _preempt(self, refusal: Stored) -> None:
        self._end()
        self._context.owner.preempt(refusal)

    def _end(self) -> None:
        self.stage = Stage.DONE
        self._context.timers.disarm(self.record.lsn)

    def _ask_leaders_again(self) -> None:
        self._retries += 1
        count = (
            self._context.config.sync_leaders
            if self.stage is Stage.SYNC_LEADERS
            else self._context.config.leader_count
        )
        for node in self._wave.copyset[:count]:
            if node not in self._stored:
                self._failed.discard(node)
                self._send_store(node)
        self._arm(self._retries)

    def _delete_surplus(self) -> None:
        """E10: deletes copies beyond the replication, the right-most first."""
        for node in reversed(self._wave.copyset):
            if node in self._stored and self._satisfies(self._stored - {node}):
                self._stored.discard(node)
                self._send_delete(node)

    def _delete_unanswered(self) -> None:
        # A leader that has not answered yet may keep its copy.
        for node in reversed(self._wave.copyset[self._context.config.leader_count :]):
            if self._is_outstanding(node):
                self._send_delete(node)

    def _send_delete(self, node: NodeId) -> None:
        self._deleted.add(node)
        self._effects.tell(node, Delete(self._context.sequencer.log, self.record.lsn, self._wave.wave))

    def _is_outstanding(self, node: NodeId) -> bool:
        return node in self._wave.copyset and node not in self._stored | self._failed | self._deleted

    def _outstanding(self) -> list[NodeId]:
        return [node for node in self._wave.copyset if self._is_outstanding(node)]

    def _have_stored(self, leaders: int) -> bool:
        return all(node in self._stored for node in self._wave.copyset[:leaders])

    def _satisfies(self, members: set[NodeId]) -> bool:
        replication, locations = self._context.config.replication, self._context.config.candidates.locations
        return len(members) >= replication.copies and can_replicate(
            {node: locations[node] for node in members}, replication
        )
