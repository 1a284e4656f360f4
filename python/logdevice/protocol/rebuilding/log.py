"""Rebuilding one log on one donor: read records, store them on other nodes, then tell the holders.

It goes through the donor's own copies in LSN order, chunk by chunk, with a few chunks on their way. First all
nodes that lack a chunk store it; only then do holders get the new copyset, this node last (P62). So at every
moment some copyset on disk names nodes that have the record, and after a crash at any point the remaining
work is found again. It lives until the log is done or it cannot go on; then a new attempt begins with the
knowledge of that time. Rules P61 to P66 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.rebuilding.copy_budget import CopyBudget
from logdevice.protocol.rebuilding.plan import Losses, Move, MovePlan
from logdevice.protocol.timers import Timers, back_off_ms
from logdevice.settings import RebuildSettings
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record, RecordFlags, epoch_start

_CORRUPT: Final = int(RecordFlags.CORRUPT)
_DRAINED: Final = int(RecordFlags.DRAINED)
# A node that has just come back needs only a moment: the first pauses are this many times shorter.
_FIRST_RETRY: Final = 16


@dataclass(frozen=True, slots=True)
class DonorContext:
    """What the parts of a donor share. `number` returns a new id for each request."""

    me: NodeId
    settings: RebuildSettings
    budget: CopyBudget  # P66
    effects: Effects[Any]
    number: Callable[[], int]


@dataclass(frozen=True, slots=True)
class RebuildTask:
    """What one donor must do for one log."""

    log: LogId
    version: int  # of the rebuilding
    start: Lsn
    end: Lsn  # nothing at or above it was ever stored on a lost node
    losses: Losses


Copies = PutCopies | AmendCopies
Event = RecordsRead | ReadFailed | Answered[CopiesStored] | Lost[Copies]


@dataclass(frozen=True, slots=True)
class EndRebuilding:
    """Everything was read and copied; or, if not `is_done`, a new attempt must begin."""

    is_done: bool
    unreadable: int = 0  # records or ranges that this node should have copied and could not read
    short: int = 0  # records that stay as they are until there are enough nodes (P61)


@dataclass(slots=True)
class _Sending:
    """One request, until it is answered with OK."""

    chunk: _Chunk
    node: NodeId
    copies: Copies
    attempts: int = 1


@dataclass(slots=True)
class _Chunk:
    """Records on their way. `stages` are still to be sent, each once the one before is answered."""

    began_ms: int  # when its read began
    stages: list[list[tuple[NodeId, Copies]]]
    waiting: set[int] = field(default_factory=set)


class LogRebuilding:
    """Copies one log; a part of a DonorAttempt. `plan_of` returns the move plan of an epoch."""

    def __init__(
        self, task: RebuildTask, plan_of: Callable[[Epoch], MovePlan], context: DonorContext
    ) -> None:
        self.outcome: EndRebuilding | None = None
        self.bytes_copied = 0
        self.bytes_passed = 0  # of the log's records, by the counters that they carry
        self._first_byte: int | None = None
        self._position = task.start  # everything below was read
        self._task = task
        self._plan_of = plan_of
        self._context = context
        self._timers: Timers[int] = Timers()  # of requests that are sent again
        self._read: StoreRead | None = None
        self._chunks: list[_Chunk] = []
        self._sending: dict[int, _Sending] = {}
        self._unreadable = 0
        self._short = 0
        self._read_ms = 0  # when the last read began
        self._advance()

    def handle(self, event: Event) -> None:
        match event:
            case RecordsRead():
                self._on_read(event)
            case ReadFailed():
                self._end(is_done=False)
            case Answered():
                self._on_answer(event.id, event.answer.status)
            case Lost():
                # It may have been stored. Storing it again does no harm.
                self._on_answer(event.id, CopiesStatus.AGAIN)
            case _:
                assert_never(event)
        self._advance()

    def wake(self) -> None:
        for id in self._timers.pop_passed(self._context.effects.now_ms):
            sending = self._sending[id]
            sending.attempts += 1
            self._context.effects.ask(sending.node, sending.copies, id)
        self._advance()

    def is_waiting_for(self, id: int) -> bool:
        return id in self._sending or (self._read is not None and self._read.read_id == id)

    @property
    def deadline_ms(self) -> int | None:
        deadlines = [
            self._timers.deadline_ms(),
            self._context.budget.next_ms if self._wants_to_read else None,
        ]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # ---- reading ------------------------------------------------------------------------------------

    def _advance(self) -> None:
        if self.outcome is not None:
            return
        if self._position >= self._task.end and self._read is None and not self._chunks:
            self._end(is_done=True)
        else:
            self._read_on()

    @property
    def _wants_to_read(self) -> bool:
        has_room = len(self._chunks) < self._context.budget.chunks_max
        return self._read is None and self._position < self._task.end and has_room

    def _read_on(self) -> None:
        if not self._wants_to_read or self._context.effects.now_ms < self._context.budget.next_ms:
            return
        self._read_ms = self._context.effects.now_ms
        epoch = self._position.epoch
        end = min(self._task.end, epoch_start(Epoch(epoch + 1)))
        self._read = StoreRead(
            read_id=self._context.number(),
            log=self._task.log,
            start=self._position,
            end=end,
            # An unused range is passed at once, also across the end of the epoch.
            gap_end=self._task.end,
            bytes_max=self._context.settings.rebuild_chunk_bytes,
            filter=self._plan_of(epoch),
        )
        self._context.effects.emit(self._read)

    def _on_read(self, result: RecordsRead) -> None:
        assert self._read is not None, "one read at a time"
        epoch = self._read.start.epoch
        self._read = None
        self._position = result.next
        records = [item for item in result.items if isinstance(item, Record)]
        readable = [record for record in records if not record.flags & _CORRUPT]
        self._unreadable += len(records) - len(readable) + result.under_replicated  # P59
        if readable:
            self._begin_chunk(readable, self._plan_of(epoch))
        else:
            self._context.budget.worked(self._read_ms, self._context.effects.now_ms)

    # ---- copying ------------------------------------------------------------------------------------

    def _begin_chunk(self, records: list[Record], plan: MovePlan) -> None:
        if self._first_byte is None:
            self._first_byte = records[0].byte_end - len(records[0].body)
        self.bytes_passed = max(self.bytes_passed, records[-1].byte_end - self._first_byte)
        moves = [(record, _move(plan, record)) for record in records]
        self._short += sum(move.is_put_off for _, move in moves)
        size = sum(record.size * len(move.puts) for record, move in moves)
        self.bytes_copied += size
        self._context.budget.copied(size, self._context.effects.now_ms)
        me = self._context.me
        others = sorted({node for _, move in moves for node in move.amends} - {me})
        chunk = _Chunk(
            self._read_ms,
            [
                self._puts(moves),
                [(node, self._amend(node, moves)) for node in others],
                [(me, self._amend(me, moves))],
            ],
        )
        self._chunks.append(chunk)
        self._next_stage(chunk)

    def _puts(self, moves: list[tuple[Record, Move]]) -> list[tuple[NodeId, Copies]]:
        nodes = sorted({node for _, move in moves for node in move.puts})
        puts: list[tuple[NodeId, Copies]] = []
        for node in nodes:
            copies = tuple(
                replace(record, copyset=move.widened or move.copyset, flags=record.flags & ~_DRAINED)
                for record, move in moves
                if node in move.puts
            )
            puts.append((node, PutCopies(self._task.log, self._task.version, copies)))
        return puts

    def _amend(self, node: NodeId, moves: list[tuple[Record, Move]]) -> AmendCopies:
        # P64: a copy on a leaving node no longer counts, but readers that still ask for it find it.
        mark = _DRAINED if node in self._task.losses.gone else 0
        headers = tuple(
            replace(record, copyset=move.copyset, body=b"", flags=record.flags & ~_DRAINED | mark)
            for record, move in moves
            if node in move.amends
        )
        return AmendCopies(self._task.log, self._task.version, headers)

    def _next_stage(self, chunk: _Chunk) -> None:
        while chunk.stages and not chunk.waiting:
            for node, copies in chunk.stages.pop(0):
                if copies.records:
                    id = self._context.number()
                    chunk.waiting.add(id)
                    self._sending[id] = _Sending(chunk, node, copies)
                    self._context.effects.ask(node, copies, id)
        if not chunk.waiting:
            self._chunks.remove(chunk)
            self._context.budget.worked(chunk.began_ms, self._context.effects.now_ms)

    def _on_answer(self, id: int, status: CopiesStatus) -> None:
        sending = self._sending[id]
        match status:
            case CopiesStatus.OK:
                del self._sending[id]
                sending.chunk.waiting.discard(id)
                self._next_stage(sending.chunk)
            case CopiesStatus.AGAIN if sending.attempts < self._context.settings.rebuild_attempts_max:
                longest_ms = self._context.settings.rebuild_retry_ms
                shortest_ms = max(1, longest_ms // _FIRST_RETRY)
                pause_ms = back_off_ms(sending.attempts - 1, shortest_ms, longest_ms)
                self._timers.arm_at(id, self._context.effects.now_ms + pause_ms)
            case _:
                self._end(is_done=False)  # P65: a new attempt uses other nodes, or finds room again

    def _end(self, *, is_done: bool) -> None:
        self.outcome = EndRebuilding(is_done, self._unreadable, self._short)


def _move(plan: MovePlan, record: Record) -> Move:
    move = plan.move(record.copyset)
    assert move is not None, "only records that must be moved were read"
    return move
