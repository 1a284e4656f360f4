"""What tagged appends and named writers do about every answer; the nodes answer what the test wants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from logdevice.client import AsyncClient
from logdevice.client.tests.small_cluster import SmallCluster, with_client
from logdevice.errors import (
    InvalidArgumentError,
    NoSpaceError,
    OutcomeUnknownError,
    PayloadTooLargeError,
    UnknownLogError,
    UnknownWriterError,
    WriterFencedError,
)
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.records import batch as batches
from logdevice.records.writer_tags import check_tag, writer_number
from logdevice.types import LogId, Lsn, WriterTag

LOG = LogId(1)
TAG = WriterTag(7, 1, 0, 1, 0)


def batch() -> pa.RecordBatch:
    return batches.from_entries(None, [b"x"], None)


def tags(cluster: SmallCluster) -> list[tuple[int, int]]:
    """Incarnation and number of every append that nodes were asked for."""
    asked = [request.tag for _, request in cluster.asked if isinstance(request, Append)]
    return [(tag.incarnation, tag.first_seq) for tag in asked if tag is not None]


def test_a_tagged_append_is_sent_again_whatever_may_have_happened_to_it() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.extend([AppendStatus.UNKNOWN, AppendStatus.NO_SEQUENCER, AppendStatus.OVERLOADED])
        done = await client.append_tagged("/log", batch(), TAG)
        assert (done.is_duplicate, tags(cluster)) == (False, [(1, 0)] * 4)
        assert (await client.append_tagged("/log", batch(), TAG)).lsn == done.lsn

    with_client(test)


def test_a_tagged_append_without_an_answer_may_be_sent_again_later() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.extend([AppendStatus.NO_SEQUENCER] * 1_000)
        with pytest.raises(OutcomeUnknownError, match="may be sent again"):
            await client.append_tagged("/log", batch(), TAG)

    with_client(test, append_timeout_ms=300)


def test_a_refusal_says_why() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.extend(
            [
                Appended(status=AppendStatus.FENCED, incarnation=4),
                Appended(status=AppendStatus.UNKNOWN_WRITER, horizon=Lsn.of(2, 3)),
                AppendStatus.NO_SPACE,
            ]
        )
        with pytest.raises(WriterFencedError, match="incarnation 4"):
            await client.append_tagged("/log", batch(), TAG)
        with pytest.raises(UnknownWriterError, match="e2n3"):
            await client.append_tagged("/log", batch(), TAG)
        with pytest.raises(NoSpaceError):
            await client.append_tagged("/log", batch(), TAG)

    with_client(test)


@pytest.mark.parametrize(
    ("field", "value"),
    [("writer", -1), ("incarnation", 1 << 64), ("first_seq", 1 << 63), ("stable_upto", 1), ("count", 2)],
)
def test_an_invalid_tag_is_refused(field: str, value: int) -> None:
    changed: Any = {field: value}
    with pytest.raises(InvalidArgumentError, match=field):
        check_tag(replace(TAG, **changed))


def test_the_number_of_a_name_never_changes() -> None:
    assert writer_number("loader") == 4757979144960331803
    assert writer_number("loader") != writer_number("Loader")
    with pytest.raises(InvalidArgumentError, match="name"):
        writer_number("")


def test_a_writer_survives_every_temporary_failure() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.extend(
            [AppendStatus.NO_SEQUENCER, AppendStatus.UNKNOWN, AppendStatus.NO_SPACE, AppendStatus.OVERLOADED]
        )
        async with client.writer("/log", name="w") as writer:
            receipt = await writer.put(b"a")
        assert (await receipt).lsn
        assert tags(cluster) == [(1, 1)] * 5

    with_client(test)


def test_a_record_that_is_too_big_fails_alone() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.append(AppendStatus.TOO_BIG)
        writer = client.writer("/log", name="w", writer_delay_ms=0)
        big = await writer.put(b"big")
        with pytest.raises(PayloadTooLargeError):
            await big
        small = await writer.put(b"small")
        assert (await small).lsn
        with pytest.raises(PayloadTooLargeError):
            await writer.flush()
        await writer.close()

    with_client(test)


def test_a_writer_that_was_forgotten_goes_on_as_a_new_process() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        unknown = Appended(status=AppendStatus.UNKNOWN_WRITER, horizon=Lsn.of(1, 1))
        cluster.scripted.append(unknown)
        async with client.writer("/log", name="w") as writer:
            receipt = await writer.put(b"a")
        assert (await receipt).lsn
        assert tags(cluster) == [(1, 1), (2, 2)]

    with_client(test)


def test_a_writer_ends_with_its_log() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        writer = client.writer("/log", name="w", writer_delay_ms=0)
        await writer.put(b"a")
        await writer.flush()
        await client.remove_log("/log")
        cluster.scripted.append(UnknownLogError("no such log", log=LOG))
        receipt = await writer.put(b"b")
        with pytest.raises(UnknownLogError):
            await receipt
        with pytest.raises(UnknownLogError):
            await writer.close()

    with_client(test)
