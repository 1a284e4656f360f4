"""A storage node's part in rebuilding: as a donor it copies what it has to, as a lost node it counts again.

Follows the event log. Whenever that says that there is (again) something to copy, every donor goes
through all logs from the beginning; what was done before is found done, so a crash or a change costs a
look at headers. Lives as long as the process; a rebuilding lives until the event log moves on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from logdevice.errors import LogDeviceError, UnavailableError, UnknownLogError
from logdevice.metadata.epoch_store import EpochStore
from logdevice.node.clock import now_ms
from logdevice.node.configuration import Configuration
from logdevice.node.log_host import Logs
from logdevice.node.metadata_log import History, MetadataLog, is_metadata_log
from logdevice.node.metrics import Metrics
from logdevice.node.peers import Peers
from logdevice.node.rebuild_host import RebuildHost
from logdevice.node.statuses import Statuses
from logdevice.protocol.copy_budget import CopyBudget
from logdevice.protocol.epoch_state import metadata_of
from logdevice.protocol.node_status import CaseMode, EventKind, NodeEvents
from logdevice.protocol.placement import owner_of
from logdevice.protocol.rebuilding import EndRebuilding, RebuildTask
from logdevice.protocol.rebuilding_plan import Losses, MovePlan
from logdevice.protocol.store_read import ReadFailed
from logdevice.protocol.store_write import DeleteRecords, Persist, Persisted, PersistFailed
from logdevice.protocol.write_messages import AppendStatus, GetTail, Release, Seal, Tail, Trim
from logdevice.rebuild_settings import RebuildSettings
from logdevice.storage.log_store import LogStore
from logdevice.types import LSN_MAX, Epoch, LogId, Lsn, NodeId, Record, RecordFlags

_logger = logging.getLogger(__name__)
_DRAINED = int(RecordFlags.DRAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildParts:
    """Whom rebuilding asks and tells."""

    me: NodeId
    logs: Logs
    peers: Peers
    store: EpochStore
    configuration: Configuration
    statuses: Statuses
    metadata_log: MetadataLog
    is_alive: Callable[[NodeId], bool]
    metrics: Metrics
    settings: RebuildSettings


class Rebuilds:
    def __init__(self, parts: RebuildParts) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._budget = CopyBudget(parts.settings)
        self._version = -1  # of the rebuilding that is being worked on, or was last
        self._task: asyncio.Task[None] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._hosts: dict[LogId, RebuildHost] = {}
        self._sizes: dict[LogId, int] = {}  # of all logs of this rebuilding, in bytes of records
        self._left: set[LogId] = set()  # of these, those that are not done
        self._began_ms = 0
        self._ends: dict[LogId, Release] = {}  # P71, as far as known in this rebuilding, and from whom
        self._bytes_before = 0
        self._is_emptied = -1  # the rebuilding after which this node has thrown its copies away
        parts.metrics.rebuild_share.set_function(lambda: self.share)
        parts.metrics.rebuild_elapsed.set_function(lambda: self.elapsed_s)
        parts.metrics.rebuild_bytes.set_function(lambda: self.bytes_copied)

    @property
    def share(self) -> float:
        """How much of what this donor has to look at it has looked at; 1 if there is nothing to do."""
        if not self._left:
            return 1.0
        # A log without records is something to do, too.
        left = sum(self._sizes[log] + 1 for log in self._left)
        begun = sum(min(host.bytes_passed, self._sizes.get(log, 0)) for log, host in self._hosts.items())
        return 1 - (left - begun) / (sum(self._sizes.values()) + len(self._sizes))

    @property
    def elapsed_s(self) -> float:
        """For how long it has been at it; 0 if there is nothing to do."""
        return (now_ms() - self._began_ms) / 1000 if self._left else 0.0

    @property
    def bytes_copied(self) -> int:
        """Since the process began."""
        return self._bytes_before + sum(host.bytes_copied for host in self._hosts.values())

    def follow(self) -> None:
        """The event log has moved."""
        parts, events = self._parts, self._parts.statuses.events
        if events.rebuilding != self._version or not events.has_work:
            self._cancel()
        is_donor = parts.me not in events.lost
        has_done = parts.me in dict(events.done)
        if events.has_work and is_donor and not has_done and self._task is None:
            self._version = events.rebuilding
            self._task = asyncio.create_task(self._rebuild(events))
        if self._has_to_speak and self._returning is None:
            self._returning = asyncio.create_task(self._settle())

    @property
    def _has_to_speak(self) -> bool:
        """Whether others are done with this node's data, and wait for its word."""
        mine, events = self._parts.statuses.mine, self._parts.statuses.events
        if mine is None or mine.mode is CaseMode.CHECK:
            return False
        if mine.mode is CaseMode.DRAIN:
            return mine.is_ready and self._is_emptied != events.rebuilding
        return mine.is_settled and mine.is_ready

    async def close(self) -> None:
        tasks = [task for task in (self._task, self._returning) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._left.clear()

    # ---- as a donor ---------------------------------------------------------------------------------

    async def _rebuild(self, events: NodeEvents) -> None:
        parts = self._parts
        logs = sorted(parts.configuration.directory.logs().values())
        self._ends.clear()
        self._began_ms = now_ms()
        self._budget.look(parts.metrics.sent_to_readers(), now_ms())
        self._sizes = {log: await parts.logs.disk.ask(partial(_size, log)) for log in logs}
        self._left = set(logs)
        _logger.info("%s begins to copy what lost nodes held, version %s", parts.me, events.rebuilding)
        places = asyncio.Semaphore(self._settings.rebuild_logs_max)

        async def one(log: LogId) -> bool:
            async with places:
                is_authoritative = await self._until_done(log, events)
                self._left.discard(log)
                return is_authoritative

        results = await asyncio.gather(*(one(log) for log in logs))
        await self._persistently(
            lambda: parts.statuses.record(
                EventKind.DONE, version=events.rebuilding, is_authoritative=all(results)
            )
        )
        _logger.info("%s has copied what it had to, version %s", parts.me, events.rebuilding)

    async def _until_done(self, log: LogId, events: NodeEvents) -> bool:
        while True:
            try:
                self._parts.configuration.path(log)
                return await self._rebuild_log(log, events)
            except UnknownLogError:
                return True  # it was removed meanwhile
            except LogDeviceError as error:
                _logger.info("log %s cannot be copied now: %s", log, error)
            except Exception:
                _logger.exception("log %s could not be copied", log)
            await self._pause()

    async def _rebuild_log(self, log: LogId, events: NodeEvents) -> bool:
        """Whether nothing can have been lost."""
        parts, losses = self._parts, Losses.of(events)
        history = await self._history(log)
        if not any(losses.touches(entry) for entry in history):
            return True
        locations = parts.configuration.storage_nodes
        is_authoritative = not any(losses.may_hide(entry, locations) for entry in history)
        # Who stores none of its epochs has no copy, and hears of no release either.
        if not any(parts.me in entry.nodeset for entry in history):
            return is_authoritative
        if log not in self._ends:
            # Once: on a log that is written to, what is released never gets as far as a later answer.
            self._ends[log] = await self._end(log, history, losses)
        stored, released = parts.logs.host(log).stored, self._ends[log]
        end = released.end
        if stored.released_end < end:
            raise UnavailableError(f"it is released up to {stored.released_end} here, not to {end}", log=log)
        usable = frozenset(node for node in locations if parts.is_alive(node))
        if absent := losses.refilled - usable:
            raise UnavailableError(f"{min(absent)} is to get copies back and is not there", log=log)
        plans: dict[Epoch, MovePlan] = {}

        def plan_of(epoch: Epoch) -> MovePlan:
            entry = metadata_of(history, epoch)
            if entry.first_epoch not in plans:
                plans[entry.first_epoch] = MovePlan(parts.me, losses, entry, locations, usable)
            return plans[entry.first_epoch]

        self._tell_released(released, losses)
        task = RebuildTask(log, parts.me, events.rebuilding, stored.trim_end, end, losses)
        ended = await self._run_host(task, plan_of)
        if not ended.is_done:
            raise UnavailableError("something could not be read or stored; it is begun again", log=log)
        await self._trim_refilled(log, losses)
        is_leaving = any(case.mode is CaseMode.DRAIN for case in events.cases)
        if ended.short and is_leaving:
            raise UnavailableError(
                f"{ended.short} records would have too few copies without the nodes that are drained: the "
                "nodeset of their epoch is too small. Add nodes or trim the log",
                log=log,
            )
        return is_authoritative and not ended.unreadable

    async def _history(self, log: LogId) -> History:
        """All nodesets the log has had, the newest included, which may not be in the metadata log yet."""
        found = await self._parts.store.read(log)
        if found is None:
            return ()
        history, newest = await self._parts.metadata_log.history(log), found.value.metadata
        return history if newest in history else (*history, newest)

    async def _run_host(self, task: RebuildTask, plan_of: Callable[[Epoch], MovePlan]) -> EndRebuilding:
        disk = self._parts.logs.disk
        host = RebuildHost(
            task,
            self._settings,
            plan_of,
            disk,
            self._parts.peers,
            self._budget,
            self._parts.metrics.sent_to_readers,
        )
        self._hosts[task.log] = host
        started_ms = now_ms()
        try:
            return await host.run()
        finally:
            del self._hosts[task.log]
            self._bytes_before += host.bytes_copied
            self._parts.metrics.rebuild_seconds.inc((now_ms() - started_ms) / 1000)

    async def _end(self, log: LogId, history: History, losses: Losses) -> Release:
        """P71: nothing at or above it was or will be stored on a node that is gone. It is what the sequencer
        will release, or has.
        """
        parts = self._parts
        sequencers = parts.configuration.sequencer_nodes
        owner = owner_of(log, [node for node in sequencers if parts.is_alive(node)])
        if owner is None:
            raise UnavailableError("nobody numbers its records", log=log)
        tail = await parts.peers.request(owner, GetTail(log))
        if not isinstance(tail, Tail) or tail.status is not AppendStatus.OK:
            raise UnavailableError(f"{owner} does not number its records yet", log=log)
        if losses.gone & set(metadata_of(history, tail.next.epoch).nodeset):
            raise UnavailableError(f"epoch {tail.next.epoch} still counts on nodes that are gone", log=log)
        return Release(log, tail.next, owner)

    def _tell_released(self, release: Release, losses: Losses) -> None:
        """A node that lost everything takes copies once it knows that they are released (P67). The sequencer
        says so, too, when it repeats itself: this is sooner.
        """
        for node in sorted(losses.refilled):
            self._parts.peers.tell(node, release)

    async def _trim_refilled(self, log: LogId, losses: Losses) -> None:
        """A node that lost everything has lost the trim point, too."""
        trim_end = self._parts.logs.host(log).stored.trim_end
        if trim_end:
            for node in sorted(losses.refilled):
                await self._parts.peers.request(node, Trim(log, trim_end))

    # ---- as a node that was lost, or has left -------------------------------------------------------

    async def _settle(self) -> None:
        try:
            while self._has_to_speak:
                try:
                    await self._speak()
                except Exception:
                    # Nobody else would: the event log waits for this node.
                    _logger.exception("what follows from a rebuilding could not be done")
                    await self._pause()
        finally:
            self._returning = None

    async def _speak(self) -> None:
        parts = self._parts
        mine, version = parts.statuses.mine, parts.statuses.events.rebuilding
        if mine is not None and mine.mode is CaseMode.DRAIN:
            await self._leave(version, is_settled=mine.is_settled)
        elif parts.logs.has_metadata:
            await self._tell(EventKind.ACKNOWLEDGED, version)
            _logger.info("%s has its data back", parts.me)
        else:
            await self._pause()

    async def _leave(self, version: int, *, is_settled: bool) -> None:
        """P74: nothing more is taken; is there anything that nobody has copied?"""
        logs = {log: host for log, host in self._parts.logs.known().items() if not is_metadata_log(log)}
        if not is_settled:
            await asyncio.gather(*(host.answered() for host in logs.values()))
            for log in logs:
                if await self._parts.logs.disk.ask(partial(_has_undrained, self._parts.logs, log)):
                    await self._tell(EventKind.DRAIN, version)
                    return
            await self._tell(EventKind.ACKNOWLEDGED, version)
        elif self._is_emptied != version:
            for log in logs:
                done: asyncio.Future[Persisted | PersistFailed] = asyncio.get_running_loop().create_future()
                write = Persist(0, (DeleteRecords(log, Lsn(0), LSN_MAX),))
                self._parts.logs.disk.write(write, done.set_result)
                if isinstance(await done, PersistFailed):
                    raise UnavailableError("the copies of a drained node could not be removed", log=log)
            self._is_emptied = version
            _logger.info("%s is empty", self._parts.me)

    async def _tell(self, kind: EventKind, version: int) -> None:
        await self._persistently(lambda: self._parts.statuses.record(kind, version=version))

    async def _persistently(self, attempt: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await attempt()
                return
            except LogDeviceError as error:
                _logger.warning("the event log cannot be written: %s", error)
            except Exception:
                _logger.exception("the event log could not be written")
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(self._settings.rebuild_retry_ms / 1000)


def _size(log: LogId, store: LogStore) -> int:
    return store.size(log, Lsn(0), LSN_MAX)


def _has_undrained(logs: Logs, log: LogId, store: LogStore) -> bool:
    """P74: whether there is a copy that counts and is not marked as being elsewhere."""
    position = Lsn(0)
    while position < LSN_MAX:
        found = store.scan(logs.read_all(log, position, LSN_MAX, headers_only=True))
        if isinstance(found, ReadFailed):
            return True
        records = [item for item in found.items if isinstance(item, Record)]
        if any(logs.me in record.copyset and not record.flags & _DRAINED for record in records):
            return True
        position = found.next
    return False


async def seal_like_others(logs: Logs, store: EpochStore, all_logs: list[LogId]) -> None:
    """An empty disk has forgotten what was sealed: nothing more is taken for epochs that are over."""
    for log in all_logs:
        found = await store.read(log)
        if found is not None and found.value.epoch > 1:
            epoch = Epoch(found.value.epoch - 1)
            seal = Seal(log=log, epoch=epoch, sealed_by=found.value.owner, last_clean=epoch)
            await logs.answer(seal)
