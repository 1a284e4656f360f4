"""Counts what an append and a read of a body cost: passes of its checksum, and copies in memory.

One process holds the client and the nodes, so the tests see every pass and every buffer of theirs. Each
buffer as large as the body that crosses a border (a message, the disk, a socket) is kept alive, so that no
two share an address: buffers at different addresses are copies. Copies in gRPC and the kernel stay unseen.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.errors import CorruptRecordError
from logdevice.node.tests.real_nodes import real_nodes, run
from logdevice.protocol.messages.write import Append
from logdevice.records.stored import joined
from logdevice.storage.raw_disk import RawDisk
from logdevice.wire.channel import ClientStream
from logdevice.wire.data_connection import Frames
from logdevice.wire.server import ServerStream

COPIES = 3
PAYLOAD = random.Random(1).randbytes(1 << 20)


class Counted:
    def __init__(self) -> None:
        self.passes = 0  # over data as large as the body
        self._seen: list[tuple[Any, int, int]] = []

    def begin(self) -> None:
        self.passes = 0
        self._seen.clear()

    def crc(self, data: Any, *before: int) -> int:
        self.passes += len(data) >= len(PAYLOAD)
        return crc32c.crc32c(data, *before)

    def see(self, *buffers: Any) -> None:
        for data in buffers:
            if data is not None and len(data) >= len(PAYLOAD):
                start = int(np.frombuffer(data, np.uint8).__array_interface__["data"][0])
                self._seen.append((data, start, start + len(data)))

    @property
    def copies(self) -> int:
        found: list[tuple[int, int]] = []
        for _, start, end in self._seen:
            if not any(start < other_end and other_start < end for other_start, other_end in found):
                found.append((start, end))
        return len(found)


def watched(usual: Callable[..., Any], see: Callable[..., None]) -> Callable[..., Any]:
    """A function like `usual` that also passes its result and its arguments to `see`."""

    def call(*given: Any, **named: Any) -> Any:
        result = usual(*given, **named)
        see(result, *given)
        return result

    return call


def watched_later(usual: Callable[..., Awaitable[Any]], see: Callable[..., None]) -> Callable[..., Any]:
    async def call(*given: Any, **named: Any) -> Any:
        result = await usual(*given, **named)
        see(result, *given)
        return result

    return call


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counts = Counted()
    for name, module in list(sys.modules.items()):
        if name.startswith("logdevice.") and getattr(module, "crc32c", None) is crc32c.crc32c:
            monkeypatch.setattr(module, "crc32c", counts.crc)
        if name.startswith("logdevice.") and getattr(module, "joined", None) is joined:
            monkeypatch.setattr(module, "joined", watched(joined, lambda data, _: counts.see(data)))

    def watch(kind: Any, method: str, see: Callable[..., None], how: Any = watched_later) -> None:
        monkeypatch.setattr(kind, method, how(getattr(kind, method), see))

    for stream in (ClientStream, ServerStream):
        watch(stream, "send", lambda _, me, data: counts.see(data))
        watch(stream, "receive", lambda data, me: counts.see(data))
    watch(Frames, "_send_buffers", lambda _, me, buffers: counts.see(*buffers))
    watch(Frames, "receive", lambda frame, *given: counts.see(frame and frame.data))
    watch(RawDisk, "write", lambda _, me, file, buffers, offset: counts.see(*buffers), watched)
    watch(RawDisk, "read", lambda data, *given: counts.see(data), watched)
    return counts


async def read_back(client: AsyncClient) -> list[bytes]:
    async with client.read("/log") as reader:
        found = [item async for item in reader if isinstance(item, RecordsBatch)]
    return [entry.payload for item in found for entry in item.entries()]


@pytest.mark.parametrize("mode", ["copyset", "chain"])
@pytest.mark.parametrize("is_local", [True, False], ids=["local", "remote"])
def test_a_body_is_checked_once_by_each_process_that_must_trust_it(
    is_local: bool, mode: str, tmp_path: Path, counted: Counted
) -> None:
    """The client computes the checksum. A node compares it when the body arrives: the sequencer's node with
    APPEND, before it stores its own copy, the others with STORE. The reader compares it when the record
    arrives. For a reader on another machine, the node that reads the body compares it, too.
    """

    async def work() -> None:
        async with real_nodes(tmp_path, 1, 2, 3) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            settings = {"batch_codec": "none", "data_local": is_local}
            async with AsyncClient(endpoints, settings=settings) as client:
                await client.create_log("/log", {"replication": COPIES, "replication_mode": mode})
                await client.append("/log", b"first")  # so that the log has an epoch and connections
                counted.begin()
                await client.append("/log", PAYLOAD)
                assert counted.passes == 1 + COPIES
                # Two buffers for each node that gets the body, the frame sent and the frame received.
                assert counted.copies == 2 * COPIES
                counted.begin()
                assert await read_back(client) == [b"first", PAYLOAD]
                assert (counted.passes, counted.copies) == ((1, 1) if is_local else (2, 2))

    run(work())


def test_the_body_of_a_named_writer_is_checked_no_more_often(tmp_path: Path, counted: Counted) -> None:
    async def work() -> None:
        async with real_nodes(tmp_path, 1, 2, 3) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            async with AsyncClient(endpoints, settings={"batch_codec": "none"}) as client:
                await client.create_log("/log", {"replication": COPIES})
                async with client.writer("/log", name="w") as writer:
                    await writer.put(b"first")
                    await writer.flush()
                    counted.begin()
                    await writer.put(PAYLOAD)
                    await writer.flush()
                    assert (counted.passes, counted.copies) == (1 + COPIES, 2 * COPIES)

    run(work())


def test_an_append_that_was_damaged_on_its_way_is_refused_before_it_gets_an_lsn(tmp_path: Path) -> None:
    async def work() -> None:
        async with real_nodes(tmp_path, 1, 2, 3) as cluster:
            log = await cluster.create(replication=3)
            last = await cluster.append(log, b"body")
            damaged = Append(log=log, body=b"bodY", crc=crc32c.crc32c(b"body"), entries=1)
            for number in cluster.nodes:
                with pytest.raises(CorruptRecordError, match="damaged on its way to the node"):
                    await cluster.ask(number, damaged)
            assert await cluster.append(log, b"next") == last.next

    run(work())
