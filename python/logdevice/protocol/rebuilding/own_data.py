"""What a node reports about its own data: that it has everything back, or that it is drained.

A node that has lost its data counts again once donors have copied everything (P51) and it also holds the
metadata logs, which every node has and no donor brings. A drained node checks its own copies once donors are
done and it takes no more copies. If it finds a copy that no donor has seen, the drain begins again. If
there is none, it reports this and then removes its copies. The machine lives as long as the process. Rules
P74 and P79 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final, assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import DeleteRecords, Persist, Persisted, PersistFailed
from logdevice.protocol.metadata_log.log import MetadataLogsAdopted
from logdevice.protocol.rebuilding.donor_events import (
    AwaitQuiet,
    EventLogMoved,
    EventRecorded,
    Quiet,
    RecordEvent,
)
from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind, NodeEvent, NodeEvents
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RebuildSettings
from logdevice.types import LSN_MAX, LogId, Lsn, NodeId, Record, RecordFlags

Event = (
    EventLogMoved
    | MetadataLogsAdopted
    | Quiet
    | RecordsRead
    | ReadFailed
    | EventRecorded
    | Persisted
    | PersistFailed
    | Woken
)
Effect = AwaitQuiet | StoreRead | RecordEvent | Persist | WakeAt

_RETRY: Final = "RETRY"
_DRAINED: Final = int(RecordFlags.DRAINED)


class _Undrained:
    """The filter of a store read for copies that count and are not marked as drained."""

    def __init__(self, me: NodeId) -> None:
        self._me = me

    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool:
        return self._me in copyset and not flags & _DRAINED


class _Step(Enum):
    """What a lost or drained node must do next."""

    COUNT = "COUNT"  # it has its data back and reports this
    CHECK = "CHECK"  # donors are done: look for a copy that no donor has seen
    EMPTY = "EMPTY"  # remove its copies, which are no longer needed


class OwnData:
    def __init__(self, me: NodeId, settings: RebuildSettings) -> None:
        self._me = me
        self._settings = settings
        self._effects: Effects[Effect] = Effects()
        self._events = NodeEvents()
        self._has_metadata = False
        self._begun: tuple[int, _Step] | None = None  # the rebuilding, and the step that was begun for it
        self._id = 0  # of the last request: answers to earlier ones are ignored
        self._unread: deque[LogId] = deque()
        self._position = Lsn(0)

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        match event:
            case EventLogMoved():
                self._events = event.events
            case MetadataLogsAdopted():
                self._has_metadata = event.is_enough
            case Quiet():
                if event.id == self._id:
                    self._on_quiet(event.logs)
            case RecordsRead() | ReadFailed():
                if event.read_id == self._id:
                    self._on_read(event)
            case EventRecorded():
                if not event.is_done:
                    self._retry()
            case PersistFailed():
                self._retry()
            case Persisted():
                pass
            case Woken():
                for _ in self._effects.passed():
                    self._begun = None
            case _:
                assert_never(event)
        self._begin_if_due()
        self._effects.finish()
        return effects

    def _retry(self) -> None:
        self._effects.arm(_RETRY, self._settings.rebuild_retry_ms)

    def _begin_if_due(self) -> None:
        step = self._step()
        due = None if step is None else (self._events.rebuilding, step)
        if due != self._begun:
            self._begun = due
            self._new_id()
            if step is _Step.COUNT:
                self._say(EventKind.ACKNOWLEDGED)
            elif step is not None:
                self._effects.emit(AwaitQuiet(self._id))

    def _step(self) -> _Step | None:
        mine = self._events.case(self._me)
        if mine is None or not mine.is_ready:
            return None
        if mine.mode is CaseMode.DRAIN:
            return _Step.EMPTY if mine.is_settled else _Step.CHECK
        is_restored = mine.mode is CaseMode.RESTORE and mine.is_settled
        return _Step.COUNT if is_restored and self._has_metadata else None  # P79

    def _new_id(self) -> int:
        self._id += 1
        return self._id

    def _on_quiet(self, logs: tuple[LogId, ...]) -> None:
        assert self._begun is not None, "AwaitQuiet was emitted for a step"
        if self._begun[1] is _Step.EMPTY:
            # All at once: after an UNDRAIN the node gets new copies, and these must not be deleted.
            for log in logs:
                self._effects.emit(Persist(self._new_id(), (DeleteRecords(log, Lsn(0), LSN_MAX),)))
        else:
            self._unread, self._position = deque(logs), Lsn(0)
            self._read_on()

    def _read_on(self) -> None:
        if not self._unread:
            self._say(EventKind.ACKNOWLEDGED)
            return
        read = StoreRead(
            read_id=self._new_id(),
            log=self._unread[0],
            start=self._position,
            end=LSN_MAX,
            gap_end=LSN_MAX,
            bytes_max=1,  # one copy is enough to know
            filter=_Undrained(self._me),
            headers_only=True,
        )
        self._effects.emit(read)

    def _on_read(self, result: RecordsRead | ReadFailed) -> None:
        """P74: goes on with the check. A disk that cannot be read may hold any copy, so it drains again."""
        if isinstance(result, ReadFailed) or any(isinstance(item, Record) for item in result.items):
            self._say(EventKind.DRAIN)
            return
        self._position = result.next
        if self._position >= LSN_MAX:
            self._unread.popleft()
            self._position = Lsn(0)
        self._read_on()

    def _say(self, kind: EventKind) -> None:
        version = self._events.rebuilding
        self._effects.emit(RecordEvent(NodeEvent(kind=kind, node=self._me, version=version)))
