"""Backups with real nodes in one process: all records are restored, and damage is noticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.admin.backup_files import METADATA
from logdevice.client.tests.small_cluster import quick
from logdevice.errors import CorruptRecordError, InvalidArgumentError, NameTakenError
from logdevice.node.tests.real_nodes import RealNodes, real_nodes, run
from logdevice.types import Lsn

Test = Callable[[RealNodes, AsyncClient], Coroutine[Any, Any, None]]
PATIENT = {"attempt_timeout_ms": 20_000, "append_timeout_ms": 20_000, "call_timeout_ms": 20_000}


def with_nodes(directory: Path, test: Test) -> None:
    async def work() -> None:
        async with real_nodes(directory / "nodes", 1, 2, 3) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            async with AsyncClient(quick(endpoints, **PATIENT)) as client:
                await client.create_log("/log", {"replication": 2, "backlog_s": 86_400})
                await test(cluster, client)

    run(work())


async def content(client: AsyncClient, log: str) -> list[tuple[Any, ...]]:
    """Everything in a log but LSNs: entries, where batches begin, times."""
    found = []
    async for item in client.read(log):
        if isinstance(item, RecordsBatch):
            found += [(entry.batch_offset, *entry[2:]) for entry in item.entries()]
    return found


async def filled(client: AsyncClient) -> list[Lsn]:
    lsns = [
        await client.append_many(
            "/log",
            [b"%d-%d" % (number, i) for i in range(3)],
            [b"k", None, b"%d" % number],
            [{"a": "b"}, None, {}],
        )
        for number in range(20)
    ]
    return [*lsns, await client.append("/log", b"")]


def test_a_restored_log_has_the_same_batches_keys_attributes_and_times(tmp_path: Path) -> None:
    """L35, L37: and it has a history of its own."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await filled(client)
        made = await client.backup("/log", tmp_path / "backup", part_bytes=1_000)
        assert (made.records, made.entries, made.lost) == (21, 61, ())
        assert len(list((tmp_path / "backup").glob("part-*.arrow"))) > 1
        await client.append("/log", b"after the backup")
        restored = await client.restore(tmp_path / "backup", "/again")
        assert restored == made
        assert await content(client, "/again") == (await content(client, "/log"))[:-1]
        (view,) = await client.logs("/again")
        kept = {name: value for name, value, where in view.attributes if where == "/again"}
        assert kept == {"replication": "node: 2", "backlog_s": "86400"}
        assert (await client.lineage("/again")).id != (await client.lineage("/log")).id
        # New records are not older than the restored ones.
        last = (await client.tail("/again")).timestamp_ms
        await client.append("/again", b"new")
        assert (await client.tail("/again")).timestamp_ms >= last

    with_nodes(tmp_path, test)


def test_a_log_is_replaced_only_if_asked_for(tmp_path: Path) -> None:
    """L35: consumers that had read the replaced log have to roll back."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await filled(client)
        before = await content(client, "/log")
        await client.backup("/log", tmp_path / "backup")
        async with client.read("/log", lineage="newest") as reader:
            while await reader.next() is not None:
                pass
            kept = reader.checkpoint((await client.tail("/log")).next)
        with pytest.raises(NameTakenError, match="`replace` was not given"):
            await client.restore(tmp_path / "backup", "/log")
        await client.append("/log", b"after the backup")
        await client.restore(tmp_path / "backup", "/log", replace=True, attributes={"replication": 3})
        assert await content(client, "/log") == before
        assert ("replication", "node: 3", "/log") in (await client.logs("/log"))[0].attributes
        checked = await client.check(kept)
        assert checked.is_rollback
        assert checked.safe == 1

    with_nodes(tmp_path, test)


def test_what_cannot_be_restored_replaces_nothing(tmp_path: Path) -> None:
    """L38."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await filled(client)
        before = await content(client, "/log")
        await client.backup("/log", tmp_path / "backup")
        with pytest.raises(InvalidArgumentError, match="replication"):
            await client.restore(tmp_path / "backup", "/log", replace=True, attributes={"replication": 9})
        # Noticed at the end: the records restored until then are removed again.
        metadata = json.loads((tmp_path / "backup" / METADATA).read_text())
        (tmp_path / "backup" / METADATA).write_text(json.dumps({**metadata, "records": 99}))
        with pytest.raises(CorruptRecordError, match=r"21 records with .* entries were found, expected 99"):
            await client.restore(tmp_path / "backup", "/log", replace=True)
        assert [view.path for view in await client.logs()] == ["/", "/log"]
        assert await content(client, "/log") == before

    with_nodes(tmp_path, test)


def test_a_log_that_does_not_keep_order_is_restored_in_order(tmp_path: Path) -> None:
    """L37: with many records in flight at a time."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.set_attributes("/log", {"writer_order": "none"})
        for number in range(20):
            await asyncio.gather(*(client.append("/log", b"%d" % number) for _ in range(20)))
        before = await content(client, "/log")
        await client.backup("/log", tmp_path / "backup")
        await client.restore(tmp_path / "backup", "/again")
        assert await content(client, "/again") == before

    with_nodes(tmp_path, test)


def test_an_empty_log_can_be_backed_up(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        made = await client.backup("/log", tmp_path / "backup")
        assert (made.records, made.start) == (0, made.end)
        longest = "/" + "x" * 100
        await client.restore(tmp_path / "backup", longest)
        assert await client.is_empty(longest)

    with_nodes(tmp_path, test)


def test_an_incomplete_backup_is_refused_before_any_log_is_created(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await filled(client)
        backup = tmp_path / "backup"
        await client.backup("/log", backup)
        with pytest.raises(InvalidArgumentError, match="is not empty"):
            await client.backup("/log", backup)

        async def refused(error: type[Exception], words: str) -> None:
            with pytest.raises(error, match=words):
                await client.restore(backup, "/again")
            assert [view.path for view in await client.logs() if view.log is not None] == ["/log"]

        part, metadata = backup / "part-00000.arrow", backup / METADATA
        whole, said = part.read_bytes(), metadata.read_text()
        part.write_bytes(whole[:-3] + b"xyz")
        await refused(CorruptRecordError, "does not match metadata.json")
        part.unlink()
        await refused(CorruptRecordError, "is missing")
        part.write_bytes(whole)
        metadata.write_text(said[:-5])
        await refused(CorruptRecordError, "is damaged")
        metadata.write_text(json.dumps({**json.loads(said), "format": 2}))
        await refused(InvalidArgumentError, "of format 2")
        metadata.unlink()
        await refused(InvalidArgumentError, "written last")

    with_nodes(tmp_path, test)


def test_the_files_can_be_read_with_plain_arrow(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await filled(client)
        await client.backup("/log", tmp_path / "backup")
        table = pa.ipc.open_file(tmp_path / "backup" / "part-00000.arrow").read_all()
        assert table.column("lsn").to_pylist() == lsns
        said = json.loads((tmp_path / "backup" / METADATA).read_text())
        assert said["lineage"] == (await client.lineage("/log")).shown
        assert said["attributes"] == {"replication": "node: 2", "backlog_s": "86400"}

    with_nodes(tmp_path, test)


def test_a_chain_log_is_restored_like_any_other(tmp_path: Path) -> None:
    """L37."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.create_log("/chain", {"replication": 2, "replication_mode": "chain"})
        for number in range(10):
            await client.append_many("/chain", [b"%d" % number, b"x"])
        await client.backup("/chain", tmp_path / "backup")
        await client.restore(tmp_path / "backup", "/again")
        assert await content(client, "/again") == await content(client, "/chain")
        assert ("replication_mode", "chain", "/again") in (await client.logs("/again"))[0].attributes

    with_nodes(tmp_path, test)


def test_what_an_interrupted_restore_left_is_named(tmp_path: Path) -> None:
    """L38: the other restore may still be running, so only an operator may remove its log."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await filled(client)
        await client.backup("/log", tmp_path / "backup")
        await client.create_log("/again.restoring")
        with pytest.raises(NameTakenError) as caught:
            await client.restore(tmp_path / "backup", "/again")
        assert caught.value.message == (
            "/again.restoring: another restore is running, or an interrupted one has left this log; if none "
            "is running, remove the log and restore again"
        )
        await client.remove_log("/again.restoring")
        assert (await client.restore(tmp_path / "backup", "/again")).records == 21

    with_nodes(tmp_path, test)
