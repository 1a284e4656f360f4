"""The messages to and from the nodes of the read set: START, STARTED, WINDOW, STOP, and new attempts.

Keeps one sender per node and what the event log says about it, and decides when to ask a node again
that does not answer. What a failure means for single-copy delivery is decided in `failover`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.read import Start, StatusNotice, Stop, Window
from logdevice.protocol.read_stream.events import Effect, NodeTimer, ReadRequest, SendStart
from logdevice.protocol.read_stream.scd import Scd
from logdevice.protocol.read_stream.senders import Sender, SenderState
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.protocol.timers import back_off_ms
from logdevice.settings import ReadStreamSettings
from logdevice.types import AuthoritativeStatus, Lsn, LsnRange, NodeId

_LACKING = (AuthoritativeStatus.UNDERREPLICATION, AuthoritativeStatus.UNAVAILABLE)


class Connections:
    """The senders of one stream, and what all nodes have said about the log."""

    def __init__(
        self,
        request: ReadRequest,
        settings: ReadStreamSettings,
        rng: random.Random,
        effects: Effects[Effect],
        window: SlidingWindow,
        scd: Scd,
    ) -> None:
        self._request, self._settings, self._rng = request, settings, rng
        self._effects, self._window, self._scd = effects, window, scd
        self._by_node: dict[NodeId, Sender] = {}
        self._statuses: dict[NodeId, AuthoritativeStatus] = {}
        self._status_version = -1
        # Nodes that may lack copies according to the event log. A node sends this before any record.
        self.lacking: frozenset[NodeId] = frozenset()
        self.filter_version = 1
        self.replication = 0
        self.released_end = 0  # the highest that any node has reported
        self.trim_end = 0
        self.bridged = LsnRange(Lsn(0), Lsn(0))  # the rest of an epoch whose bridge lies below it

    # ---- the senders --------------------------------------------------------------------------

    @property
    def senders(self) -> Collection[Sender]:
        """The senders, in the order of their node ids."""
        return self._by_node.values()

    @property
    def nodes(self) -> set[NodeId]:
        return set(self._by_node)

    def get(self, node: NodeId) -> Sender | None:
        return self._by_node.get(node)

    def speaker(self, node: NodeId, filter_version: int) -> Sender | None:
        """The sender of a message that counts; None if it is of another START, or not expected (F2)."""
        sender = self._by_node.get(node)
        if sender is None or filter_version != self.filter_version:
            return None
        if sender.state not in (SenderState.READING, SenderState.REBUILDING):
            return None
        sender.grace_counter = 0
        return sender

    def replace(self, nodes: Iterable[NodeId]) -> tuple[list[Sender], list[Sender]]:
        """Make `nodes` the read set. Returns the senders that are new and those that left, which get STOP."""
        wanted = sorted(nodes)
        gone = [sender for node, sender in self._by_node.items() if node not in wanted]
        new = [Sender(node) for node in wanted if node not in self._by_node]
        kept = {**self._by_node, **{sender.node: sender for sender in new}}
        self._by_node = {node: kept[node] for node in wanted}
        for sender in gone:
            self._silence(sender)
            self._window.retire(sender.credit)
        self._window.share_bytes(len(wanted))
        return new, gone

    def stop_all(self) -> None:
        """Send STOP to every node that was started."""
        for sender in self.senders:
            self._silence(sender)

    def _silence(self, sender: Sender) -> None:
        self._effects.disarm((NodeTimer.STARTED, sender.node))
        self._effects.disarm((NodeTimer.RECONNECT, sender.node))
        if sender.state is not SenderState.NEW:
            self._effects.tell(sender.node, Stop(self._request.log))

    # ---- asking -------------------------------------------------------------------------------

    def restart_all(self) -> None:
        """A rewind: all nodes start again at the head, under a new filter version (R2, F1)."""
        self.filter_version += 1
        self._window.drop_buffered()
        for sender in self.senders:
            self._start(sender)

    def restart(self, sender: Sender) -> None:
        """Start one node again while the others continue."""
        self._window.retire(sender.credit)
        self._start(sender)

    def _start(self, sender: Sender) -> None:
        request, window = self._request, self._window
        start = Start(
            log=request.log,
            filter_version=self.filter_version,
            start=Lsn(window.head),
            end=request.end,
            window_end=Lsn(window.window_end),
            window_bytes=window.first_grant,
            mode=self._scd.mode,
            known_down=self._scd.known_down,
            replication=self.replication,
            shuffle_seed=request.shuffle_seed,
            location=request.location,
            time_range=request.time_range,
            headers_only=request.headers_only,
            lineage=request.lineage,
        )
        reconnect = sender.restart(head=window.head, granted=start.window_bytes, window_end=window.window_end)
        self._effects.disarm((NodeTimer.RECONNECT, sender.node))
        self._effects.arm((NodeTimer.STARTED, sender.node), self._settings.started_timeout_ms)
        self._effects.emit(SendStart(sender.node, start, reconnect))

    def reading(self, sender: Sender) -> None:
        """The node answered that it will send."""
        self._answered(sender, SenderState.READING)
        sender.failures = 0
        self._window.has_news = True  # the window may have moved since START

    def rebuilding(self, sender: Sender) -> None:
        """The node answered that it will send once it has its data again."""
        self._answered(sender, SenderState.REBUILDING)

    def _answered(self, sender: Sender, state: SenderState) -> None:
        """Note the answer. It counts even if it comes after the time to wait for it is over."""
        self._effects.disarm((NodeTimer.STARTED, sender.node))
        self._effects.disarm((NodeTimer.RECONNECT, sender.node))
        sender.is_suspect = False
        sender.state = state

    def still_alive(self, sender: Sender) -> None:
        """The node answered an older START: it is late, but alive. Give it more time (F3)."""
        if sender.state is SenderState.STARTING:
            self._effects.arm((NodeTimer.STARTED, sender.node), self._settings.started_timeout_ms)

    def failed(self, sender: Sender, *, for_long: bool = False) -> None:
        """The node cannot be used now; try again after a pause that grows with every failure."""
        settings = self._settings
        pause_ms = back_off_ms(
            sender.failures, settings.reconnect_delay_ms_min, settings.reconnect_delay_ms_max
        )
        if for_long:
            pause_ms = settings.reconnect_delay_ms_max
        sender.state = SenderState.WAITING
        sender.failures += 1
        self._effects.disarm((NodeTimer.STARTED, sender.node))
        # A random part, or all readers of a restarted node would come back at the same moment.
        self._effects.arm((NodeTimer.RECONNECT, sender.node), pause_ms + self._rng.randint(0, pause_ms // 2))

    def update_windows(self) -> None:
        """Send WINDOW to every node for which the window has moved or grown enough."""
        if not self._window.has_news:
            return
        self._window.has_news = False
        for sender in self.senders:
            # A rebuilding node will start to send by itself, and must know the window by then.
            is_served = sender.state in (SenderState.READING, SenderState.REBUILDING)
            if is_served and self._window.wants_update(sender):
                self._update_window(sender)

    def _update_window(self, sender: Sender) -> None:
        sender.credit.granted = max(sender.credit.granted, self._window.grant(sender.credit))
        sender.told_window_end = self._window.window_end
        message = Window(
            self._request.log, self.filter_version, Lsn(self._window.window_end), sender.credit.granted
        )
        self._effects.tell(sender.node, message)

    # ---- what nodes and the event log say -----------------------------------------------------

    def on_released(self, end: int, head: int) -> bool:
        """Note that all below `end` is released. True if the head was not known to be released before."""
        is_news = self.released_end <= head < end
        self.released_end = max(self.released_end, end)
        return is_news

    def on_statuses(self, notice: StatusNotice) -> bool:
        """Note the statuses in the event log. False if a newer notice came before."""
        if notice.version <= self._status_version:
            return False
        self._status_version = notice.version
        self._statuses = dict(notice.statuses)
        self.lacking = frozenset(node for node, status in notice.statuses if status in _LACKING)
        return True

    def review_status(self, sender: Sender) -> bool:
        """Set the authoritative status that counts for the node now; True if it changed (A1, A2)."""
        before = sender.status
        if sender.state is SenderState.READING:
            # The node says that it has its data; the event log may be out of date.
            sender.status = AuthoritativeStatus.FULLY_AUTHORITATIVE
        else:
            sender.status = self._statuses.get(sender.node, AuthoritativeStatus.FULLY_AUTHORITATIVE)
        return sender.status is not before
