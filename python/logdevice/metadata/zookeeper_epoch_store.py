"""An epoch store in ZooKeeper, for a cluster of several machines.

A cell is the znode ROOT/GROUP/NAME; its data is a stamp and the value. A cell's version is the number of the
transaction that wrote it last (mzxid). This number grows over the whole store and is never reused, even if a
cell is removed and created again. Every write also touches the znode of its group in the same transaction, so
that a poll costs one small read. Connections and sessions are renewed automatically. Nothing here depends on
a session, so nothing is lost when a session ends.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgpack
from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RequestTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_digest_acl
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from logdevice.errors import (
    AccessError,
    LogDeviceError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    UnreadableMetadataError,
)
from logdevice.metadata.addresses import ZookeeperAddress
from logdevice.metadata.epoch_store import Cell, CellChanges, CellGroup, EpochStore, conflict
from logdevice.metadata.values import ABSENT, Version, Versioned
from logdevice.settings import MetadataSettings

Result = TypeVar("Result")

# Calls block. With several threads, one slow answer does not hold up the others.
THREADS: Final = 4
# Pauses are short, so that a store that is back is soon used again.
RECONNECT: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_jitter": 0.4, "max_delay": 1.0}
# The errors of a lost connection; the servers may have acted on the request or not.
LOST: Final = (
    ConnectionLoss,
    KazooTimeoutError,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)


@dataclass(frozen=True, slots=True)
class _Znode:
    """A znode as it was read. `value` is None for a cell that was removed."""

    stamp: bytes  # unique for each attempt to write
    value: bytes | None
    zxid: Version
    count: int  # the number of writes to this znode, which ZooKeeper itself compares


class ZookeeperEpochStore(EpochStore):
    """An epoch store in ZooKeeper; `open` opens it."""

    def __init__(self, client: KazooClient, address: ZookeeperAddress, settings: MetadataSettings) -> None:
        self._client = client
        self._root = address.root
        self._timeout_s = settings.zookeeper_timeout_ms / 1000
        self._executor = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="zookeeper-epoch-store")

    @classmethod
    async def open(cls, address: ZookeeperAddress, settings: MetadataSettings) -> ZookeeperEpochStore:
        """Connects, and makes the root and the groups if they do not exist.

        Raises MetadataUnavailableError if no server answers in time, and AccessError if the user may not use
        the root.
        """
        login = (address.user, address.password)
        client = KazooClient(
            hosts=address.servers,
            timeout=settings.zookeeper_session_timeout_ms / 1000,
            auth_data=[("digest", ":".join(login))] if address.user else None,
            default_acl=[make_digest_acl(*login, all=True)] if address.user else None,
            connection_retry=RECONNECT,
        )
        store = cls(client, address, settings)
        try:
            await store._run(store._start)
        except BaseException:
            await store.close()
            raise
        return store

    async def get(self, cell: Cell) -> Versioned[bytes] | None:
        found = await self._run(lambda: self._fetch(cell))
        return Versioned(found.value, found.zxid) if found and found.value is not None else None

    async def put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        return await self._run(lambda: self._put(cell, value, expected))

    async def names(self, group: CellGroup) -> list[str]:
        return await self._run(lambda: sorted(self._ask(self._client.get_children_async, self._path(group))))

    async def cell_changes(self, group: CellGroup, since: Version) -> CellChanges:
        return await self._run(lambda: self._cell_changes(group, since))

    async def close(self) -> None:
        await self._run(self._stop)
        self._executor.shutdown()

    async def _run(self, work: Callable[[], Result]) -> Result:
        def guarded() -> Result:
            try:
                return work()
            except NoAuthError as error:
                raise AccessError(f"ZooKeeper denies this user access to {self._root}") from error
            except (KazooException, KazooTimeoutError) as error:
                raise MetadataUnavailableError(f"ZooKeeper does not answer: {error!r}") from error

        return await asyncio.get_running_loop().run_in_executor(self._executor, guarded)

    def _start(self) -> None:
        self._client.start(timeout=self._timeout_s)
        for group in CellGroup:
            self._ask(self._client.ensure_path_async, self._path(group))

    def _stop(self) -> None:
        self._client.stop()
        self._client.close()

    def _put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        before = self._fetch(cell)
        version = before.zxid if before and before.value is not None else ABSENT
        if version != expected:
            raise conflict(cell, expected, version)
        stamp = uuid.uuid4().bytes
        try:
            return self._commit(cell, msgpack.packb([stamp, value]), before)
        except LOST as error:
            return self._find_out(cell, stamp, before, error)

    def _commit(self, cell: Cell, data: bytes, before: _Znode | None) -> Version:
        """Makes one attempt to write, and returns the new version: the number of the transaction."""
        transaction = self._client.transaction()
        if before is None:
            transaction.create(self._path(cell.group, cell.name), data)
        else:
            transaction.set_data(self._path(cell.group, cell.name), data, version=before.count)
        transaction.set_data(self._path(cell.group), b"")
        results = transaction.commit_async().get(timeout=self._timeout_s)
        for result in results:
            if isinstance(result, BadVersionError | NodeExistsError):
                raise conflict(cell, before.zxid if before else ABSENT, self._version(cell)) from result
            # The other two errors only say that another operation of the transaction failed.
            if isinstance(result, Exception) and not isinstance(
                result, RolledBackError | RuntimeInconsistency
            ):
                raise result
        return Version(results[-1].mzxid)

    def _find_out(self, cell: Cell, stamp: bytes, before: _Znode | None, lost: Exception) -> Version:
        """Finds out whether a write that got no answer was made, and returns its version if so.

        ZooKeeper processes the requests of a session in order, also if the session moves to another server.
        So once a later read is answered, the write has been made or never will be.
        """
        try:
            found = self._fetch(cell)
        except (*LOST, LogDeviceError):
            raise MetadataOutcomeUnknownError(f"a change of {cell} got no answer: {lost!r}") from lost
        if found and found.stamp == stamp:
            return found.zxid
        if (found and found.zxid) == (before and before.zxid):
            raise MetadataUnavailableError(f"a change of {cell} was not made: {lost!r}") from lost
        # Another process has written since: before this write, or over it.
        raise MetadataOutcomeUnknownError(
            f"a change of {cell} got no answer, and another process has changed it since: {lost!r}"
        ) from lost

    def _fetch(self, cell: Cell) -> _Znode | None:
        # Without the sync, a server that lags behind could answer with an old value.
        self._ask(self._client.sync_async, self._root)
        try:
            data, stat = self._ask(self._client.get_async, self._path(cell.group, cell.name))
        except NoNodeError:
            return None
        try:
            stamp, value = msgpack.unpackb(data)
        except Exception as error:  # msgpack raises many kinds for damaged bytes
            raise UnreadableMetadataError(f"{cell} is damaged: {error!r}") from None
        return _Znode(stamp, value, Version(stat.mzxid), stat.version)

    def _version(self, cell: Cell) -> Version:
        found = self._fetch(cell)
        return found.zxid if found and found.value is not None else ABSENT

    def _cell_changes(self, group: CellGroup, since: Version) -> CellChanges:
        self._ask(self._client.sync_async, self._root)
        # In this order, so that a write after the group was read is found the next time.
        version = Version(self._ask(self._client.get_async, self._path(group))[1].mzxid)
        if version <= since:
            return CellChanges(since, ())
        names = sorted(self._ask(self._client.get_children_async, self._path(group)))
        stats = [self._ask(self._client.exists_async, self._path(group, name)) for name in names]
        changed = [name for name, stat in zip(names, stats, strict=True) if stat and stat.mzxid > since]
        return CellChanges(version, tuple(changed))

    def _ask(self, request: Callable[..., Any], path: str) -> Any:
        """The answer to a request that may be repeated; it is sent again after a lost connection."""
        retrying = Retrying(
            retry=retry_if_exception_type(LOST),
            stop=stop_after_delay(self._timeout_s),
            wait=wait_random(0.01, 0.05),
            reraise=True,
        )
        return retrying(lambda: request(path).get(timeout=self._timeout_s))

    def _path(self, group: CellGroup, name: str = "") -> str:
        return f"{self._root}/{group.value}/{name}".rstrip("/")
