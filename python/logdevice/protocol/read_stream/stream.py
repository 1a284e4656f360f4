"""Client read stream: delivers the records of one log in order and once, and explains every gap.

It lives from the moment an application asks for [start, end) until the application has consumed all
of it. Storage nodes push records; the stream sorts them, drops second copies, and decides when a missing
LSN is really missing. In single-copy delivery it finds nodes that do not send their part, and
asks other nodes for it. It never guesses: while it is not certain, it waits, and `health()` says for what.

This module only routes events: `connections` talks to nodes, `failover` reacts to trouble, `delivery`
moves the head. Rules are cited by their numbers in docs/protocol/read_path.md.
"""

from __future__ import annotations

import random
from typing import assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered
from logdevice.protocol.messages.read import (
    EpochMetadataIs,
    GapNotice,
    GapReason,
    ReadMode,
    Records,
    Started,
    StartedStatus,
    StatusNotice,
    ToReader,
)
from logdevice.protocol.read_stream.connections import Connections
from logdevice.protocol.read_stream.delivery import Delivery
from logdevice.protocol.read_stream.events import (
    ConnectionLost,
    Consumed,
    Effect,
    EndStream,
    Event,
    LogRemoved,
    MetadataUnavailable,
    NodeTimer,
    ReadConfig,
    ReadConfigChanged,
    ReadRequest,
    Timer,
    TimerKind,
)
from logdevice.protocol.read_stream.failover import Failover
from logdevice.protocol.read_stream.gaps import GapJudge
from logdevice.protocol.read_stream.health import StreamHealth, snapshot
from logdevice.protocol.read_stream.scd import RewindReason, Scd
from logdevice.protocol.read_stream.senders import Sender, SenderState
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.protocol.timers import Woken
from logdevice.settings import ReadStreamSettings
from logdevice.types import GapType, LsnRange, NodeId, Record, RecordFlags

_CORRUPT = int(RecordFlags.CORRUPT)  # arithmetic on flag enums is slow, and this runs once per LSN


class ClientReadStream:
    """The machine that reads one range of one log. Call `start` once, then `handle` for every event."""

    def __init__(
        self,
        request: ReadRequest,
        config: ReadConfig,
        settings: ReadStreamSettings,
        rng: random.Random,
    ) -> None:
        self._request, self._config, self._settings = request, config, settings
        self._effects: Effects[Effect] = Effects()
        self._window = SlidingWindow(request.start, request.end, settings)
        scd = Scd(_preferred_mode(request, config))
        self._connections = Connections(request, settings, rng, self._effects, self._window, scd)
        self._failover = Failover(settings, self._effects, self._window, scd, self._connections)
        self._delivery = Delivery(
            request.log,
            settings,
            self._effects,
            self._window,
            self._connections,
            self._failover,
            request.level,
        )
        self._has_stopped = False  # everything is delivered, and the nodes got STOP
        self._has_ended = False  # and everything is consumed
        self._violations = 0
        self._disconnected_since_ms: int | None = None

    def start(self, now_ms: int) -> list[Effect]:
        """Begin to read. Returns the first effects."""
        effects = self._effects.begin(now_ms)
        self._failover.begin(now_ms)
        self._disconnected_since_ms = now_ms
        self._decide()
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event in. Returns what to do now; empty once the stream has ended."""
        # Once everything is delivered, only the application still matters.
        if self._has_ended or (self._has_stopped and not isinstance(event, Consumed)):
            return []  # late messages are normal, not errors
        effects = self._effects.begin(now_ms)
        self._failover.account_for_waiting(self._is_stalled)
        self._route(event)
        self._decide()
        return effects

    def health(self, now_ms: int) -> StreamHealth:
        """A snapshot of how the stream reads and what it waits for; changes nothing."""
        disconnected_ms = 0 if self._disconnected_since_ms is None else now_ms - self._disconnected_since_ms
        return snapshot(
            self._window,
            self._connections,
            self._failover,
            self._delivery,
            violations=self._violations,
            is_healthy=disconnected_ms <= self._settings.stall_grace_ms,
        )

    def _route(self, event: Event) -> None:
        match event:
            case Answered():
                self._on_message(event.node, event.answer)
            case Consumed():
                self._on_consumed(event)
            case Woken():
                for timer in self._effects.passed():
                    self._on_timer(timer)
            case ConnectionLost():
                self._on_connection_lost(event)
            case EpochMetadataIs():
                self._on_metadata(event)
            case MetadataUnavailable():
                if self._delivery.epochs.give_up(event.epoch):
                    self._delivery.retry_metadata()
            case ReadConfigChanged():
                self._on_config(event)
            case LogRemoved():
                self._delivery.verdict = GapType.NOTINCONFIG  # X1
            case _:
                assert_never(event)

    def _decide(self) -> None:
        """After every event: deliver what can be delivered, then check what holds up the head."""
        self._delivery.advance()
        if self._window.head >= self._window.end:
            self._stop()
        else:
            if self._is_stalled:
                self._failover.check_all_passed()
                self._failover.watch_slow_nodes()
            if not self._failover.rewinds.is_pending:
                self._connections.update_windows()
        if not self._has_ended:
            self._effects.finish()

    def _stop(self) -> None:
        if not self._has_stopped:
            self._connections.stop_all()
            self._has_stopped = True
        if not self._window.has_unconsumed and not self._has_ended:
            self._effects.emit(EndStream())
            self._has_ended = True

    @property
    def _is_stalled(self) -> bool:
        """Whether the head is released and missing, so that only a node can bring it."""
        return (
            self._window.head < min(self._connections.released_end, self._window.window_end)
            and not self._window.has_head
            and self._delivery.knows_head
        )

    # ---- nodes ----------------------------------------------------------------------------------

    def _on_message(self, node: NodeId, message: ToReader) -> None:
        match message:
            case Records():
                self._on_records(node, message)
            case GapNotice():
                self._on_gap(node, message)
            case Started():
                self._on_started(node, message)
            case StatusNotice():
                self._on_status(message)
            case _:
                assert_never(message)

    def _on_records(self, node: NodeId, message: Records) -> None:
        sender = self._connections.speaker(node, message.filter_version)
        if sender is None or not message.records:
            return
        records, end = message.records, message.records[-1].lsn.next
        if end > self._window.window_end:
            self._on_violation(sender)
            return
        self._after_message(sender)
        sender.count(records)
        if any(record.flags & _CORRUPT for record in records):
            records = self._without_corrupt(sender, records)
        if message.under_replicated:
            sender.note_thin(sender.next, end)
        self._window.accept(records, sender.credit)
        sender.promise(end)
        sender.has_sent_data = True
        self._on_released(end)

    def _without_corrupt(self, sender: Sender, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """The readable records. D1: a node whose copy cannot be read counts as one that may have lost it."""
        for record in records:
            if record.flags & _CORRUPT:
                self._window.drop(record, sender.credit)
                self._unreadable(sender, record.lsn, record.lsn.next)
        return tuple(record for record in records if not record.flags & _CORRUPT)

    def _unreadable(self, sender: Sender, start: int, end: int) -> None:
        sender.note_thin(start, end)
        self._failover.trouble(sender.node, RewindReason.CHECKSUM_FAIL)

    def _on_gap(self, node: NodeId, notice: GapNotice) -> None:
        sender = self._connections.speaker(node, notice.filter_version)
        if sender is None:
            return
        is_beyond = notice.reason.is_about_records and notice.end > self._window.window_end
        if notice.start >= notice.end or is_beyond:
            self._on_violation(sender)
            return
        self._after_message(sender)
        self._take_gap(sender, notice)
        sender.promise(notice.end)
        self._on_released(notice.end)

    def _take_gap(self, sender: Sender, notice: GapNotice) -> None:
        match notice.reason:
            case GapReason.NO_RECORDS:
                pass
            case GapReason.TRIM:
                self._connections.trim_end = max(self._connections.trim_end, notice.end)
            case GapReason.UNDER_REPLICATED:
                sender.note_thin(notice.start, notice.end)
            case GapReason.CHECKSUM_FAIL:
                self._unreadable(sender, notice.start, notice.end)
            case GapReason.FILTERED_OUT:
                self._window.accept_filtered(notice.start, notice.end, sender.credit)
                sender.has_sent_data = True
            case GapReason.BRIDGE:
                self._connections.bridged = LsnRange(notice.start, notice.end)
            case _:
                assert_never(notice.reason)

    def _on_violation(self, sender: Sender) -> None:
        """F4: the node broke the protocol. Ignore its message, and start it again on a new connection."""
        self._violations += 1
        sender.is_suspect = True
        self._connections.failed(sender)
        self._failover.trouble(sender.node, RewindReason.CONNECTION_LOST)
        self._review(sender)

    def _after_message(self, sender: Sender) -> None:
        self._failover.detector.answered(sender.node, self._effects.now_ms)
        if sender.state is SenderState.REBUILDING:
            self._connections.reading(sender)
            self._review(sender)

    def _on_released(self, end: int) -> None:
        if self._connections.on_released(end, self._window.head):
            self._failover.progress_ms = self._effects.now_ms  # now there is a head to wait for

    def _on_started(self, node: NodeId, answer: Started) -> None:
        sender = self._connections.get(node)
        if sender is None:
            return
        if answer.filter_version != self._connections.filter_version:
            self._on_other_version(sender, answer)
            return
        self._answered(sender, answer)
        self._on_released(answer.released_end)
        self._review(sender)

    def _on_other_version(self, sender: Sender, answer: Started) -> None:
        if answer.filter_version < self._connections.filter_version:
            self._connections.still_alive(sender)
        else:
            self._violations += 1  # F2: the stream has sent no such START

    def _answered(self, sender: Sender, answer: Started) -> None:
        match answer.status:
            case StartedStatus.OK:
                self._connections.reading(sender)
            case StartedStatus.REBUILDING:
                self._connections.rebuilding(sender)
                self._failover.trouble(sender.node, RewindReason.REBUILDING)
            case StartedStatus.AGAIN | StartedStatus.STALE_LINEAGE:  # L32: the shell handles it, too
                self._connections.failed(sender)
                self._failover.trouble(sender.node, RewindReason.STARTED_FAILED)
            case StartedStatus.FAILED:
                self._connections.failed(sender, for_long=True)
                self._failover.trouble(sender.node, RewindReason.STARTED_FAILED)
            case StartedStatus.ACCESS:
                self._delivery.verdict = GapType.ACCESS  # X1
            case _:
                assert_never(answer.status)

    def _on_connection_lost(self, event: ConnectionLost) -> None:
        sender = self._connections.get(event.node)
        if sender is not None:
            self._connections.failed(sender)
            self._failover.trouble(sender.node, RewindReason.CONNECTION_LOST)
            self._review(sender)

    def _on_status(self, notice: StatusNotice) -> None:
        if self._connections.on_statuses(notice):
            for sender in self._connections.senders:
                self._review(sender)

    def _review(self, sender: Sender) -> None:
        """A sender's state or status may have changed: adapt the read mode and the health."""
        if self._connections.review_status(sender):
            self._failover.status_changed(sender)
        self._review_health()

    def _review_health(self) -> None:
        assert self._delivery.judge is not None, "there are senders only after metadata"
        if self._delivery.judge.is_connected(self._connections.senders):
            self._disconnected_since_ms = None
        elif self._disconnected_since_ms is None:
            self._disconnected_since_ms = self._effects.now_ms

    # ---- the read set ---------------------------------------------------------------------------

    def _on_metadata(self, event: EpochMetadataIs) -> None:
        if self._delivery.learn_metadata(event):
            self._update_read_set()

    def _on_config(self, event: ReadConfigChanged) -> None:
        self._config = event.config
        self._failover.prefer(_preferred_mode(self._request, event.config))
        if self._delivery.epochs.metadata is not None:
            self._update_read_set()

    def _update_read_set(self) -> None:
        """M3: read from the nodes of the head's epoch that are in the configuration."""
        metadata = self._delivery.epochs.metadata
        assert metadata is not None, "asked for only after metadata"
        read_set = [node for node in metadata.nodeset if node in self._config.nodes]
        self._delivery.judge = GapJudge(self._config.nodes, metadata)
        self._failover.replication_is(metadata.replication.copies)
        new, gone = self._connections.replace(read_set)
        for sender in gone:
            self._failover.node_gone(sender.node)
        for sender in new:
            if not self._failover.rewinds.is_pending:
                self._connections.restart(sender)
            self._review(sender)
        self._review_health()
        self._failover.guard()
        if not read_set and not self._delivery.epochs.is_bounded:
            self._delivery.retry_metadata()

    # ---- the application and time ---------------------------------------------------------------

    def _on_consumed(self, event: Consumed) -> None:
        self._window.consume(event.end)
        if self._window.slide():
            self._failover.window_slid()

    def _on_timer(self, timer: Timer) -> None:
        match timer:
            case (kind, node):
                self._on_sender_timer(kind, node)
            case TimerKind.REWIND:
                self._failover.rewind()
                self._delivery.rewound()
            case TimerKind.GRACE:
                self._delivery.on_grace_over()
            case TimerKind.SCD_TIMEOUT:
                self._failover.on_scd_timeout(self._is_stalled)
            case TimerKind.ALL_SEND_ALL_TIMEOUT:
                self._failover.on_all_send_all_timeout(self._is_stalled)
            case TimerKind.METADATA_RETRY:
                if not self._connections.nodes:
                    self._delivery.epochs.doubt()  # `advance` asks again
            case TimerKind.SLOW_NODES | TimerKind.PROBATION:
                self._failover.check_slow_nodes()
            case _:
                assert_never(timer)

    def _on_sender_timer(self, kind: NodeTimer, node: NodeId) -> None:
        sender = self._connections.get(node)
        assert sender is not None, f"{kind} of {node} outlived its sender"
        if kind is NodeTimer.RECONNECT:
            self._connections.restart(sender)
            return
        sender.is_suspect = True  # D3: do not use this connection again
        self._connections.failed(sender)
        self._failover.trouble(node, RewindReason.STARTED_TIMEOUT)
        self._review(sender)


def _preferred_mode(request: ReadRequest, config: ReadConfig) -> ReadMode:
    if request.force_all_send_all or not config.scd:
        return ReadMode.ALL_SEND_ALL
    return ReadMode.LOCAL_SCD if config.local_scd else ReadMode.SCD
