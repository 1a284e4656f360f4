"""One call of a log state's `handle`: what it has asked for so far, and the writes it waits for.

The parts of a log state share one LogTurn, as they share one StoredLog.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from logdevice.protocol.log_state_events import Answer, Effect, Reply
from logdevice.protocol.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutState,
    StoreWrite,
)
from logdevice.protocol.stored_log import PROGRESS, StoredLog
from logdevice.protocol.timers import Timers
from logdevice.types import LogId
from logdevice.write_settings import RecoverySettings

_FLUSH = "FLUSH"


def _nothing() -> None:
    pass


def _ignore(error: PersistError) -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Write:
    done: Callable[[], None]
    failed: Callable[[PersistError], None]


class LogTurn:
    def __init__(self, log: LogId, settings: RecoverySettings) -> None:
        self.effects: list[Effect] = []
        self._log = log
        self._settings = settings
        self._now_ms = 0
        self._id = 0
        self._writes: dict[int, _Write] = {}
        self._timers: Timers[str] = Timers()

    def begin(self, now_ms: int) -> list[Effect]:
        self._now_ms = now_ms
        self.effects = []
        return self.effects

    def finish(self) -> None:
        if wake_up := self._timers.wake_up():
            self.effects.append(wake_up)

    def next_id(self) -> int:
        self._id += 1
        return self._id

    def reply(self, reply_to: int, answer: Answer) -> None:
        self.effects.append(Reply(reply_to, answer))

    def persist(
        self,
        writes: Sequence[StoreWrite],
        done: Callable[[], None] = _nothing,
        failed: Callable[[PersistError], None] = _ignore,
    ) -> None:
        """J7: what has to be durable first goes into `done`."""
        write_id = self.next_id()
        self._writes[write_id] = _Write(done, failed)
        self.effects.append(Persist(write_id, tuple(writes)))

    def written(self, event: Persisted | PersistFailed) -> None:
        write = self._writes.pop(event.write_id)
        if isinstance(event, Persisted):
            write.done()
        else:
            write.failed(event.error)

    def flush_later(self) -> None:
        """Progress is worth a write now and then, not one each time it is made."""
        if not self._timers.is_armed(_FLUSH):
            self._timers.arm(_FLUSH, self._now_ms + self._settings.state_flush_ms)

    def flush(self, stored: StoredLog) -> None:
        for _ in self._timers.pop_passed(self._now_ms):
            self.persist([PutState(self._log, PROGRESS, stored.encode_progress())])
