"""What goes to the application, and in which order: the one place where the head moves.

Delivery goes step by step, as far as the head can move: a trimmed range, a run of records, a hole, a
bridge, a filtered record, or a gap that the silence of enough nodes has proven. A step needs certainty:
the metadata of the head's epoch, and for a proven gap all-send-all mode, a grace period and a second
round of answers (read_path.md B1 to B3, T1 and T2, G1 to G8, M1 to M4).
"""

from __future__ import annotations

from logdevice.protocol.dropped_record import COMPACTED, marks_of
from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.read import EpochMetadataIs, GetEpochMetadata
from logdevice.protocol.quorum import Answer
from logdevice.protocol.read_stream import gaps
from logdevice.protocol.read_stream.connections import Connections
from logdevice.protocol.read_stream.epochs import Epochs
from logdevice.protocol.read_stream.events import Deliver, Effect, TimerKind
from logdevice.protocol.read_stream.failover import Failover
from logdevice.protocol.read_stream.scd import RewindReason
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.protocol.timers import back_off_ms
from logdevice.settings import ReadStreamSettings
from logdevice.types import (
    ESN_MAX,
    Gap,
    GapType,
    LogId,
    Lsn,
    LsnRange,
    MetadataSource,
    ReadLevel,
    Record,
    RecordFlags,
    epoch_start,
)

_FIRST = epoch_start(1)
_NOWHERE = LsnRange(Lsn(0), Lsn(0))


class Delivery:
    """Hands records and gaps to the application, and asks for the metadata this needs."""

    def __init__(
        self,
        log: LogId,
        settings: ReadStreamSettings,
        effects: Effects[Effect],
        window: SlidingWindow,
        connections: Connections,
        failover: Failover,
        level: ReadLevel,
    ) -> None:
        self._level = level
        self._log, self._settings, self._effects = log, settings, effects
        self._window, self._connections, self._failover = window, connections, failover
        self.epochs = Epochs()
        self.judge: gaps.GapJudge | None = None  # comes with the first metadata
        self.verdict: GapType | None = None  # ends the stream: ACCESS or NOTINCONFIG
        self._grace_over_at = -1
        self._looked_twice = _NOWHERE
        self._metadata_failures = 0

    # ---- moving the head ------------------------------------------------------------------------

    def advance(self) -> None:
        """Deliver everything that can be delivered now."""
        before = self._window.head
        batch: list[Record | Gap] = []
        while self._step(batch):
            pass
        if batch:
            self._effects.emit(Deliver(tuple(batch)))
            self._head_moved(before)

    def _head_moved(self, before: int) -> None:
        assert self._window.head > before, "the head never moves back"
        self._failover.progress_ms = self._effects.now_ms
        self._effects.disarm(TimerKind.GRACE)
        for sender in self._connections.senders:
            sender.forget_thin_below(self._window.head)

    def _step(self, batch: list[Record | Gap]) -> bool:
        window = self._window
        head, trim_end = window.head, self._connections.trim_end
        if head >= window.end:
            return False
        if self.verdict is not None:
            window.hand_out_gap(self.verdict, window.end, batch)
        elif head & ESN_MAX == 0 or head < _FIRST:
            # W6: nothing is ever stored at ESN 0 or in epoch 0.
            window.hand_out_gap(GapType.BRIDGE, epoch_start(max(1, Lsn(head).epoch)), batch)
        elif trim_end > head and self._settings.skip_partially_trimmed:
            window.hand_out_gap(GapType.TRIM, trim_end, batch)  # T1, T2
        elif head in self._connections.bridged:
            window.hand_out_gap(GapType.BRIDGE, self._connections.bridged.end, batch)  # B1
        elif not self.knows_head:
            self._ask_metadata()
            return False
        elif self.is_held:
            return False
        elif run := window.take_run(self._durable_end(min(window.window_end, self.epochs.known_end))):
            batch += run
        elif window.has_head and head < window.window_end:
            self._hand_out_special(batch)
        else:
            return head < window.window_end and self._hand_out_proven_gap(batch)
        return True

    # ---- the read level -------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """K41: whether the head has arrived, but must wait until it has all its copies again."""
        record = self._window.waiting(self._window.head)
        return self._level is ReadLevel.DURABLE and record is not None and self._lacks_copies(record)

    def _lacks_copies(self, record: Record) -> bool:
        """K40: whether fewer than R nodes certainly hold a copy."""
        lacking = self._connections.lacking
        if not lacking or record.flags & RecordFlags.HOLE:
            return False
        assert self.epochs.metadata is not None, "a known epoch has metadata"
        sure = sum(node not in lacking for node in record.copyset)
        return sure < self.epochs.metadata.replication.copies

    def _durable_end(self, end: int) -> int:
        """Where a run of records from the head ends: at the first that is missing or lacks copies (K40)."""
        if self._level is ReadLevel.RELEASED or not self._connections.lacking:
            return end
        waiting = ((lsn, self._window.waiting(lsn)) for lsn in range(self._window.head, end))
        return next((lsn for lsn, record in waiting if record is None or self._lacks_copies(record)), end)

    def _hand_out_special(self, batch: list[Record | Gap]) -> None:
        record, head = self._window.peek(), self._window.head
        if record is None:
            self._window.hand_out_gap(GapType.FILTERED_OUT, head + 1, batch)  # B3
        elif record.flags & RecordFlags.BRIDGE:
            self._window.hand_out_gap(GapType.BRIDGE, epoch_start(Lsn(head).epoch + 1), batch)  # B1
        elif record.flags & RecordFlags.HOLE:
            self._window.hand_out_gap(GapType.HOLE, head + 1, batch)  # B2
        elif record.flags & COMPACTED:
            self._window.hand_out_gap(GapType.COMPACTED, head + 1, batch, marks_of(record))
        else:
            batch += self._window.take_one()

    # ---- gaps -----------------------------------------------------------------------------------

    def _hand_out_proven_gap(self, batch: list[Record | Gap]) -> bool:
        """Deliver the gap at the head, if one is proven.

        G1: only silence in all-send-all mode proves anything, and none while a rewind is due.
        """
        is_filtered = self._failover.scd.is_active and self._connections.nodes
        if self._failover.rewinds.is_pending or is_filtered:
            return False
        head, senders, trim_end = self._window.head, self._connections.senders, self._connections.trim_end
        assert self.judge is not None, "a known epoch has a judge"
        assert self.epochs.metadata is not None, "a known epoch has metadata"
        answer = self.judge.answer(senders, head)
        end = self._gap_end(head, answer)
        if answer is Answer.NONE or end is None:
            return False
        if head < trim_end:
            end = min(end, trim_end)
        elif answer is Answer.INCOMPLETE and self._waits_for_grace(head):
            return False
        kind = gaps.gap_type(head=head, end=end, metadata=self.epochs.metadata, trim_end=trim_end)
        if kind is not GapType.TRIM and not self._has_looked_twice(head, end):
            return False
        self._window.hand_out_gap(kind, end, batch)
        return True

    def _gap_end(self, head: int, answer: Answer) -> int | None:
        end = gaps.gap_end(self._connections.senders, head, self._window.first_buffered())
        if end is None and answer in (Answer.COMPLETE, Answer.NON_AUTHORITATIVE):
            end = gaps.silent_end(
                head=head,
                known_until=self.epochs.known_until,
                is_bounded=self.epochs.is_bounded,
                released_end=self._connections.released_end,
            )
        # The votes of one epoch's nodes say nothing about the next epoch's records.
        return None if end is None else min(end, epoch_start(Lsn(head).epoch + 1))

    def _waits_for_grace(self, head: int) -> bool:
        if self._grace_over_at == head:
            return False
        if not gaps.lingers(self._connections.senders, head, self._settings.gap_grace_limit):
            return False
        if not self._effects.is_armed(TimerKind.GRACE):
            self._effects.arm(TimerKind.GRACE, self._settings.gap_grace_ms)
        return True

    def on_grace_over(self) -> None:
        """The grace period has passed: the nodes that are still silent have used up one more."""
        self._grace_over_at = self._window.head
        for sender in self._connections.senders:
            if not sender.is_past(self._window.head):
                sender.grace_counter += 1

    @property
    def is_in_grace(self) -> bool:
        return self._effects.is_armed(TimerKind.GRACE)

    def _has_looked_twice(self, head: int, end: int) -> bool:
        """Whether the gap was confirmed by a rewind; if not, schedule one.

        G7: a copy may have moved from a node that had not answered yet to one that had.
        """
        if head in self._looked_twice:
            return True
        # All nodes past the head have answered for everything below the lowest of their promises.
        told = min((sender.next for sender in self._connections.senders if sender.is_past(head)), default=end)
        self._looked_twice = LsnRange(Lsn(head), Lsn(max(end, told)))
        self._failover.schedule(RewindReason.CONFIRM_LOSS)
        return False

    def rewound(self) -> None:
        """After a rewind, earlier answers do not count, and the grace period begins anew."""
        self._grace_over_at = -1
        self._effects.disarm(TimerKind.GRACE)

    # ---- metadata -------------------------------------------------------------------------------

    @property
    def knows_head(self) -> bool:
        return self._window.head < self.epochs.known_end

    def _ask_metadata(self) -> None:
        if self._effects.is_armed(TimerKind.METADATA_RETRY):
            return
        head = self._window.head
        epoch = self.epochs.question(Lsn(head).epoch, head, self._connections.released_end)
        if epoch is not None:
            self._effects.emit(GetEpochMetadata(self._log, epoch, self.epochs.is_confirming))

    def learn_metadata(self, answer: EpochMetadataIs) -> bool:
        """Take the metadata in. False if this is not the answer that is waited for."""
        was_confirming = self.epochs.is_confirming
        if not self.epochs.learn(answer):
            return False
        if was_confirming and answer.source is MetadataSource.SOFT:
            self.retry_metadata()  # not a confirmation: pause before asking again
        else:
            self._metadata_failures = 0
        return True

    def retry_metadata(self) -> None:
        """Ask for the metadata again after a pause that grows with every failure."""
        settings = self._settings
        pause_ms = back_off_ms(
            self._metadata_failures, settings.metadata_retry_ms_min, settings.metadata_retry_ms_max
        )
        self._metadata_failures += 1
        self._effects.arm(TimerKind.METADATA_RETRY, pause_ms)
