"""Cuts over several logs: a part of the client.

Asks what `protocol/cutting.py` wants to know, of all logs at the same time, and keeps cuts under names.
Rules T20 to T24 are in docs/protocol/barriers.md.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace

from logdevice.client.clock import SeenClock
from logdevice.client.config import ClientConfig
from logdevice.client.directory import Directory, LogRef
from logdevice.client.nodes import Nodes
from logdevice.client.routing import Routing
from logdevice.cuts import Cut, CutEnd, CutKind, check_cut_name
from logdevice.errors import ClockAheadError, InvalidArgumentError, NoSequencerError
from logdevice.protocol.cutting import CutFailed, CutFound, CutRefused, CutTaking, Outcome
from logdevice.protocol.lineage import Lineage, shown_id
from logdevice.protocol.write_messages import Barrier, BarrierIs, GetTail, Tail
from logdevice.types import LogId
from logdevice.wire.cut_messages import CutsAre, GetCuts, KeepCut, RemoveCut
from logdevice.wire.service_messages import Done


class BarrierOperations(ABC):
    _directory: Directory
    _routing: Routing
    _nodes: Nodes
    _clock: SeenClock
    config: ClientConfig

    @abstractmethod
    async def lineage(self, log: LogRef) -> Lineage: ...

    @property
    def clock_ms(self) -> int:
        """The highest time this client has seen, to be carried to another one by `saw`."""
        return self._clock.time_ms

    def saw(self, clock_ms: int) -> None:
        """What this client appends from now on is not older than this: the `clock_ms` of another client,
        whose knowledge came here by some other way than a log.
        """
        self._clock.saw(clock_ms)

    async def barrier(
        self, logs: Iterable[LogRef], kind: str | CutKind = CutKind.FRESH, *, cookie: str = ""
    ) -> Cut:
        """Where several logs stand now. `fresh` has everything that was acknowledged before this was called;
        `consistent` also has, for everything in it, everything that caused it. All of it can be read.
        """
        wanted = _kind(kind)
        paths = await self._paths(logs)
        found = await self._take(list(paths), wanted)
        self._clock.saw(found.time_ms)
        ends = (
            CutEnd(
                log=answer.log,
                path=paths[answer.log],
                end=answer.end,
                entry_end=answer.entry_end,
                byte_end=answer.byte_end,
            )
            for answer in found.ends
        )
        return Cut(kind=wanted, time_ms=found.time_ms, ends=tuple(ends), cookie=cookie)

    async def create_cut(
        self, name: str, logs: Iterable[LogRef], kind: str | CutKind = CutKind.CONSISTENT
    ) -> Cut:
        """A cut that the cluster keeps under a name, until it is removed."""
        cut = await self.barrier(logs, kind, cookie=check_cut_name(name))
        lineages = await asyncio.gather(*(self.lineage(end.log) for end in cut.ends))
        ends = [
            replace(end, lineage=shown_id(lineage.id) if lineage.id else None)
            for end, lineage in zip(cut.ends, lineages, strict=True)
        ]
        cut = replace(cut, ends=tuple(ends))
        await self._nodes.call_any(KeepCut(cut), Done)
        return cut

    async def cuts(self) -> tuple[Cut, ...]:
        """The cuts that have a name, by name."""
        return (await self._nodes.call_any(GetCuts(""), CutsAre)).cuts

    async def cut(self, name: str) -> Cut:
        found = (await self._nodes.call_any(GetCuts(check_cut_name(name)), CutsAre)).cuts
        if not found:
            raise InvalidArgumentError(f"there is no cut {name!r}; `logdevice cuts list` shows all")
        return found[0]

    async def remove_cut(self, name: str) -> None:
        await self._nodes.call_any(RemoveCut(check_cut_name(name)), Done)

    async def _paths(self, logs: Iterable[LogRef]) -> dict[LogId, str]:
        if isinstance(logs, str):
            raise InvalidArgumentError(f"logs must be a list of logs, got the text {logs!r}")
        found = await asyncio.gather(*map(self._directory.find, logs))
        if not found:
            raise InvalidArgumentError("a cut is over at least one log, got none")
        return {view.log: view.path for view in found if view.log is not None}

    async def _take(self, logs: list[LogId], kind: CutKind) -> CutFound:
        taking = CutTaking(
            logs,
            is_consistent=kind is CutKind.CONSISTENT,
            seen_ms=self._clock.time_ms,
            attempts_max=self.config.client.barrier_attempts_max,
        )
        outcome: Outcome | None = None
        while outcome is None:
            outcome = taking.answered(await asyncio.gather(*map(self._answer, taking.questions())))
        match outcome:
            case CutFound():
                return outcome
            case CutRefused():
                raise ClockAheadError(
                    f"time {outcome.time_ms}, which one of the logs has reached, is too far ahead of the "
                    f"clock of this log's sequencer, {outcome.answer.clock_ms}",
                    log=outcome.answer.log,
                )
            case CutFailed():
                raise NoSequencerError(
                    f"no consistent cut in {self.config.client.barrier_attempts_max} attempts: sequencers "
                    "are being replaced, or their clocks run away from each other"
                )

    async def _answer(self, question: GetTail | Barrier) -> Tail | BarrierIs:
        if isinstance(question, Barrier):
            return await self._routing.barrier(question)
        return await self._routing.tail(question.log, confirm=question.confirm)


def _kind(kind: str | CutKind) -> CutKind:
    try:
        return CutKind(kind)
    except ValueError:
        allowed = " or ".join(one.value for one in CutKind)
        raise InvalidArgumentError(f"kind must be {allowed}, got {kind!r}") from None
