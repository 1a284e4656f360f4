"""The effects of one call of a log state's `handle`, and the writes and reads that it waits for.

The parts of a log state share one LogEffects, as they share one StoredLog. Each part passes a callback that
is called once its write is durable or its read has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from logdevice.protocol.effects import Effects
from logdevice.protocol.log_state.events import Effect
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    StoreWrite,
)
from logdevice.settings import RecoverySettings
from logdevice.types import LogId, Lsn

FLUSH: Final = "FLUSH"
PURGE: Final = "PURGE"

FromStore = Persisted | PersistFailed | RecordsRead | ReadFailed


def _nothing() -> None:
    pass


def _ignore(error: PersistError) -> None:
    pass


class LogEffects(Effects[Effect]):
    def __init__(self, log: LogId, settings: RecoverySettings) -> None:
        super().__init__()
        self._log = log
        self._settings = settings
        self._id = 0
        self._waiting: dict[int, Callable[[FromStore], None]] = {}

    def persist(
        self,
        writes: Sequence[StoreWrite],
        done: Callable[[], None] = _nothing,
        failed: Callable[[PersistError], None] = _ignore,
    ) -> None:
        """Writes to the store. J7: whatever must wait until this is durable belongs in `done`."""

        def resume(event: FromStore) -> None:
            if isinstance(event, PersistFailed):
                failed(event.error)
            else:
                done()

        self._id += 1
        self._waiting[self._id] = resume
        self.orders.append(Persist(self._id, tuple(writes)))

    def read(
        self,
        start: Lsn,
        end: Lsn,
        done: Callable[[RecordsRead | None], None],
        *,
        headers_only: bool = True,
        bytes_max: int | None = None,
    ) -> None:
        """Reads the copies of [start, end), as many as fit; `done` gets None if the store cannot be read."""

        def resume(event: FromStore) -> None:
            done(event if isinstance(event, RecordsRead) else None)

        self._id += 1
        self._waiting[self._id] = resume
        read = StoreRead(
            read_id=self._id,
            log=self._log,
            start=start,
            end=end,
            gap_end=end,
            bytes_max=bytes_max or self._settings.digest_bytes_max,
            headers_only=headers_only,
        )
        self.orders.append(read)

    def flush_later(self) -> None:
        """Has the progress written soon; not at once, so that many changes need only one write."""
        if not self.is_armed(FLUSH):
            self.arm(FLUSH, self._settings.state_flush_ms)

    def resume(self, id: int, event: FromStore) -> None:
        """Passes the answer of the store to the part that waits for it."""
        self._waiting.pop(id)(event)
