"""A storage node's two parts in rebuilding: it is a donor, and it gets its own data back or gives it away.

Here are the shells of the two machines, which follow the event log, and the progress that operators see.
They live as long as the process.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from logdevice.errors import LogDeviceError, UnknownLogError
from logdevice.metadata.epoch_store import EpochStore
from logdevice.node.context import NodeContext
from logdevice.node.log_host import Logs
from logdevice.node.metrics import Metrics
from logdevice.protocol.cluster.placement import owner_of
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist
from logdevice.protocol.messages.write import Seal
from logdevice.protocol.metadata_log.entries import is_metadata_log
from logdevice.protocol.metadata_log.log import MetadataLogsAdopted
from logdevice.protocol.rebuilding.donor import Donor
from logdevice.protocol.rebuilding.donor_events import (
    AwaitQuiet,
    CopyingEnded,
    EventLogMoved,
    EventRecorded,
    LogSeen,
    LogSight,
    LookAtLog,
    PutOff,
    Quiet,
    RecordEvent,
)
from logdevice.protocol.rebuilding.own_data import OwnData
from logdevice.runtime.clock import wall_ms
from logdevice.runtime.host import Host
from logdevice.runtime.tasks import Tasks
from logdevice.storage.log_store import LogStore
from logdevice.types import LSN_MAX, Epoch, LogId, Lsn

_logger = logging.getLogger(__name__)


class Rebuilds:
    def __init__(self, node: NodeContext, logs: Logs) -> None:
        self._node = node
        self._logs = logs
        settings = node.settings.rebuild
        self._tasks = Tasks()
        self._donor = Host(
            Donor(node.id, settings, node.metrics.read.total_bytes),
            {
                LookAtLog: lambda effect: self._tasks.start(self._look_at(effect)),
                PutOff: self._note_put_off,
                CopyingEnded: lambda effect: node.metrics.rebuild.seconds.inc(effect.duration_ms / 1000),
                StoreRead: lambda read: logs.disk.read(read, self._donor.feed),
                RecordEvent: lambda effect: self._tasks.start(self._record(self._donor, effect)),
            },
            node.peers,
        )
        self._own_data = Host(
            OwnData(node.id, settings),
            {
                AwaitQuiet: lambda effect: self._tasks.start(self._await_quiet(effect)),
                StoreRead: lambda read: logs.disk.read(read, self._own_data.feed),
                Persist: lambda persist: logs.disk.write(persist, self._own_data.feed),
                RecordEvent: lambda effect: self._tasks.start(self._record(self._own_data, effect)),
            },
        )
        self._progress = _Progress(self._donor.machine, node.metrics)

    def follow(self) -> None:
        """Called when the event log has changed."""
        moved = EventLogMoved(
            self._node.event_log.events, tuple(sorted(self._node.cluster_view.directory.logs().values()))
        )
        for host in (self._donor, self._own_data):
            host.feed(moved)
        if self._progress.has_begun():
            self._tasks.start(self._measure())

    def metadata_adopted(self, *, is_enough: bool) -> None:
        self._own_data.feed(MetadataLogsAdopted(is_enough))

    async def close(self) -> None:
        for host in (self._donor, self._own_data):
            host.close()
        await self._tasks.stop()

    async def _look_at(self, effect: LookAtLog) -> None:
        sight: LogSight | None = None
        try:
            sight = await self._sight(effect.log)
        except LogDeviceError as error:
            _logger.info("the state of log %s cannot be read: %s", effect.log, error)
        except Exception:
            _logger.exception("the state of log %s could not be read", effect.log)
        self._donor.feed(LogSeen(effect.id, sight))

    async def _sight(self, log: LogId) -> LogSight:
        node, cluster = self._node, self._node.cluster_view
        found = await node.epoch_store.read(log) if self._is_there(log) else None
        history = () if found is None else await node.metadata_log.history(log)
        if found is not None and found.value.metadata not in history:
            history = (*history, found.value.metadata)  # it may not be in the metadata log yet
        # Read after the awaits, so it is current. No LogState is made for a log that has no epoch yet.
        stored = self._logs.host(log).stored if history else None
        is_alive = node.membership.is_alive
        return LogSight(
            history=history,
            epoch=Epoch(0) if found is None else found.value.epoch,
            released_end=Lsn(0) if stored is None else stored.released_end,
            trim_end=Lsn(0) if stored is None else stored.trim_end,
            locations=cluster.storage_nodes,
            alive=frozenset(filter(is_alive, cluster.storage_nodes)),
            owner=owner_of(log, filter(is_alive, cluster.sequencer_nodes)),
        )

    def _is_there(self, log: LogId) -> bool:
        try:
            self._node.cluster_view.path(log)
        except UnknownLogError:
            return False  # the log was removed meanwhile
        return True

    async def _record(self, host: Host[Donor] | Host[OwnData], effect: RecordEvent) -> None:
        event, is_done = effect.event, False
        try:
            await self._node.event_log.record(
                event.kind, version=event.version, is_authoritative=event.is_authoritative
            )
            is_done = True
            _logger.info("%s: %s, version %s", event.node, event.kind.value, event.version)
        except LogDeviceError as error:
            _logger.warning("the event log cannot be written: %s", error)
        except Exception:
            _logger.exception("the event log could not be written")
        host.feed(EventRecorded(event, is_done))

    async def _await_quiet(self, effect: AwaitQuiet) -> None:
        logs = {log: host for log, host in self._logs.known().items() if not is_metadata_log(log)}
        await asyncio.gather(*(host.answered() for host in logs.values()))
        self._own_data.feed(Quiet(effect.id, tuple(logs)))

    def _note_put_off(self, effect: PutOff) -> None:
        _logger.info("log %s cannot be copied now: %s", effect.log, effect.why)

    async def _measure(self) -> None:
        """Measures the logs of a rebuilding, so that operators can see which share of it is done."""
        for log in sorted(self._donor.machine.left):
            self._progress.sizes[log] = await self._logs.disk.ask(partial(_size, log))


class _Progress:
    """What operators see of a donor: its share done, and its elapsed time."""

    def __init__(self, donor: Donor, metrics: Metrics) -> None:
        self.sizes: dict[LogId, int] = {}  # of the logs of this rebuilding, in bytes of records
        self._donor = donor
        self._version: int | None = None
        self._began_ms = 0
        metrics.rebuild.share.set_function(lambda: self.share)
        metrics.rebuild.elapsed.set_function(lambda: self.elapsed_s)
        metrics.rebuild.bytes.set_function(lambda: donor.bytes_copied)

    def has_begun(self) -> bool:
        """Whether the donor has begun another rebuilding since the last call."""
        if self._donor.version is None or self._donor.version == self._version:
            return False
        self._version, self._began_ms = self._donor.version, wall_ms()
        self.sizes = dict.fromkeys(self._donor.left, 0)
        _logger.info("restores the copies of lost nodes, version %s", self._version)
        return True

    @property
    def share(self) -> float:
        """The share of its logs' bytes that this donor has gone through; 1 if there is nothing to do."""
        left = self._donor.left
        if not left:
            return 1.0
        # One more for each log, so that a log without records counts, too.
        size_left = sum(self.sizes[log] + 1 for log in left)
        begun = sum(min(self._donor.bytes_passed(log), self.sizes[log]) for log in left)
        return 1 - (size_left - begun) / (sum(self.sizes.values()) + len(self.sizes))

    @property
    def elapsed_s(self) -> float:
        """For how long the donor has worked on this rebuilding; 0 if there is nothing to do."""
        return (wall_ms() - self._began_ms) / 1000 if self._donor.left else 0.0


def _size(log: LogId, store: LogStore) -> int:
    return store.size(log, Lsn(0), LSN_MAX)


async def seal_like_others(logs: Logs, store: EpochStore, all_logs: list[LogId]) -> None:
    """Seals every earlier epoch again on a node with an empty disk, which has forgotten its seals."""
    for log in all_logs:
        found = await store.read(log)
        if found is not None and found.value.epoch > 1:
            epoch, owner = Epoch(found.value.epoch - 1), found.value.owner
            assert owner is not None, "an epoch that is stored has an owner"
            seal = Seal(log=log, epoch=epoch, sealed_by=owner, last_clean=epoch)
            await logs.answer(seal)
