"""Sends random bytes and mutated messages to every handler: each is an error, and the node lives on.

The examples are drawn from fixed seeds, so a failure can be reproduced. Other seeds give other examples.
"""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from logdevice.errors import LogDeviceError
from logdevice.node.assembly import READ_METHOD
from logdevice.node.tests.real_nodes import CLUSTER, RealNodes, real_nodes, run
from logdevice.protocol.messages import read, service, write
from logdevice.protocol.messages.read import GetEpochMetadata
from logdevice.settings import WireSettings
from logdevice.types import LSN_MAX, Epoch, LogId, Lsn, NodeId, Record
from logdevice.wire.channel import Channels
from logdevice.wire.codec import encode
from logdevice.wire.conversation import METHOD
from logdevice.wire.hello import Hello

ROUNDS = 300
LOG = LogId(1)
OTHER = LogId(99)


def samples() -> list[Any]:
    record = Record(lsn=Lsn.of(1, 9), timestamp_ms=1, copyset=(NodeId(0),), body=b"fuzz", wave=1)
    start = read.Start(
        log=LOG, filter_version=1, start=Lsn(1), end=LSN_MAX, window_end=LSN_MAX, window_bytes=1
    )
    return [
        start,
        read.Window(LOG, 1, LSN_MAX, 1 << 20),
        read.Stop(LOG),
        write.Append(log=LOG, body=b"fuzz", entries=1),
        write.GetTail(LOG),
        # In a log that no test reads: a node accepts any record from another node, also a senseless one.
        write.Store(log=OTHER, record=record, good_end=Lsn(0), sequencer=NodeId(0)),
        write.Seal(log=OTHER, epoch=Epoch(1), sealed_by=NodeId(0), last_clean=Epoch(0)),
        write.DigestRequest(log=OTHER, epoch=Epoch(1), start=Lsn.of(1, 1), seal_epoch=Epoch(1), attempt=1),
        write.GetEpochRecovery(OTHER, Epoch(1)),
        service.GetCluster(),
        service.GetStatus(),
        service.GetLogs("/"),
        service.FindSequencer(LOG),
        GetEpochMetadata(LOG, Epoch(1)),
        service.FindTime(LOG, 5),
        service.GetStoredRange(LOG, Lsn(1), LSN_MAX),
        service.FindLog(LOG),
        service.FindRecord(log=LOG, start=Lsn(1), entries=5),
    ]


def mutated(chance: random.Random, encoded: bytes) -> bytes:
    data = bytearray(encoded)
    match chance.randrange(4):
        case 0:
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        case 1:
            del data[chance.randrange(len(data)) :]
        case 2:
            data += chance.randbytes(chance.randint(1, 20))
        case _:
            return chance.randbytes(chance.randint(0, 200))
    return bytes(data)


async def throw(cluster: RealNodes, method: str, frames: list[bytes], caller: NodeId | None) -> None:
    """Sends each frame on its own stream, and reads what comes back for a moment."""
    channels = Channels(Hello(cluster=CLUSTER, caller=caller), WireSettings())

    async def one(frame: bytes) -> None:
        stream = await channels.get(cluster.nodes[0].address).open(method)
        try:
            await stream.send(frame)
            await stream.end()
            async with asyncio.timeout(0.2):
                while await stream.receive() is not None:
                    pass
        except (LogDeviceError, TimeoutError):
            pass
        finally:
            stream.cancel()

    for begin in range(0, len(frames), 50):
        await asyncio.gather(*(one(frame) for frame in frames[begin : begin + 50]))
    await channels.close()


def framed(data: bytes) -> bytes:
    return pack("<QI", 1, len(data)) + data


@pytest.mark.parametrize("seed", [1, 13])
def test_a_node_survives_whatever_is_thrown_at_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    chance = random.Random(seed)
    encoded = [encode(message) for message in samples()]
    talk = [framed(mutated(chance, chance.choice(encoded))) for _ in range(ROUNDS)]
    talk += [mutated(chance, framed(chance.choice(encoded))) for _ in range(ROUNDS)]
    reads = [mutated(chance, chance.choice(encoded[:3])) for _ in range(ROUNDS)]

    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            before = await cluster.append(log, b"before")
            await throw(cluster, METHOD, talk, None)
            await throw(cluster, METHOD, talk, NodeId(7))
            await throw(cluster, READ_METHOD, reads, None)
            after = await cluster.append(log, b"after")
            found = await cluster.read(log, after.next)
            assert (found[before], found[after]) == (b"before", b"after")

    with caplog.at_level(logging.ERROR):
        run(story())
    # An unexpected exception in a handler would have been caught, and logged with its traceback.
    assert [entry.getMessage() for entry in caplog.records if entry.exc_info] == []
