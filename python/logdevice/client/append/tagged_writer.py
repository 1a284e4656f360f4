"""A named writer: each of its records is in the log once and, in a log of strict order, in order.

It is the shell of a forward table: it sends what the table orders, finds the sequencer, and keeps the journal
if there is one. If a sequencer dies, records are sent again until the log has them. The writer gives up only
if no record gets through for `writer_stall_timeout_ms`, or if another process takes over the name; the next
process then resolves what is in the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from crc32c import crc32c

from logdevice.client.append.appending import Appending, refusal
from logdevice.client.append.pending import PendingAppends, StallWatch
from logdevice.client.append.writer_journal import Kept
from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.errors import LocalProtocolError, LogDeviceError, OutcomeUnknownError, UnknownLogError
from logdevice.protocol.cluster.routing import SequencerFound
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.service import NextIncarnation
from logdevice.protocol.messages.write import Append, Appended, GetWriter
from logdevice.protocol.writers import forward_table as forwarding
from logdevice.protocol.writers.forward_table import STORED, ForwardTable, WriterIdentity
from logdevice.records.writer_tags import writer_number
from logdevice.runtime.clock import monotonic_ms
from logdevice.runtime.host import Host
from logdevice.runtime.tasks import Tasks
from logdevice.settings import ClientSettings
from logdevice.types import LogId, Lsn

_FIRST_SEQ = 1


class TaggedWriter:
    """A named writer. `is_ordered`: whether appends stay in order; None: as the log's `writer_order` says."""

    def __init__(
        self,
        name: str,
        log: LogRef,
        context: ClientContext,
        appending: Appending,
        settings: ClientSettings,
        journal: Path | None = None,
        *,
        is_ordered: bool | None = None,
    ) -> None:
        self.resumed = 0  # how many records of an earlier process had no known outcome
        self._name, self._log_ref = name, log
        self._context, self._appending, self._settings = context, appending, settings
        self._is_ordered = is_ordered
        self._log = LogId(0)
        self._host: Host[ForwardTable] | None = None
        self._opening = asyncio.Lock()
        self._pending = PendingAppends(journal)
        self._tasks = Tasks()
        self._stall = StallWatch(
            settings.writer_stall_timeout_ms,
            lambda: bool(self._pending) and not self._is_closed,
            self._on_stall,
        )
        self._failure: LogDeviceError | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Takes over the name from earlier processes, and sends again what they left in the journal. Once."""
        async with self._opening:
            if self._host is not None:
                return
            self._log = log = await self._context.number(self._log_ref)
            self._pending.open_journal(self._name, log, sync=self._settings.writer_journal_sync)
            incarnation = await self._next_incarnation()
            number = writer_number(self._name)
            status = await self._context.routing.ask(GetWriter(log, number, 0))
            # The log cannot have forgotten a name that was never used before.
            since = (await self._context.tail(log)).end.lsn if incarnation == 1 else Lsn(0)
            if self._is_ordered is None:
                attributes = await self._context.directory.attributes(log)
                self._is_ordered = attributes.writer_order == "strict"
            identity = WriterIdentity(
                log=log,
                writer=number,
                incarnation=incarnation,
                is_ordered=self._is_ordered,
                since=since,
            )
            first_seq = max(_FIRST_SEQ, status.next_seq, self._pending.next_seq)
            self._host = self._host_of(ForwardTable(identity, self._settings, first_seq))
            self._resume()

    def submit(self, body: bytes, entries: int, written_ms: int = 0) -> asyncio.Future[Lsn]:
        """Takes a record. The future gets its LSN once it is in the log.

        A record that is restored from a backup keeps its append time, `written_ms`.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_closed or self._host is None:
            raise LocalProtocolError("the writer is closed" if self._is_closed else "the writer is not open")
        return self._submit(Kept(0, entries, body), written_ms)

    async def settled(self) -> None:
        """Waits until everything is in the log. Raises the error if the writer has given up."""
        await self._pending.wait()
        if self._failure is not None and not self._is_closed:
            raise self._failure

    async def close(self) -> None:
        """Ends the writer. Records that are not in the log yet are given up, or left in the journal."""
        self._is_closed = True
        self._fail(OutcomeUnknownError("the writer was closed before the record was in the log"))
        self._stall.stop()
        await self._tasks.stop()
        self._pending.close()

    def _resume(self) -> None:
        kept = self._pending.left_open()
        self.resumed = len(kept)
        for each in kept:
            self._submit(each)

    def _submit(self, kept: Kept, written_ms: int = 0) -> asyncio.Future[Lsn]:
        was_idle = not self._pending
        id, future = self._pending.add(kept)
        if was_idle:
            self._stall.begin()
        body, entries = kept.body, kept.entries
        append = Append(log=self._log, body=body, crc=crc32c(body), entries=entries, written_ms=written_ms)
        asked: Asked[Append] = Asked(id, append)
        self._feed(asked if not kept.seq else forwarding.Resumed(id, append, kept.seq))
        return future

    def _host_of(self, table: ForwardTable) -> Host[ForwardTable]:
        on: dict[type[Any], Callable[[Any], None]] = {
            forwarding.Numbered: lambda effect: self._pending.number(effect.id, effect.seq),
            Ask: lambda effect: self._tasks.start(self._send(effect)),
            forwarding.FindAnotherSequencer: lambda effect: self._tasks.start(self._find(effect)),
            forwarding.RenewIncarnation: lambda _: self._tasks.start(self._renew()),
            Reply: lambda effect: self._resolve(effect.id, effect.answer),
            forwarding.GiveUp: lambda effect: self._fail(refusal(self._log, effect.appended)),
        }
        return Host(table, on, clock=monotonic_ms)

    def _feed(self, event: forwarding.Event) -> None:
        assert self._host is not None, "the writer is open"
        if self._failure is None:  # it may have been closed while it was being opened
            self._host.feed(event)

    def _resolve(self, id: int, appended: Appended) -> None:
        future = self._pending.take(id)
        self._stall.progress()
        if appended.status in STORED:
            self._appending.saw(self._log, appended.lsn)
            if not future.done():
                future.set_result(appended.lsn)
        elif not future.done():
            future.set_exception(refusal(self._log, appended))

    def _fail(self, problem: LogDeviceError) -> None:
        self._failure = self._failure or problem
        if self._host is not None:
            self._host.close()
        self._pending.fail(problem)

    def _on_stall(self) -> None:
        trouble = None if self._host is None else self._host.machine.trouble
        self._fail(
            OutcomeUnknownError(
                f"no record got into the log for {self._settings.writer_stall_timeout_ms} ms "
                f"({'no answer' if trouble is None else f'the last answer was {trouble.value}'})",
                log=self._log,
            )
        )

    async def _send(self, effect: Ask[Append]) -> None:
        context, node = self._context, effect.node
        append = replace(effect.request, clock_ms=context.clock.time_ms)
        try:
            appended = await context.nodes.ask(node, append, timeout_ms=self._settings.call_timeout_ms)
        except LogDeviceError as error:
            if isinstance(error, UnknownLogError):
                await self._look_for_log(error)
            self._feed(Lost(node, append, id=effect.id))
        else:
            context.clock.saw(appended.timestamp_ms)
            self._feed(Answered(node, appended, effect.id))

    async def _look_for_log(self, error: LogDeviceError) -> None:
        """Fails the writer if no node knows the log: it was removed. One node may just not know it yet."""
        try:
            await self._context.directory.find(self._log, fresh=True)
        except UnknownLogError:
            self._fail(error)
        except LogDeviceError:
            pass

    async def _find(self, effect: forwarding.FindAnotherSequencer) -> None:
        routing = self._context.routing
        if effect.doubted is not None:
            routing.known.forget(self._log, effect.doubted)
        try:
            found = await routing.sequencer(self._log)
        except LogDeviceError:
            found = None
        self._feed(SequencerFound(found))

    async def _renew(self) -> None:
        while True:
            try:
                incarnation = await self._next_incarnation()
            except LogDeviceError:
                await asyncio.sleep(self._settings.writer_pause_ms_max / 1000)
            else:
                self._feed(forwarding.IncarnationRenewed(incarnation))
                return

    async def _next_incarnation(self) -> int:
        answer = await self._context.nodes.call_any(NextIncarnation(self._name))
        return answer.incarnation
