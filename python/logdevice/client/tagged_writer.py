"""A writer with a name: its records are in the log once and, in a log of strict order, in their order.

The shell of a forward table: sends what it orders, finds the sequencer, keeps the journal if there is one.
Lives from `open` to `close`, in one event loop. Nothing fails because a sequencer dies: records are sent
again until the log has them. Only when nothing got through for a long time, or another process has taken
over the name, are they given up; what is in the journal is then for the next process to resolve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from logdevice.client.appending import Appending, refusal
from logdevice.client.directory import Directory, LogRef, attribute
from logdevice.client.nodes import Nodes, now_ms
from logdevice.client.routing import Routing
from logdevice.client.writer_journal import Kept, WriterJournal
from logdevice.client_settings import ClientSettings
from logdevice.errors import LocalProtocolError, LogDeviceError, OutcomeUnknownError, UnknownLogError
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Appended
from logdevice.protocol.writers import forward_events as forwarding
from logdevice.protocol.writers.forward_events import ForwardLimits, WriterIdentity
from logdevice.protocol.writers.forward_table import ForwardTable
from logdevice.types import LogId, Lsn
from logdevice.wire.service_messages import IncarnationIs, NextIncarnation
from logdevice.writer_tags import writer_number

_FIRST_SEQ = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterServices:
    nodes: Nodes
    routing: Routing
    appending: Appending
    directory: Directory
    settings: ClientSettings


class TaggedWriter:
    """`is_ordered`: whether appends stay in order; None: as the log's attribute says."""

    def __init__(
        self,
        name: str,
        log: LogRef,
        services: WriterServices,
        journal: Path | None = None,
        *,
        is_ordered: bool | None = None,
    ) -> None:
        self.resumed = 0  # records of an earlier process whose outcome was not known
        self._name, self._log_ref, self._services, self._journal_path = name, log, services, journal
        self._number = writer_number(name)
        self._is_ordered = is_ordered
        self._log = LogId(0)
        self._journal: WriterJournal | None = None
        self._table: ForwardTable | None = None
        self._opening = asyncio.Lock()
        self._records: dict[int, tuple[Kept, asyncio.Future[Lsn]]] = {}  # by ticket; numbered or not
        self._tickets = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._progress_ms = 0
        self._failure: LogDeviceError | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Takes the name over from earlier processes, and goes on with what they left open. Once."""
        async with self._opening:
            if self._table is not None:
                return
            view = await self._services.directory.find(self._log_ref)
            assert view.log is not None, "find() returns logs"
            self._log = view.log
            if self._journal_path is not None and self._journal is None:
                sync = self._services.settings.writer_journal_sync
                self._journal = WriterJournal(self._journal_path, self._name, view.log, sync=sync)
            incarnation = await self._next_incarnation()
            status = await self._services.appending.status(view.log, self._number, 0)
            # A name that nobody had before cannot have been forgotten.
            since = (await self._services.routing.tail(view.log)).next if incarnation == 1 else Lsn(0)
            if self._is_ordered is None:
                self._is_ordered = attribute(view, "writer_order", "strict") == "strict"
            identity = WriterIdentity(
                log=view.log,
                writer=self._number,
                incarnation=incarnation,
                is_ordered=self._is_ordered,
                since=since,
            )
            kept_next = 0 if self._journal is None else self._journal.next_seq
            first_seq = max(_FIRST_SEQ, status.next_seq, kept_next)
            self._table = ForwardTable(identity, self._limits(), first_seq)
            self._resume()

    def submit(self, body: bytes, entries: int, written_ms: int = 0) -> asyncio.Future[Lsn]:
        """Takes a record; the future tells where it is, once it is in the log. One that is restored has the
        time `written_ms`.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_closed or self._table is None:
            raise LocalProtocolError("the writer is closed" if self._is_closed else "the writer is not open")
        return self._submit(Kept(0, entries, body), None, written_ms)

    async def settled(self) -> None:
        """Returns once everything is in the log; raises what prevents that."""
        futures = [future for _, future in self._records.values()]
        if futures:
            await asyncio.wait(futures)
        if self._failure is not None and not self._is_closed:
            raise self._failure

    async def close(self) -> None:
        """What is not in the log by now is given up, or left to the journal."""
        self._is_closed = True
        self._fail(OutcomeUnknownError("the writer was closed before the record was in the log"))
        for handle in (self._alarm, self._watch):
            if handle is not None:
                handle.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _limits(self) -> ForwardLimits:
        settings = self._services.settings
        return ForwardLimits(
            window_max=settings.writer_window,
            resend_ms_min=min(settings.resend_timeout_ms, settings.attempt_timeout_ms),
            resend_ms_max=settings.attempt_timeout_ms,
            pause_ms_min=settings.retry_pause_ms_min,
            pause_ms_max=settings.writer_pause_ms_max,
        )

    def _resume(self) -> None:
        kept = [] if self._journal is None else list(self._journal.open.values())
        self.resumed = len(kept)
        for each in sorted(kept):
            self._submit(each, each.seq)

    def _submit(self, kept: Kept, seq: int | None, written_ms: int = 0) -> asyncio.Future[Lsn]:
        self._tickets += 1
        future: asyncio.Future[Lsn] = asyncio.get_running_loop().create_future()
        was_idle = not self._records
        self._records[self._tickets] = kept, future
        if was_idle:
            self._progress_ms = now_ms()
            self._keep_watch()
        self._feed(forwarding.Submitted(self._tickets, kept.body, kept.entries, seq, written_ms))
        return future

    def _feed(self, event: forwarding.Event) -> None:
        assert self._table is not None, "the writer is open"
        for effect in self._table.handle(event, now_ms()) if self._failure is None else ():
            self._perform(effect)

    def _perform(self, effect: forwarding.Effect) -> None:
        match effect:
            case forwarding.Numbered():
                self._keep(effect.ticket, effect.seq)
            case forwarding.SendAppend():
                self._run(self._send(effect))
            case forwarding.FindSequencer():
                self._run(self._find(effect))
            case forwarding.RenewIncarnation():
                self._run(self._renew())
            case forwarding.Settle():
                self._settle(effect.ticket, effect.lsn)
            case forwarding.Refuse():
                self._settle(effect.ticket, refusal(self._log, effect.appended))
            case forwarding.GiveUp():
                self._fail(refusal(self._log, effect.appended))
            case WakeAt():
                self._set_alarm(effect.time_ms)

    def _keep(self, ticket: int, seq: int) -> None:
        kept, future = self._records[ticket]
        if kept.seq != seq:
            self._records[ticket] = kept._replace(seq=seq), future
            if self._journal is not None:
                self._journal.add(kept._replace(seq=seq))
                self._journal.settle(kept.seq)  # under the number it had before it is not sent again

    def _settle(self, ticket: int, outcome: Lsn | LogDeviceError) -> None:
        kept, future = self._records.pop(ticket)
        self._progress_ms = now_ms()
        if self._journal is not None:
            self._journal.settle(kept.seq)
        if isinstance(outcome, Lsn):
            self._services.appending.saw(self._log, outcome)
        if future.done():
            return
        if isinstance(outcome, Lsn):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    def _fail(self, problem: LogDeviceError) -> None:
        records, self._records = self._records, {}
        self._failure = self._failure or problem
        for _, future in records.values():
            if not future.done():
                future.set_exception(problem)
                future.exception()  # whoever does not ask is told by `settled`

    def _set_alarm(self, time_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        delay = max(0, time_ms - now_ms()) / 1000
        self._alarm = asyncio.get_running_loop().call_later(delay, lambda: self._feed(Woken()))

    def _keep_watch(self) -> None:
        """Gives up when nothing has got through for too long."""
        patience_ms = self._services.settings.writer_stall_timeout_ms
        left_ms = self._progress_ms + patience_ms - now_ms()
        if not self._records or self._is_closed:
            return
        if left_ms <= 0:
            trouble = None if self._table is None else self._table.trouble
            self._fail(
                OutcomeUnknownError(
                    f"nothing got into the log for {patience_ms} ms (the last answer was "
                    f"{'silence' if trouble is None else trouble.value})",
                    log=self._log,
                )
            )
            return
        if self._watch is not None:
            self._watch.cancel()
        self._watch = asyncio.get_running_loop().call_later(left_ms / 1000, self._keep_watch)

    async def _send(self, effect: forwarding.SendAppend) -> None:
        services = self._services
        append = replace(effect.append, clock_ms=services.appending.clock.time_ms)
        try:
            appended = await services.nodes.ask(
                effect.node, append, Appended, timeout_ms=services.settings.call_timeout_ms
            )
        except UnknownLogError as error:
            await self._look_for_log(error)
            self._feed(forwarding.AnswerLost(effect.seq, effect.send_id))
        except LogDeviceError:
            self._feed(forwarding.AnswerLost(effect.seq, effect.send_id))
        else:
            services.appending.clock.saw(appended.timestamp_ms)
            self._feed(forwarding.AnswerReceived(effect.seq, effect.send_id, appended))

    async def _look_for_log(self, error: LogDeviceError) -> None:
        """A node may not have heard of the log yet; if nobody has it, it was removed."""
        try:
            await self._services.directory.find(self._log, fresh=True)
        except UnknownLogError:
            self._fail(error)
        except LogDeviceError:
            pass

    async def _find(self, effect: forwarding.FindSequencer) -> None:
        routing = self._services.routing
        if effect.doubted is not None:
            routing.forget(self._log, effect.doubted)
        try:
            found = await routing.sequencer(self._log)
        except LogDeviceError:
            self._feed(forwarding.SequencerFound(None))
        else:
            self._feed(forwarding.SequencerFound(found))

    async def _renew(self) -> None:
        while True:
            try:
                incarnation = await self._next_incarnation()
            except LogDeviceError:
                await asyncio.sleep(self._services.settings.writer_pause_ms_max / 1000)
            else:
                self._feed(forwarding.IncarnationRenewed(incarnation))
                return

    async def _next_incarnation(self) -> int:
        answer = await self._services.nodes.call_any(NextIncarnation(self._name), IncarnationIs)
        return answer.incarnation

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
