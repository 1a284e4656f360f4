"""The calls of a client about cuts over several logs.

They ask all logs at the same time what `protocol/cut.py` needs, and keep cuts under names. Rules T20 to T24
are in docs/protocol/barriers.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from logdevice.client.context import ClientContext, chosen
from logdevice.client.directory import LogRef
from logdevice.client.read.lineages import Lineages
from logdevice.cuts import Cut, CutEnd, CutKind, check_cut_name
from logdevice.errors import ClockAheadError, InvalidArgumentError, NoSequencerError
from logdevice.protocol.cut import CutFailed, CutFound, CutRefused, CutTaking, Outcome
from logdevice.protocol.lineage import shown_id
from logdevice.protocol.messages.service import GetCuts, KeepCut, RemoveCut
from logdevice.protocol.messages.write import Barrier, BarrierIs, GetTail, Tail
from logdevice.types import LogId

# An attempt fails only if a sequencer is replaced during it: ten failures in a row are no coincidence.
ATTEMPTS_MAX: Final = 10


class Cuts:
    def __init__(self, context: ClientContext, lineages: Lineages) -> None:
        self._context, self._lineages = context, lineages

    async def barrier(
        self, logs: Iterable[LogRef], kind: str | CutKind = CutKind.FRESH, *, cookie: str = ""
    ) -> Cut:
        """Takes a cut: a position in each of these logs, up to which everything can be read.

        A `fresh` cut has everything that was acknowledged before this call. A `consistent` cut also has, for
        every record in it, all that the record's writer had read or written before. `cookie` is any text; the
        cut carries it.

        InvalidArgumentError if no log is given; UnknownLogError if there is no such log; ClockAheadError if
        the clocks of the logs' sequencers are too far apart; NoSequencerError if a log has none in time.
        """
        wanted = chosen(CutKind, "kind", kind)
        paths = await self._paths(logs)
        found = await self._take(list(paths), wanted)
        self._context.clock.saw(found.time_ms)
        ends = (
            CutEnd(
                log=log,
                path=path,
                end=answer.end.lsn,
                entry_end=answer.end.entry_end,
                byte_end=answer.end.byte_end,
            )
            for (log, path), answer in zip(paths.items(), found.ends, strict=True)
        )
        return Cut(kind=wanted, time_ms=found.time_ms, ends=tuple(ends), cookie=cookie)

    async def create_cut(
        self, name: str, logs: Iterable[LogRef], kind: str | CutKind = CutKind.CONSISTENT
    ) -> Cut:
        """Takes a cut as `barrier` does, and has the cluster keep it under a name until `remove_cut`.

        The cut's cookie is the name, and its ends say which history of each log they belong to. A cut does
        not protect records from being trimmed. InvalidArgumentError if the name is not allowed;
        OutOfRangeError if the cluster already keeps as many cuts as it may.
        """
        cut = await self.barrier(logs, kind, cookie=check_cut_name(name))
        lineages = await asyncio.gather(*(self._lineages.lineage(end.log) for end in cut.ends))
        ends = [
            replace(end, lineage=shown_id(lineage.id) if lineage.id else None)
            for end, lineage in zip(cut.ends, lineages, strict=True)
        ]
        cut = replace(cut, ends=tuple(ends))
        await self._context.nodes.call_any(KeepCut(cut))
        return cut

    async def cuts(self) -> tuple[Cut, ...]:
        """All named cuts of the cluster, in the order of their names."""
        return (await self._context.nodes.call_any(GetCuts(""))).cuts

    async def cut(self, name: str) -> Cut:
        """The cut with this name. InvalidArgumentError if there is none."""
        found = (await self._context.nodes.call_any(GetCuts(check_cut_name(name)))).cuts
        if not found:
            raise InvalidArgumentError(f"there is no cut {name!r}; `logdevice cuts list` shows all")
        return found[0]

    async def remove_cut(self, name: str) -> None:
        """Removes a named cut from the cluster."""
        await self._context.nodes.call_any(RemoveCut(check_cut_name(name)))

    async def _paths(self, logs: Iterable[LogRef]) -> dict[LogId, str]:
        if isinstance(logs, str):
            raise InvalidArgumentError(f"logs must be a list of logs, got the string {logs!r}")
        found = await asyncio.gather(*map(self._context.directory.find, logs))
        if not found:
            raise InvalidArgumentError("a cut needs at least one log, got none")
        return {view.log: view.path for view in found if view.log is not None}

    async def _take(self, logs: list[LogId], kind: CutKind) -> CutFound:
        taking = CutTaking(
            logs,
            is_consistent=kind is CutKind.CONSISTENT,
            seen_ms=self._context.clock.time_ms,
            attempts_max=ATTEMPTS_MAX,
        )
        outcome: Outcome | None = None
        while outcome is None:
            outcome = taking.answered(await asyncio.gather(*map(self._answer, taking.questions())))
        match outcome:
            case CutFound():
                return outcome
            case CutRefused():
                raise ClockAheadError(
                    f"one of the logs has reached the time {outcome.time_ms}, which is too far ahead of the "
                    f"clock of this log's sequencer, {outcome.answer.clock_ms}",
                    log=outcome.log,
                )
            case CutFailed():
                raise NoSequencerError(
                    f"no consistent cut in {ATTEMPTS_MAX} attempts: sequencers "
                    "are being replaced, or their clocks drift apart"
                )

    async def _answer(self, question: GetTail | Barrier) -> Tail | BarrierIs:
        return await self._context.routing.ask(question)
