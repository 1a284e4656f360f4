"""What a client does about every answer to an append: it follows it, tries again, or raises an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from logdevice.client import AsyncClient
from logdevice.client.tests.small_cluster import SmallCluster, with_client
from logdevice.errors import (
    InvalidArgumentError,
    LogDeviceError,
    NoSequencerError,
    NoSpaceError,
    OutcomeUnknownError,
    OverloadedError,
    PayloadTooLargeError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.protocol.messages import service
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.types import LogId, Lsn, NodeId

LOG = LogId(1)


def redirected(status: AppendStatus, node: int) -> Appended:
    return Appended(status=status, node=NodeId(node))


def appends(cluster: SmallCluster) -> list[NodeId]:
    """The nodes that were asked to append, in order."""
    return [node for node, request in cluster.asked if isinstance(request, Append)]


def test_a_redirect_is_followed_and_remembered() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        cluster.sequencer = cluster.ids[2]
        await client.append("/log", b"two")
        await client.append("/log", b"three")
        assert appends(cluster) == [1, 1, 3, 3]

    with_client(test)


def test_a_preempted_append_goes_to_the_new_sequencer() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.append(redirected(AppendStatus.PREEMPTED, 2))
        cluster.scripted.append(None)
        cluster.sequencer = NodeId(1)
        await client.append("/log", b"one")
        assert appends(cluster) == [1, 2, 1]

    with_client(test)


@pytest.mark.parametrize(
    "refusal",
    [
        AppendStatus.NO_SEQUENCER,
        AppendStatus.OVERLOADED,
        AppendStatus.REDIRECTED,  # to no node
        NoSequencerError("another node is taking over"),
        OverloadedError("too much to do"),
    ],
)
def test_what_was_not_done_is_tried_again(refusal: Any) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted += [refusal] * 3
        lsn = await client.append("/log", b"one")
        assert (await client.tail("/log")).next == lsn.next
        assert len(appends(cluster)) == 4

    with_client(test)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (AppendStatus.NO_SPACE, NoSpaceError),
        (AppendStatus.TOO_BIG, PayloadTooLargeError),
        (AppendStatus.UNKNOWN, OutcomeUnknownError),
        (PayloadTooLargeError("no"), PayloadTooLargeError),
        (OutcomeUnknownError("not known"), OutcomeUnknownError),
    ],
)
def test_what_would_not_help_is_not_tried_again(answer: Any, error: type[LogDeviceError]) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.append(answer)
        with pytest.raises(error):
            await client.append("/log", b"one")
        assert len(appends(cluster)) == 1

    with_client(test)


def test_an_unknown_outcome_says_where_the_record_would_be() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.append(Appended(status=AppendStatus.UNKNOWN, lsn=Lsn.of(3, 4)))
        with pytest.raises(OutcomeUnknownError) as caught:
            await client.append("/log", b"one")
        assert (caught.value.log, caught.value.lsn) == (LOG, Lsn.of(3, 4))

    with_client(test)


def test_the_outcome_is_unknown_when_the_answer_is_lost() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        arrived = asyncio.Event()

        async def never(node: NodeId, request: Any) -> Any:
            arrived.set()
            await asyncio.Event().wait()

        cluster.nodes[cluster.sequencer]._answer = never
        append = asyncio.create_task(client.append("/log", b"two"))
        await arrived.wait()
        await cluster.nodes[cluster.sequencer].stop()
        with pytest.raises(OutcomeUnknownError):
            await append

    with_client(test)


def test_the_outcome_is_unknown_when_no_answer_comes_in_time() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        async def never(node: NodeId, request: Any) -> Any:
            if isinstance(request, Append):
                await asyncio.Event().wait()
            return await cluster._answer(node, request)

        cluster.nodes[cluster.sequencer]._answer = never
        with pytest.raises(OutcomeUnknownError, match="no answer within"):
            await client.append("/log", b"one")

    with_client(test, append_timeout_ms=150)


def test_an_append_that_never_left_goes_to_the_next_sequencer() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await cluster.nodes[cluster.sequencer].stop()
        async with cluster.client() as other:
            append = asyncio.create_task(other.append("/log", b"one"))
            while not any(isinstance(request, service.FindSequencer) for _, request in cluster.asked):
                await asyncio.sleep(0.01)
            cluster.sequencer = NodeId(2)
            assert await append == Lsn.of(1, 1)

    with_client(test)


def test_while_one_append_waits_for_a_node_that_hangs_others_go_to_the_next() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        hung, hanging = cluster.sequencer, asyncio.Event()

        async def hang(node: NodeId, request: Any) -> Any:
            if isinstance(request, Append):
                hanging.set()
                await asyncio.Event().wait()
            return await cluster._answer(node, request)

        cluster.nodes[hung]._answer = hang
        waiting = asyncio.create_task(client.append("/log", b"two"))
        await hanging.wait()
        cluster.sequencer = NodeId(2)
        others: list[asyncio.Task[Lsn]] = []
        while not any(other.done() for other in others):  # the first append may go to the node that hangs
            others.append(asyncio.create_task(client.append("/log", b"three")))
            await asyncio.wait(others, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
        assert {(await other).epoch for other in others if other.done()} == {1}
        assert not waiting.done()
        for task in (waiting, *others):
            task.cancel()
        await asyncio.gather(waiting, *others, return_exceptions=True)

    with_client(test, attempt_timeout_ms=50, append_timeout_ms=60_000)


def test_nodes_that_name_each_other_as_the_sequencer_are_given_up() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted += [redirected(AppendStatus.REDIRECTED, node) for node in (2, 1)] * 500
        with pytest.raises(NoSequencerError):  # which reason came last depends on timing
            await client.append("/log", b"one")
        assert len(cluster.scripted) < 1000

    with_client(test, append_timeout_ms=1000, redirects_max=4)


def test_a_cluster_without_a_sequencer_is_given_up_in_time() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster._answers[service.FindSequencer] = lambda node, ask: service.SequencerIs(None)
        with pytest.raises(NoSequencerError, match="no node is the log's sequencer"):
            await client.append("/log", b"one")

    with_client(test, append_timeout_ms=200)


def test_a_node_that_has_not_heard_of_a_new_log_is_asked_again() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted += [UnknownLogError("never heard of it")] * 2
        await client.append("/log", b"one")
        await client.remove_log("/log")
        cluster.scripted.append(UnknownLogError("it is gone"))
        with pytest.raises(UnknownLogError, match="no log"):
            await client.append("/log", b"two")

    with_client(test)


def test_a_sequencer_hears_of_the_highest_epoch_the_client_has_seen() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        cluster.new_epoch(LOG)
        await client.append("/log", b"two")
        await client.append("/log", b"three")
        seen = [request.seen_epoch for _, request in cluster.asked if isinstance(request, Append)]
        assert seen == [0, 1, 2]

    with_client(test)


def test_what_cannot_be_a_record_is_refused_before_it_is_sent() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        with pytest.raises(PayloadTooLargeError, match="batch_bytes_max allows 4000"):
            await client.append("/log", bytes(5000))
        with pytest.raises(InvalidArgumentError, match="without entries"):
            await client.append_many("/log", [])
        with pytest.raises(InvalidArgumentError, match="lsn"):
            await client.append_batch("/log", pa.record_batch({"lsn": pa.array([1])}))
        with pytest.raises(InvalidArgumentError):
            await client.append("/log", 7)  # type: ignore[arg-type]
        with pytest.raises(UnknownLogError):
            await client.append("/nowhere", b"one")
        assert appends(cluster) == []

    with_client(test, batch_bytes_max=4000, batch_codec="none")


def test_a_cluster_that_is_gone_is_an_error_in_time() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        for node in cluster.nodes.values():
            await node.stop()
        with pytest.raises(UnavailableError):
            await client.append("/log", b"two")
        with pytest.raises(UnavailableError):
            await client.cluster()

    with_client(test, append_timeout_ms=300, call_timeout_ms=1000)
