"""What single-copy delivery does about trouble: list nodes as down or slow, rewind, change the mode.

Owns the known-down list, the rewinds and the slow-node detector of one stream, and the two timeouts
against nodes that neither send nor fail. Every change of the mode (into all-send-all: read_path.md R4 to
R6; out of it: R7) and of the list (onto it: D1 to D6; off it: D7) is carried out in one method: `rewind`.
"""

from __future__ import annotations

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream import gaps
from logdevice.protocol.read_stream.connections import Connections
from logdevice.protocol.read_stream.detector import SlowNodeDetector
from logdevice.protocol.read_stream.events import Effect, TimerKind
from logdevice.protocol.read_stream.scd import RewindReason, Rewinds, Scd
from logdevice.protocol.read_stream.senders import Sender, SenderState
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.settings import ReadStreamSettings
from logdevice.types import AuthoritativeStatus, NodeId


class Failover:
    """Decides which nodes send, and in which mode, when some of them do not do their part."""

    def __init__(
        self,
        settings: ReadStreamSettings,
        effects: Effects[Effect],
        window: SlidingWindow,
        scd: Scd,
        connections: Connections,
    ) -> None:
        self._settings, self._effects, self._window = settings, effects, window
        self._connections = connections
        self.scd = scd
        self.rewinds = Rewinds(settings)
        self.detector = SlowNodeDetector(settings)
        self.progress_ms = 0  # when the head last moved, or was first known to be released
        self._replication = 0  # R of the head's epoch; the nodes are told of it by the next rewind
        self._rewound_ms = 0
        self._list_changed_ms = 0
        self._accounted_ms = 0  # up to here the detector knows for which nodes the reader waited

    def begin(self, now_ms: int) -> None:
        self.progress_ms = self._accounted_ms = now_ms

    # ---- reasons to rewind ----------------------------------------------------------------------

    def schedule(self, reason: RewindReason) -> None:
        """Ask for a rewind, or join the one that is pending."""
        at_ms = self.rewinds.schedule(reason, self._effects.now_ms)
        if at_ms is not None:
            self._effects.arm(TimerKind.REWIND, at_ms - self._effects.now_ms)

    def trouble(self, node: NodeId, reason: RewindReason) -> None:
        """The node cannot send what it should: list it, so that other nodes send it (D1 to D6)."""
        if self.scd.mark_down(node):
            self.schedule(reason)

    def status_changed(self, sender: Sender) -> None:
        """The authoritative status of a node has changed."""
        if sender.status is AuthoritativeStatus.AUTHORITATIVE_EMPTY:
            # A3: its records have moved to nodes that may already be past them. Read again.
            self.schedule(RewindReason.BECAME_EMPTY)
        if sender.status is not AuthoritativeStatus.FULLY_AUTHORITATIVE:
            self.trouble(sender.node, RewindReason.NOT_AUTHORITATIVE)

    def prefer(self, mode: ReadMode) -> None:
        """The configuration or the attributes of the log changed (R8)."""
        if mode is self.scd.preferred:
            return
        self.scd.preferred = mode
        self.scd.want_mode(mode)  # also replaces a wish that was not carried out yet
        if mode is not self.scd.mode:
            self.schedule(RewindReason.CONFIG_CHANGED)

    def replication_is(self, copies: int) -> None:
        """Set R. All nodes must use the same R, or two of them or none would send the same record (R8).

        So a node that reconnects before the rewind still gets the R that the others got.
        """
        self._replication = copies
        if self._connections.nodes and copies != self._connections.replication and self.scd.is_active:
            self.schedule(RewindReason.CONFIG_CHANGED)
        else:
            self._connections.replication = copies

    def node_gone(self, node: NodeId) -> None:
        """The node left the read set."""
        self.detector.forget(node)
        if self.scd.forget(node):
            self.schedule(RewindReason.CONFIG_CHANGED)

    # ---- the rewind -----------------------------------------------------------------------------

    def rewind(self) -> None:
        """Carry out all changes asked for since the last rewind, and start all nodes again at the head."""
        listed = self.scd.filtered_out
        unfit = [sender.node for sender in self._connections.senders if not sender.is_fit_for_scd]
        self.rewinds.begin()
        self._connections.replication = self._replication
        self.scd.apply(self._connections.nodes, unfit)
        if self.scd.filtered_out != listed:
            self._list_changed_ms = self._effects.now_ms
        self._rewound_ms = self._effects.now_ms
        self.detector.restart_window(self._effects.now_ms)
        self._connections.restart_all()
        self.guard()

    # ---- no node sends the head -----------------------------------------------------------------

    def check_all_passed(self) -> None:
        """R4: once no node is left that would send the head, do not wait for a timeout."""
        if not self.scd.is_active or self.rewinds.is_pending:
            return
        head, filtered_out = self._window.head, self.scd.filtered_out
        if not gaps.all_passed(self._connections.senders, filtered_out, head):
            return
        thin = [
            sender.node
            for sender in self._connections.senders
            if sender.node not in filtered_out and sender.is_thin_at(head)
        ]
        for node in thin:
            # D5: this node may have lost the head; the next node of the copyset must send it.
            self.trouble(node, RewindReason.UNDER_REPLICATED)
        if not thin:
            self.scd.want_mode(ReadMode.ALL_SEND_ALL)
            self.schedule(RewindReason.NOBODY_HAS_IT)

    # ---- the two timeouts -----------------------------------------------------------------------

    def guard(self) -> None:
        """Arm the timeouts: a node could fail to send the head without any sign."""
        if not self.scd.is_active:
            self._effects.disarm(TimerKind.SCD_TIMEOUT)
        elif not self._effects.is_armed(TimerKind.SCD_TIMEOUT):
            self._effects.arm(TimerKind.SCD_TIMEOUT, self._settings.scd_timeout_ms)
        if not self._effects.is_armed(TimerKind.ALL_SEND_ALL_TIMEOUT):
            self._effects.arm(TimerKind.ALL_SEND_ALL_TIMEOUT, self._settings.all_send_all_timeout_ms)

    def on_scd_timeout(self, is_stalled: bool) -> None:
        """D4: if the head has not moved for a whole period, list the nodes that have not passed it."""
        timeout_ms = self._settings.scd_timeout_ms
        left_ms = max(self.progress_ms, self._rewound_ms) + timeout_ms - self._effects.now_ms
        if not is_stalled or left_ms > 0 or self.rewinds.is_pending:
            self._effects.arm(TimerKind.SCD_TIMEOUT, left_ms if is_stalled and left_ms > 0 else timeout_ms)
            return
        silent = self._silent()
        if silent and len(self.scd.down) + len(silent) < len(self._connections.nodes):
            for sender in silent:
                sender.is_suspect = True
                self.trouble(sender.node, RewindReason.SCD_TIMEOUT)
        self._effects.arm(TimerKind.SCD_TIMEOUT, timeout_ms)

    def on_all_send_all_timeout(self, is_stalled: bool) -> None:
        """R5: if listing nodes has not helped, or none is left to list, go to all-send-all."""
        timeout_ms = self._settings.all_send_all_timeout_ms
        left_ms = self.progress_ms + timeout_ms - self._effects.now_ms
        if is_stalled and left_ms <= 0 and self.scd.is_active and not self._all_silent():
            left_ms = self._list_changed_ms + timeout_ms - self._effects.now_ms
        self._effects.arm(
            TimerKind.ALL_SEND_ALL_TIMEOUT, left_ms if is_stalled and left_ms > 0 else timeout_ms
        )
        if not is_stalled or left_ms > 0 or self.rewinds.is_pending:
            return
        silent = [sender for sender in self._connections.senders if not sender.is_past(self._window.head)]
        for sender in silent:
            sender.is_suspect = True
        if self.scd.is_active:
            self.scd.want_mode(ReadMode.ALL_SEND_ALL)
            self.schedule(RewindReason.ALL_SEND_ALL_TIMEOUT)
            return
        for sender in silent:
            if sender.state is SenderState.READING:
                self._connections.restart(sender)  # R9: a new connection may help where waiting does not

    def _silent(self) -> list[Sender]:
        head, filtered_out = self._window.head, self.scd.filtered_out
        return [
            sender
            for sender in self._connections.senders
            if sender.node not in filtered_out and not sender.is_past(head)
        ]

    def _all_silent(self) -> bool:
        return not any(sender.is_past(self._window.head) for sender in self._connections.senders)

    # ---- the window slides ----------------------------------------------------------------------

    def window_slid(self) -> None:
        """The window slid: take nodes that are back off the list (D7), or return to SCD (R7)."""
        self._sample_slow_nodes()
        if self.scd.is_active:
            for sender in self._connections.senders:
                if sender.node in self.scd.down and sender.has_sent_data and sender.is_fit_for_scd:
                    self.scd.mark_up(sender.node)
                    self.schedule(RewindReason.NODE_BACK)
        elif self.scd.preferred is not ReadMode.ALL_SEND_ALL and any(
            sender.is_fit_for_scd for sender in self._connections.senders
        ):
            self.scd.want_mode(self.scd.preferred)
            self.schedule(RewindReason.BACK_TO_SCD)

    # ---- slow nodes -----------------------------------------------------------------------------

    def account_for_waiting(self, is_stalled: bool) -> None:
        """L1: charge the time since the last event to the nodes that owed the head until now."""
        now_ms = self._effects.now_ms
        if self.detector.is_off or now_ms == self._accounted_ms:
            return
        owing: tuple[NodeId, ...] = ()
        if is_stalled and self.scd.is_active and not self.rewinds.is_pending:
            owing = tuple(
                sender.node
                for sender in self._silent()
                if sender.state is SenderState.READING and sender.credit.granted > sender.credit.received
            )
        self.detector.waits_for(owing, self._accounted_ms)
        self.detector.waits_for(owing, now_ms)
        self._accounted_ms = now_ms

    def watch_slow_nodes(self) -> None:
        """The head is missing: check soon which node is the cause."""
        if not self.detector.is_off and not self._effects.is_armed(TimerKind.SLOW_NODES):
            self._effects.arm(TimerKind.SLOW_NODES, self._settings.slow_node_floor_ms)

    def _sample_slow_nodes(self) -> None:
        if not self.detector.is_off:
            self.detector.window_done(self._candidates(), self._effects.now_ms)
            self.check_slow_nodes()

    def check_slow_nodes(self) -> None:
        """L4: never list so many nodes that they could be a whole copyset."""
        empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
        lost = sum(
            sender.node in self.scd.down and sender.status is not empty
            for sender in self._connections.senders
        )
        outliers_max = max(0, self._connections.replication - 1 - lost)
        changed = self.detector.check(self._candidates(), outliers_max, self._effects.now_ms)
        if (end_ms := self.detector.probation_end_ms) is not None:
            self._effects.arm(TimerKind.PROBATION, end_ms - self._effects.now_ms)
        if changed and self._settings.slow_node_detection == "enabled":
            differs = self.scd.want_slow(self.detector.on_probation)
            if differs and self.scd.is_active:
                self.schedule(RewindReason.SLOW_NODES_CHANGED)

    def _candidates(self) -> list[NodeId]:
        return [
            sender.node
            for sender in self._connections.senders
            if sender.state is SenderState.READING and sender.node not in self.scd.down
        ]
