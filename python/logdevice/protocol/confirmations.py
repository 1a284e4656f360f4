"""Whether a sequencer still is the sequencer: the epoch store is asked, for all who want to be sure.

A sequencer that was replaced while it stood still does not know it, and would answer about the past. One
question is on its way at a time. It counts for those who came before it was asked, however many they are; who
comes later waits for the next one, because this one may have been answered already. A part of the sequencer,
and as old as it. Rules U19 in docs/protocol/write_path.md, T18 in barriers.md.
"""

from __future__ import annotations

from logdevice.protocol.epoch_state import ConfirmEpoch, EpochConfirmed
from logdevice.types import LogId
from logdevice.write_settings import WriteSettings


class Confirmations:
    def __init__(self, log: LogId, settings: WriteSettings) -> None:
        self._log = log
        self._settings = settings
        self._asked = 0  # the number of the last question
        self._is_wanted = False  # somebody came after it
        self._until_ms: int | None = None  # how long its answer is waited for; None: nothing is on its way

    def join(self) -> int:
        """The number of the question whose answer will count for one who comes now."""
        self._is_wanted = True
        return self._asked + 1

    def heard(self, event: EpochConfirmed) -> bool:
        """Whether this is the answer that is waited for."""
        if self._until_ms is None or event.question != self._asked:
            return False
        self._until_ms = None
        return True

    def due(self, now_ms: int) -> list[ConfirmEpoch]:
        is_free = self._until_ms is None or self._until_ms <= now_ms
        if not self._is_wanted or not is_free:
            return []
        self._asked += 1
        self._is_wanted = False
        self._until_ms = now_ms + self._settings.barrier_timeout_ms
        return [ConfirmEpoch(self._log, self._asked)]

    def abandon(self) -> None:
        """Nobody waits any more."""
        self._is_wanted = False
        self._until_ms = None

    def deadline_ms(self) -> int | None:
        return self._until_ms if self._is_wanted else None
