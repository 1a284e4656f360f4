"""Fixtures of the metadata tests: a ZooKeeper server, all kinds of stores, an event loop for async tests."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from logdevice.metadata.epoch_store import EpochStore
from logdevice.metadata.opening import open_epoch_store
from logdevice.metadata.tests.zookeeper_servers import Server, single_server
from logdevice.settings import MetadataSettings

# Opens another store on the same metadata, as another process would.
OpenStore = Callable[[], Awaitable[EpochStore]]

_roots = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = single_server(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
        server.wait_until_it_serves()
        yield server
    finally:
        server.kill()


@pytest.fixture
def zookeeper_address(zookeeper: Server) -> str:
    """The address of a root that belongs to one test."""
    return f"zookeeper://127.0.0.1:{zookeeper.port}/tests/{next(_roots)}"


@pytest.fixture(params=["sqlite", "zookeeper"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    address = (
        f"sqlite:{tmp_path / 'metadata.db'}"
        if request.param == "sqlite"
        else str(request.getfixturevalue("zookeeper_address"))
    )
    return lambda: open_epoch_store(address, MetadataSettings())
