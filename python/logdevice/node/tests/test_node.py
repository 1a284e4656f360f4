"""Nodes as processes see them: plain messages over real connections, several nodes in one event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

from logdevice.node.tests.small_cluster import small_cluster
from logdevice.protocol.write_messages import Append, AppendStatus
from logdevice.types import Lsn


def test_one_node_takes_appends_and_gives_them_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with small_cluster(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            lsns = [await cluster.append(log, b"body %d" % number) for number in range(5)]
            assert lsns == [Lsn.of(1, 1 + number) for number in range(5)]
            assert list((await cluster.read(log, lsns[-1].next)).values()) == [b"body %d" % n for n in range(5)]

    asyncio.run(run())


def test_three_nodes_keep_three_copies(tmp_path: Path) -> None:
    async def run() -> None:
        async with small_cluster(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=3)
            lsns = [await cluster.append(log, b"body %d" % number) for number in range(5)]
            for number in (0, 1, 2):
                stream = await cluster.open_read(number, log)

    asyncio.run(run())


def test_x(tmp_path: Path) -> None:
    import time
    async def run() -> None:
        async with small_cluster(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=2)
            t=time.time()
            acked = {}
            for number in range(10):
                acked[await cluster.append(log, b"body %d" % number)] = b"body %d" % number
            print("appended", time.time()-t); t=time.time()
            owner = await cluster.sequencer(log)
            await cluster.kill(int(owner))
            print("killed", time.time()-t); t=time.time()
            for number in range(10,20):
                acked[await cluster.append(log, b"body %d" % number)] = b"body %d" % number
                print("appended", number, time.time()-t); t=time.time()
            last = max(acked)
            got = await cluster.read(log, last.next)
            print(time.time()-t, got)
            assert acked.items() <= got.items()
            await cluster.start(int(owner))
            print("restart", time.time()-t); t=time.time()
            for number in range(20,30):
                acked[await cluster.append(log, b"body %d" % number)] = b"body %d" % number
            print("appended", time.time()-t); t=time.time()
            got = await cluster.read(log, max(acked).next)
            print(time.time()-t, got)
            assert acked.items() <= got.items()
    asyncio.run(run())
