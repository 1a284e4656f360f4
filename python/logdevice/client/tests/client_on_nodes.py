"""A client on real nodes, for tests that run on both kinds of log.

A test module that imports `mode` runs every test twice: copies stored by the sequencer, and copies stored by
clients along chains.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from logdevice.client import AsyncClient
from logdevice.client.tests.small_cluster import quick
from logdevice.node.tests.real_nodes import RealNodes, real_nodes, run

Test = Callable[[RealNodes, AsyncClient], Coroutine[Any, Any, None]]
ALL = (1, 2, 3, 4)
ATTRIBUTES: dict[str, str] = {}  # of the log of the test that runs


@pytest.fixture(params=("copyset", "chain"), autouse=True)
def mode(request: pytest.FixtureRequest) -> None:
    ATTRIBUTES["replication_mode"] = request.param


@asynccontextmanager
async def a_client(cluster: RealNodes) -> AsyncIterator[AsyncClient]:
    endpoints = ",".join(node.address for node in cluster.nodes.values())
    async with AsyncClient(quick(endpoints, append_timeout_ms=20_000, call_timeout_ms=20_000)) as client:
        yield client


def with_nodes(directory: Path, test: Test) -> None:
    async def work() -> None:
        async with real_nodes(directory, *ALL) as cluster, a_client(cluster) as client:
            await client.create_log("/log", {"replication": 3, **ATTRIBUTES})
            await test(cluster, client)

    run(work())
