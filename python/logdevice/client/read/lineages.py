"""The calls of a client that check whether the records that a consumer has read are still in the log.

As long as the history of the log has not branched, its newest lineage id shows that. If it has branched, the
log is read again, below the consumer's position: either it still has every record, or its gaps say which ones
are lost. So a consumer has to undo something only if it has read what was lost. Rules L33 to L36 of
docs/protocol/lineage.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.errors import InvalidArgumentError, RollbackError, UnavailableError, UnknownLogError
from logdevice.protocol.lineage import Held, Lineage, lost_ranges, parsed_id, rollback_point
from logdevice.protocol.messages.service import GetLineage, LineageIs
from logdevice.protocol.read_stream.events import ReadRequest
from logdevice.types import LSN_MAX, LSN_OLDEST, Epoch, Gap, LogId, Lsn, LsnRange

if TYPE_CHECKING:
    from logdevice.client.read.reader import Reader

_LOOKS_MAX: Final = 5
NEWEST: Final = "newest"  # the history that the log has when reading begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a consumer has read a log, and which history of the log that was.

    It has plain values, to be saved anywhere.
    """

    path: str  # of the log that was read
    log: LogId  # its number
    next: Lsn  # the first LSN that was not read
    lineage: str | None  # the id of the history; None: not known, so that no rollback can be found
    since: Lsn = LSN_OLDEST  # where the consumer began to read


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of `check`: whether everything that was read is still in the log, and where to continue."""

    checkpoint: Checkpoint  # the one that was checked
    log: LogId  # the log with that path now: another number if the log was removed and created again
    lineage: str | None  # save it with the position from now on
    safe: Lsn  # everything that was read below it is still in the log; continue reading here
    epoch: Epoch  # records of epochs up to this one belong to the history that was checked
    lost: tuple[LsnRange, ...] = ()  # the ranges that were read and are no longer in the log

    @property
    def is_rollback(self) -> bool:
        """Whether records that were read are lost: undo everything from `safe` on."""
        return bool(self.lost)

    def error(self) -> RollbackError:
        """The error that says what is lost, for a consumer that does not handle rollbacks itself."""
        lost = ", ".join(map(str, self.lost))
        is_same = self.log == self.checkpoint.log
        what = "has lost" if is_same else f"was created again as log {self.log} and does not have"
        error = RollbackError(
            f"{self.checkpoint.path} {what} records that were read: the checkpoint is at "
            f"{self.checkpoint.next}, the safe LSN is {self.safe}, lost: {lost}",
            log=self.checkpoint.log,
            lsn=self.checkpoint.next,
        )
        error.safe, error.lost = self.safe, self.lost
        return error


class Read(Protocol):
    def __call__(self, log: LogRef, start: Lsn, until: Lsn, *, headers_only: bool) -> Reader: ...


class Lineages:
    def __init__(self, context: ClientContext, read: Read) -> None:
        self._context, self._read = context, read

    async def lineage(self, log: LogRef) -> Lineage:
        """The histories that a log has had; none before its first append."""
        return (await self._lineage(await self._context.number(log))).lineage

    async def check(self, checkpoint: Checkpoint) -> Checked:
        """Checks whether all records that a consumer has read are still in the log, or which ones are lost.

        The result says where to continue. UnavailableError if that is not known yet, because nodes that may
        have the records are down; UnknownLogError if the log was removed, and its path is not in use again.
        """
        log = await self._present(checkpoint)
        for _ in range(_LOOKS_MAX):
            answer = await self._lineage(log)
            lost = await self._lost(checkpoint, log, answer.lineage)
            # L36: the history did not change while it was read.
            if not lost or (await self._lineage(log)).lineage.version == answer.lineage.version:
                return Checked(
                    checkpoint=checkpoint,
                    log=log,
                    lineage=answer.lineage.shown,
                    safe=lost[0].start if lost else checkpoint.next,
                    # Nothing of a newer epoch is released before this epoch is clean.
                    epoch=Epoch(answer.last_clean + 1),
                    lost=lost,
                )
        raise UnavailableError("the log keeps branching while it is checked", log=log)

    async def guard(self, request: ReadRequest, *, lineage: str, is_checked: bool) -> LineageGuard:
        """The guard of a reader that is about to be opened."""
        path = (await self._context.directory.find(int(request.log))).path
        known = None if lineage == NEWEST else lineage
        # If the caller has checked `start`, the reader checks only what it reads itself.
        since = request.start if is_checked else LSN_OLDEST
        checkpoint = Checkpoint(path=path, log=request.log, next=request.start, lineage=known, since=since)
        return LineageGuard(self.check, checkpoint, is_checked=is_checked)

    async def _lineage(self, log: LogId) -> LineageIs:
        return await self._context.nodes.call_any(GetLineage(log))

    async def _lost(self, checkpoint: Checkpoint, log: LogId, lineage: Lineage) -> tuple[LsnRange, ...]:
        held = Held(next=checkpoint.next, lineage=_known(checkpoint))
        point = rollback_point(lineage, held) if held.lineage else None
        if point is None or checkpoint.next <= max(point, checkpoint.since):
            return ()
        doubtful = LsnRange(max(point, checkpoint.since), checkpoint.next)
        if log != checkpoint.log or lineage.common_end(held.lineage, LSN_MAX) is None:
            return (doubtful,)  # L26, L35: the histories have nothing in common that could be compared
        return await self._compare(checkpoint, doubtful)

    async def _present(self, checkpoint: Checkpoint) -> LogId:
        """The log of the checkpoint; if it was removed, the log that has its path now."""
        try:
            await self._context.directory.find(int(checkpoint.log), fresh=True)
            return checkpoint.log
        except UnknownLogError:
            return await self._context.number(checkpoint.path)

    async def _compare(self, checkpoint: Checkpoint, part: LsnRange) -> tuple[LsnRange, ...]:
        """L34: reads a range of the log, and returns what the log has lost of it."""
        gaps: list[Gap] = []
        timeout_ms = self._context.settings.call_timeout_ms
        async with self._read(int(checkpoint.log), part.start, part.end, headers_only=True) as reader:
            try:
                while (item := await reader.next(timeout_ms)) is not None:
                    if isinstance(item, Gap):
                        gaps.append(item)
            except TimeoutError:
                health = reader.health()
                assert health is not None, "it was opened"
                raise UnavailableError(
                    f"it is not known yet whether {checkpoint.path} has lost records: reading it stalls at "
                    f"{health.head}, waiting for {health.waiting_for}",
                    log=checkpoint.log,
                    lsn=health.head,
                ) from None
        return lost_ranges(gaps, part.end)


Check = Callable[[Checkpoint], Awaitable[Checked]]


def _known(checkpoint: Checkpoint) -> int:
    try:
        return 0 if checkpoint.lineage is None else parsed_id(checkpoint.lineage)
    except ValueError as problem:
        raise InvalidArgumentError(f"lineage of the checkpoint: {problem}", log=checkpoint.log) from None


class LineageGuard:
    """L33: checks, for a reader with a lineage, that what it has read is still in the log."""

    def __init__(self, check: Check, checkpoint: Checkpoint, *, is_checked: bool = False) -> None:
        self._check = check
        self._checkpoint = checkpoint
        # Records of epochs up to this one belong to a history that was checked. If the caller has checked the
        # position, no new check is due before an epoch in which the history may have changed.
        self._epoch = checkpoint.next.epoch if is_checked else Epoch(-1)

    @property
    def id(self) -> int:
        """The lineage id for START messages; 0 as long as the log has no lineage."""
        return _known(self._checkpoint)

    def checkpoint(self, next: Lsn) -> Checkpoint:
        """The checkpoint of a consumer that has read everything below `next`."""
        return replace(self._checkpoint, next=next)

    def is_due(self, lsn: Lsn) -> bool:
        """Whether a record at `lsn` may belong to a history that was not checked."""
        return lsn.epoch > self._epoch

    async def poll(self, position: Lsn, arrived: Lsn) -> bool:
        """Checks the history. RollbackError if records below `position` are lost; True if it has branched."""
        before = self._checkpoint.lineage
        checked = await self._check(self.checkpoint(position))
        if checked.is_rollback:
            raise checked.error()
        self._epoch = Epoch(max(checked.epoch, arrived.epoch))
        self._checkpoint = replace(self._checkpoint, lineage=checked.lineage)
        return checked.lineage != before
