"""The ZooKeeper store: lost connections, lost answers, servers that die, access rights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl

from logdevice.errors import (
    AccessError,
    ConflictError,
    LogDeviceError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    UnreadableMetadataError,
)
from logdevice.metadata.addresses import ZookeeperAddress, parse_address
from logdevice.metadata.tests.values_for_tests import LOG, epochs
from logdevice.metadata.tests.zookeeper_servers import Server, ensemble, free_ports, single_server
from logdevice.metadata.values import ABSENT, Version, Versioned
from logdevice.metadata.zookeeper_epoch_store import ZookeeperEpochStore
from logdevice.settings import MetadataSettings

SETTINGS = MetadataSettings()
IMPATIENT = MetadataSettings(zookeeper_timeout_ms=500)
Commit = Callable[[ZookeeperEpochStore, Any, bytes, Any], Version]


async def opened(address: str, settings: MetadataSettings = SETTINGS) -> ZookeeperEpochStore:
    parsed = parse_address(address)
    assert isinstance(parsed, ZookeeperAddress)
    return await ZookeeperEpochStore.open(parsed, settings)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may kill."""
    server = single_server(tmp_path)
    try:
        server.start()
        server.wait_until_it_serves()
        yield server
    finally:
        server.kill()


@pytest.fixture
def three_servers(tmp_path: Path) -> Iterator[list[Server]]:
    servers = ensemble(tmp_path)
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait_until_it_serves()
        yield servers
    finally:
        for server in servers:
            server.kill()


async def test_an_address_without_a_server_is_reported_in_time() -> None:
    with pytest.raises(MetadataUnavailableError, match="ZooKeeper does not answer"):
        await opened(f"zookeeper://127.0.0.1:{free_ports(1)[0]}", IMPATIENT)


async def test_a_server_that_dies_is_reported_and_used_again_when_it_is_back(own_server: Server) -> None:
    address = f"zookeeper://127.0.0.1:{own_server.port}"
    async with await opened(address, IMPATIENT) as hasty, await opened(address) as patient:
        version = await hasty.write(LOG, epochs(1), ABSENT)
        own_server.kill()
        with pytest.raises(MetadataUnavailableError):
            await hasty.read(LOG)
        with pytest.raises(MetadataUnavailableError):
            await hasty.write(LOG, epochs(2), version)
        # A call with a long enough time-out survives the restart.
        reading = asyncio.create_task(patient.read(LOG))
        own_server.start()
        assert await reading == Versioned(epochs(1), version)
        assert await patient.write(LOG, epochs(2), version) > version


async def test_two_of_three_servers_go_on_when_the_leader_dies(three_servers: list[Server]) -> None:
    servers = ",".join(f"127.0.0.1:{server.port}" for server in three_servers)
    (leader,) = [server for server in three_servers if server.role() == "leader"]
    async with await opened(f"zookeeper://{servers}/cluster") as store:
        won: list[int] = []
        while len(won) < 30:
            if len(won) == 10:
                leader.kill()
            found = await store.read(LOG)
            epoch = found.value.epoch + 1 if found else 1
            try:
                await store.write(LOG, epochs(epoch), found.version if found else ABSENT)
            except (MetadataUnavailableError, MetadataOutcomeUnknownError):
                continue
            won.append(epoch)
        found = await store.read(LOG)
    assert found is not None
    assert won == sorted(set(won))
    assert found.value.epoch == won[-1]


def loses(
    monkeypatch: pytest.MonkeyPatch, *, before: bool = False, error: Exception | None = None
) -> Callable[[], None]:
    """Breaks the connection at the next write: before the write reaches ZooKeeper, or after it was made."""
    real: Commit = ZookeeperEpochStore._commit
    breaks = [True]

    def commit(store: ZookeeperEpochStore, cell: Any, data: bytes, found: Any) -> Version:
        is_broken = breaks.pop() if breaks else False
        if not (is_broken and before):
            version = real(store, cell, data, found)
        if is_broken:
            raise error or ConnectionLoss()
        return version

    monkeypatch.setattr(ZookeeperEpochStore, "_commit", commit)
    return lambda: breaks.append(True)


@pytest.mark.parametrize("error", [ConnectionLoss(), KazooTimeoutError()])
async def test_a_write_whose_answer_was_lost_is_recognised_as_made(
    zookeeper_address: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async with await opened(zookeeper_address) as store:
        lose = loses(monkeypatch, error=error)
        created = await store.write(LOG, epochs(1), ABSENT)
        lose()
        changed = await store.write(LOG, epochs(2), created)
        assert await store.read(LOG) == Versioned(epochs(2), changed)


async def test_a_write_that_never_arrived_is_reported_as_not_made(
    zookeeper_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await opened(zookeeper_address) as store:
        lose = loses(monkeypatch, before=True)
        with pytest.raises(MetadataUnavailableError, match="was not made"):
            await store.write(LOG, epochs(1), ABSENT)
        created = await store.write(LOG, epochs(1), ABSENT)
        lose()
        with pytest.raises(MetadataUnavailableError, match="was not made"):
            await store.write(LOG, epochs(2), created)
        assert await store.read(LOG) == Versioned(epochs(1), created)


async def test_a_write_that_others_may_have_overwritten_has_an_unknown_outcome(
    zookeeper_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await opened(zookeeper_address) as store:
        created = await store.write(LOG, epochs(1), ABSENT)
        real: Commit = ZookeeperEpochStore._commit

        def commit(store: ZookeeperEpochStore, cell: Any, data: bytes, found: Any) -> Version:
            # Another process writes, with its own stamp, while this write is in flight.
            real(store, cell, b"\x92\xa5other\xc0", found)
            raise ConnectionLoss

        monkeypatch.setattr(ZookeeperEpochStore, "_commit", commit)
        with pytest.raises(MetadataOutcomeUnknownError, match="another process has changed it since"):
            await store.write(LOG, epochs(2), created)


async def test_a_write_whose_outcome_cannot_be_read_has_an_unknown_outcome(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await opened(f"zookeeper://127.0.0.1:{own_server.port}", IMPATIENT) as store:
        real: Commit = ZookeeperEpochStore._commit

        def commit(store: ZookeeperEpochStore, cell: Any, data: bytes, found: Any) -> Version:
            real(store, cell, data, found)
            own_server.kill()
            raise ConnectionLoss

        monkeypatch.setattr(ZookeeperEpochStore, "_commit", commit)
        with pytest.raises(MetadataOutcomeUnknownError, match="got no answer"):
            await store.write(LOG, epochs(1), ABSENT)


async def test_of_two_writes_based_on_the_same_version_only_one_succeeds(zookeeper_address: str) -> None:
    async with await opened(zookeeper_address) as store, await opened(zookeeper_address) as other:
        for expected in (ABSENT, None):
            version = expected if expected is not None else found_version(await store.read(LOG))
            results = await asyncio.gather(
                *(one.write(LOG, epochs(5), version) for one in (store, other) for _ in range(4)),
                return_exceptions=True,
            )
            won = [result for result in results if not isinstance(result, BaseException)]
            lost = [result for result in results if isinstance(result, ConflictError)]
            assert (len(won), len(lost)) == (1, 7)


def found_version(found: Versioned[Any] | None) -> Version:
    assert found is not None
    return found.version


async def test_only_the_user_of_the_address_may_read_and_write(zookeeper: Server) -> None:
    place = f"127.0.0.1:{zookeeper.port}/secret"
    async with await opened(f"zookeeper://ada:p%40ss@{place}") as store:
        version = await store.write(LOG, epochs(1), ABSENT)
        assert await store.read(LOG) == Versioned(epochs(1), version)
    for stranger in ("", "ada:guess@"):
        with pytest.raises(AccessError, match="denies this user access to /secret"):
            await opened(f"zookeeper://{stranger}{place}")


async def test_a_user_who_may_only_read_gets_an_access_error(
    zookeeper: Server, zookeeper_address: str
) -> None:
    async with await opened(zookeeper_address) as store:
        version = await store.write(LOG, epochs(1), ABSENT)
        root = parse_address(zookeeper_address)
        assert isinstance(root, ZookeeperAddress)
        await store._run(
            lambda: store._client.set_acls(f"{root.root}/logs/7", [make_acl("world", "anyone", read=True)])
        )
        assert await store.read(LOG) is not None
        with pytest.raises(AccessError):
            await store.write(LOG, epochs(2), version)


async def test_two_clusters_share_servers_under_different_roots(zookeeper: Server) -> None:
    one, two = (f"zookeeper://127.0.0.1:{zookeeper.port}/shared/{name}" for name in ("one", "two"))
    async with await opened(one) as store, await opened(two) as other:
        await store.write(LOG, epochs(1), ABSENT)
        assert await other.read(LOG) is None


async def test_a_znode_that_another_program_wrote_is_reported_as_damaged(
    zookeeper: Server, zookeeper_address: str
) -> None:
    async with await opened(zookeeper_address) as store:
        await store.write(LOG, epochs(1), ABSENT)
        path = zookeeper_address.partition(str(zookeeper.port))[2] + "/logs/7"
        await store._run(lambda: store._client.set(path, b"hello"))
        with pytest.raises(UnreadableMetadataError, match="logs/7 is damaged"):
            await store.read(LOG)


async def test_every_error_of_a_closed_store_is_a_logdevice_error(zookeeper_address: str) -> None:
    store = await opened(zookeeper_address, IMPATIENT)
    store._client.stop()
    with pytest.raises(LogDeviceError):
        await store.read(LOG)
    await store.close()
