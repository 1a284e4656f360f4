"""Whether what was read of a log still is its history: a part of the client.

Cheap while nothing happened: the newest lineage id says it. Where the history has branched, the log itself is
looked at: below the position it has every record that was there, or it says which are lost. So nobody has to
undo anything because of a loss that did not concern it. Rules L33 to L36 of docs/protocol/lineage.md.
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
NEWEST: Final = "newest"  # whichever history the log has when reading begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far somebody has read a log, and which history of it that was."""

    path: str
    log: LogId
    next: Lsn  # the first LSN that was not read
    lineage: str | None  # None: from before there were lineages, taken as it is
    since: Lsn = LSN_OLDEST  # where reading began


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of a checkpoint."""

    checkpoint: Checkpoint
    log: LogId  # of that path now: another number if the log was removed and made again
    lineage: str | None  # to be kept with the position from now on
    safe: Lsn  # what was read below it holds; read on from here
    epoch: Epoch  # records of an epoch up to this one are of the history that was looked at
    lost: tuple[LsnRange, ...] = ()  # what was read and is no longer in the log

    @property
    def is_rollback(self) -> bool:
        return bool(self.lost)

    def error(self) -> RollbackError:
        lost = ", ".join(map(str, self.lost))
        is_same = self.log == self.checkpoint.log
        what = "has lost" if is_same else f"was made again as log {self.log} and does not have"
        error = RollbackError(
            f"{self.checkpoint.path} {what} records that were read: the checkpoint is at "
            f"{self.checkpoint.next}, the safe LSN is {self.safe}, lost is {lost}",
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
        """Which histories a log has had; none before its first append."""
        return (await self._lineage(await self._context.number(log))).lineage

    async def check(self, checkpoint: Checkpoint) -> Checked:
        """Whether what was read still is the history; if not, how far back it is, and what is lost.

        UnavailableError if that cannot be told yet: nodes are away that may hold what is missed.
        """
        log = await self._present(checkpoint)
        for _ in range(_LOOKS_MAX):
            answer = await self._lineage(log)
            lost = await self._lost(checkpoint, log, answer.lineage)
            # L36: it was one history that we saw.
            if not lost or (await self._lineage(log)).lineage.version == answer.lineage.version:
                return Checked(
                    checkpoint=checkpoint,
                    log=log,
                    lineage=answer.lineage.shown,
                    safe=lost[0].start if lost else checkpoint.next,
                    # Of a newer epoch nothing is released before this one is clean.
                    epoch=Epoch(answer.last_clean + 1),
                    lost=lost,
                )
        raise UnavailableError("the log keeps branching while it is looked at", log=log)

    async def guard(self, request: ReadRequest, *, lineage: str, is_checked: bool) -> LineageGuard:
        """What watches over a reader that is about to be opened."""
        path = (await self._context.directory.find(int(request.log))).path
        known = None if lineage == NEWEST else lineage
        # Who was checked elsewhere answers for what it reads itself.
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
            return (doubtful,)  # L26, L35: there is nothing to compare it with
        return await self._compare(checkpoint, doubtful)

    async def _present(self, checkpoint: Checkpoint) -> LogId:
        """The log of the checkpoint; the one that has its name now if it was removed."""
        try:
            await self._context.directory.find(int(checkpoint.log), fresh=True)
            return checkpoint.log
        except UnknownLogError:
            return await self._context.number(checkpoint.path)

    async def _compare(self, checkpoint: Checkpoint, part: LsnRange) -> tuple[LsnRange, ...]:
        """L34: what of this part the log has lost, by reading it."""
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
                    f"it cannot be told whether {checkpoint.path} has lost something: its read stands still "
                    f"at {health.head}, waiting for {health.waiting_for}",
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
    """L33: watches over a reader whose positions are kept. Lives with the reader."""

    def __init__(self, check: Check, checkpoint: Checkpoint, *, is_checked: bool = False) -> None:
        self._check = check
        self._checkpoint = checkpoint
        # Up to which epoch what arrives is of a history that was looked at. Who was checked elsewhere, up to
        # its position, need not be again before that history can have ended.
        self._epoch = checkpoint.next.epoch if is_checked else Epoch(-1)

    @property
    def id(self) -> int:
        """What START carries; 0 as long as the log has no lineage."""
        return _known(self._checkpoint)

    def checkpoint(self, next: Lsn) -> Checkpoint:
        return replace(self._checkpoint, next=next)

    def is_due(self, lsn: Lsn) -> bool:
        """Whether this may be of a history that was not looked at."""
        return lsn.epoch > self._epoch

    async def poll(self, position: Lsn, arrived: Lsn) -> bool:
        """RollbackError if what was read below the position is gone; True if the history is another."""
        before = self._checkpoint.lineage
        checked = await self._check(self.checkpoint(position))
        if checked.is_rollback:
            raise checked.error()
        self._epoch = Epoch(max(checked.epoch, arrived.epoch))
        self._checkpoint = replace(self._checkpoint, lineage=checked.lineage)
        return checked.lineage != before
