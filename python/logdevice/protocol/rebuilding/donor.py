"""A donor: a node that has its data and copies what other nodes have lost or give away.

It follows the event log. Whenever the event log says that there is something to copy (again), the donor goes
through all logs from the beginning, some at a time. Records that were copied before need no new copy, so
after a crash or a change it only reads their headers. When every log is done it records this in the event
log, once. It lives as long as the process. Rules P57, P75 and P78 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final

from logdevice.protocol.effects import Effects
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead
from logdevice.protocol.messages.write import Release
from logdevice.protocol.rebuilding.copy_budget import CopyBudget
from logdevice.protocol.rebuilding.donor_attempt import DonorAttempt, LogDone
from logdevice.protocol.rebuilding.donor_attempt import Effect as AttemptEffect
from logdevice.protocol.rebuilding.donor_attempt import Event as AttemptEvent
from logdevice.protocol.rebuilding.donor_events import CopyingEnded, EventLogMoved, EventRecorded, RecordEvent
from logdevice.protocol.rebuilding.log import DonorContext
from logdevice.protocol.rebuilding.node_status import EventKind, NodeEvent
from logdevice.protocol.rebuilding.plan import Losses
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RebuildSettings
from logdevice.types import LogId, NodeId

Event = EventLogMoved | EventRecorded | AttemptEvent | Woken
Effect = RecordEvent | CopyingEnded | AttemptEffect | WakeAt

_RECORD: Final = "RECORD"  # this timer repeats DONE; all other timers are log ids


class Donor:
    """Copies the logs of this node for rebuildings.

    `sent_to_readers` returns how many bytes this node has ever sent to readers; copying gives way to them.
    """

    def __init__(self, me: NodeId, settings: RebuildSettings, sent_to_readers: Callable[[], int]) -> None:
        self.version: int | None = None  # of the current or last rebuilding
        self.left: set[LogId] = set()  # its logs that are not done
        self._me = me
        self._settings = settings
        self._effects: Effects[Effect] = Effects()
        self._sent_to_readers = sent_to_readers
        self._budget = CopyBudget(settings)  # P66
        self._context = DonorContext(me, settings, self._budget, self._effects, count(1).__next__)
        self._losses = Losses(frozenset(), frozenset(), frozenset())
        self._waiting: deque[LogId] = deque()  # logs that wait for their turn
        self._attempts: dict[LogId, DonorAttempt] = {}  # logs that are worked on
        self._releases: dict[LogId, Release] = {}  # P71, as far as known in this rebuilding
        self._is_authoritative = True  # of the logs that are done
        self._bytes_before = 0

    @property
    def bytes_copied(self) -> int:
        """Since the process began."""
        return self._bytes_before + sum(attempt.bytes_copied for attempt in self._attempts.values())

    def bytes_passed(self, log: LogId) -> int:
        """How many bytes of a log's records were checked so far, each record counted once."""
        return self._attempts[log].bytes_passed if log in self._attempts else 0

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        self._budget.measure(self._sent_to_readers(), now_ms)
        match event:
            case EventLogMoved():
                self._follow(event)
            case EventRecorded():
                if event.event.version == self.version and not event.is_done:
                    self._effects.arm(_RECORD, self._settings.rebuild_retry_ms)
            case Woken():
                self._wake()
            case _:
                self._pass_on(event)
        self._advance()
        self._effects.finish(*(attempt.deadline_ms for attempt in self._attempts.values()))
        return effects

    def _follow(self, moved: EventLogMoved) -> None:
        events = moved.events
        is_due = events.has_work and self._me not in events.lost and self._me not in dict(events.done)
        if is_due and events.rebuilding == self.version:
            return
        # P57: answers that belong to an earlier rebuilding are ignored.
        self.version = events.rebuilding if is_due else None
        self.left = set(moved.logs) if is_due else set()
        self._effects.clear_timers()
        self._waiting = deque(sorted(self.left))
        self._releases.clear()
        for log in list(self._attempts):
            self._forget(log)
        self._losses = Losses.of(events)
        self._is_authoritative = True
        if is_due and not self.left:
            self._say_done()

    def _forget(self, log: LogId) -> None:
        attempt = self._attempts.pop(log)
        self._bytes_before += attempt.bytes_copied
        if attempt.copying_since_ms is not None:
            self._effects.emit(CopyingEnded(self._effects.now_ms - attempt.copying_since_ms))

    def _wake(self) -> None:
        for timer in self._effects.passed():
            if timer == _RECORD:
                self._say_done()
            else:
                self._waiting.append(timer)
        for attempt in self._attempts.values():
            attempt.wake()

    def _pass_on(self, event: AttemptEvent) -> None:
        id = event.read_id if isinstance(event, RecordsRead | ReadFailed) else event.id
        for attempt in self._attempts.values():
            if attempt.is_waiting_for(id):
                attempt.handle(event)

    def _advance(self) -> None:
        """P75: ends the attempts that are over and begins waiting logs in their place."""
        for log, attempt in list(self._attempts.items()):
            if attempt.outcome is None:
                continue
            self._forget(log)
            if attempt.release is not None:
                # Keep the first answer: while the log is written to, releases here never reach a newer tail.
                self._releases[log] = attempt.release
            if isinstance(attempt.outcome, LogDone):
                self._log_is_done(log, attempt.outcome)
            else:
                self._effects.arm(log, self._settings.rebuild_retry_ms)
        while (
            self._waiting
            and self.version is not None
            and len(self._attempts) < self._settings.rebuild_logs_max
        ):
            log = self._waiting.popleft()
            self._attempts[log] = DonorAttempt(
                log, self.version, self._losses, self._releases.get(log), self._context
            )

    def _log_is_done(self, log: LogId, done: LogDone) -> None:
        self._is_authoritative = self._is_authoritative and done.is_authoritative
        self.left.discard(log)
        if not self.left:
            self._say_done()

    def _say_done(self) -> None:
        """P78: records in the event log that this donor has finished the rebuilding."""
        assert self.version is not None, "there is a rebuilding"
        event = NodeEvent(
            kind=EventKind.DONE,
            node=self._me,
            version=self.version,
            is_authoritative=self._is_authoritative,
        )
        self._effects.emit(RecordEvent(event))
