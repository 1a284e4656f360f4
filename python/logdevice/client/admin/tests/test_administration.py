"""What a client knows about the cluster and its logs, and how it finds them."""

from __future__ import annotations

import asyncio

import pytest

from logdevice.client import AsyncClient, ClientConfig, RecordsBatch
from logdevice.client.tests.small_cluster import (
    CLUSTER,
    SmallCluster,
    quick,
    run_in_loop,
    running,
    with_client,
)
from logdevice.client.tests.small_node import SmallNode
from logdevice.errors import (
    InvalidArgumentError,
    InvalidSettingError,
    LocalProtocolError,
    NameTakenError,
    RemoteProtocolError,
    UnavailableError,
    UnknownLogError,
    WrongClusterError,
)
from logdevice.protocol.messages import service
from logdevice.types import LSN_OLDEST, Location, LogId, NodeId
from logdevice.wire.hello import Hello, checked


def of(log: service.LogView, name: str) -> tuple[str, str]:
    return next((value, source) for known, value, source in log.attributes if known == name)


def test_a_log_that_was_made_is_known_without_another_question() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        made = await client.create_log("/made", {"replication": 1})
        await client.append("/made", b"x")
        assert cluster.looked_up == []
        await client.append(int(made.log or 0), b"x")
        assert cluster.looked_up == [service.FindLog(made.log or LogId(0))]

    with_client(test, cluster_refresh_ms=60_000)


def test_logs_are_made_changed_renamed_and_removed() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        made = await client.create_log("/ads/clicks", {"replication": 2, "scd": False})
        assert (made.path, of(made, "scd")) == ("/ads/clicks", ("False", "/ads/clicks"))
        assert made.log is not None
        await client.create_directory("/ads/old", {"backlog_s": 60})
        await client.set_attributes("/ads", {"backlog_s": 3600})
        await client.set_attributes(made.log, {"scd": None})
        listed = {log.path: log for log in await client.logs("/ads")}
        assert list(listed) == ["/ads", "/ads/clicks", "/ads/old"]
        assert of(listed["/ads/clicks"], "backlog_s") == ("3600", "/ads")
        assert of(listed["/ads/clicks"], "scd") == ("True", "default")
        lsn = await client.append("/ads/clicks", b"one")
        await client.rename("/ads/clicks", "/clicks")
        assert (await client.tail("/clicks")).next == lsn.next
        with pytest.raises(UnknownLogError):
            await client.append("/ads/clicks", b"two")
        with pytest.raises(NameTakenError):
            await client.create_log("/clicks")
        await client.remove_log("/clicks")
        with pytest.raises(UnknownLogError):
            await client.tail("/clicks")

    with_client(test)


def test_the_cluster_and_the_state_of_a_node_can_be_seen() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await cluster.nodes[NodeId(3)].stop()
        view = await client.cluster()
        assert view.cluster == CLUSTER
        assert [(node.node, node.is_alive) for node in view.nodes] == [(1, True), (2, True), (3, False)]
        assert (await client.node_status(2)).node == NodeId(2)
        assert await client.sequencer("/log") == await client.sequencer("1") == cluster.sequencer
        with pytest.raises(UnavailableError, match="not in the cluster"):
            await client.node_status(9)

    with_client(test)


def test_one_address_that_answers_is_enough() -> None:
    async def run() -> None:
        async with running() as cluster:
            addresses = f"127.0.0.1:1,{cluster.nodes[NodeId(2)].address}"
            async with AsyncClient(addresses, cluster=CLUSTER) as client:
                assert len((await client.cluster()).nodes) == 3
                await cluster.nodes[NodeId(2)].stop()
                assert len((await client.cluster()).nodes) == 3

    run_in_loop(run())


def test_a_node_of_another_cluster_is_refused() -> None:
    async def run() -> None:
        async with running() as cluster:
            async with AsyncClient(cluster.endpoints, cluster="other") as client:
                with pytest.raises(WrongClusterError, match="this node is in 'small'"):
                    await client.cluster()
            stranger = SmallNode(NodeId(1), "other", answer_as_other, {})
            await stranger.start()
            addresses = f"{stranger.address},{cluster.endpoints}"
            async with AsyncClient(addresses) as client:
                assert (await client.cluster()).cluster == "other"
                await stranger.stop()
                with pytest.raises(WrongClusterError, match="two clusters"):
                    await client.cluster()

    async def answer_as_other(node: NodeId, request: object) -> service.ClusterView:
        return service.ClusterView(cluster="other", asked=node, version=1, nodes=())

    run_in_loop(run())


def test_only_a_client_may_leave_open_which_cluster_it_wants() -> None:
    here, client = Hello(cluster=CLUSTER, caller=NodeId(1)), Hello(cluster="")
    assert checked(client, here) == client
    for wrong in (Hello(cluster="", caller=NodeId(2)), Hello(cluster="other")):
        with pytest.raises(WrongClusterError):
            checked(wrong, here)


def test_a_node_that_moved_is_found_again() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        first, second = cluster.nodes[NodeId(1)], cluster.nodes[NodeId(2)]
        await first.stop()
        await second.stop()
        # Each node at the other's address, or nearly so.
        first.address, second.address = "127.0.0.1:0", first.address
        await first.start()
        await second.start()
        # A request that may be sent twice: the old connection may break while the request is on its way.
        assert (await client.tail("/log")).next.esn == 2
        assert (await client.append("/log", b"two")).esn == 2
        items = [item async for item in client.read("/log")]
        assert sum(len(item) for item in items if isinstance(item, RecordsBatch)) == 2

    with_client(test, cluster_refresh_ms=60_000)


def test_a_port_that_speaks_something_else_is_named() -> None:
    async def run() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        hasty = quick(address, call_timeout_ms=300, attempt_timeout_ms=200, connect_timeout_ms=500)
        async with server, AsyncClient(hasty) as client:
            with pytest.raises((UnavailableError, RemoteProtocolError), match=address):
                await client.cluster()

    run_in_loop(run())


@pytest.mark.parametrize(
    "wrong", ["", " , ", "localhost", ":80", "host:", "host:port", "host:70000", "a:1,b"]
)
def test_a_malformed_address_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidArgumentError, match="host:port"):
        ClientConfig.of(wrong, cluster=None, location="", settings=None)


def test_settings_find_the_component_they_belong_to() -> None:
    settings = {"window_lsns": 7, "append_timeout_ms": "1000", "batch_codec": "lz4", "data_local": False}
    config = ClientConfig.of("a:1, b:2,a:1", cluster="c", location="eu.one", settings=settings)
    assert config.endpoints == ("a:1", "b:2")
    assert (config.cluster, config.location) == ("c", Location.parse("eu.one"))
    assert (config.stream.window_lsns, config.client.append_timeout_ms) == (7, 1000)
    assert (config.batch.batch_codec, config.wire.data_local) == ("lz4", False)
    with pytest.raises(InvalidSettingError, match="the nearest is 'append_timeout_ms'"):
        ClientConfig.of("a:1", cluster=None, location="", settings={"append_timout_ms": 1})
    with pytest.raises(InvalidArgumentError, match="region"):
        ClientConfig.of("a:1", cluster=None, location="not a place", settings=None)


def test_a_closed_client_says_so() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        other = cluster.client()
        reader = other.read("/log", follow=True)
        assert await reader.next() is not None
        await other.close()
        assert await reader.next() is None
        with pytest.raises(LocalProtocolError, match="closed"):
            await other.cluster()

    with_client(test)


def test_the_last_view_of_the_cluster_is_used_until_a_node_answers_again() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        before = cluster._answers.pop(service.GetCluster)
        cluster._answers[service.GetCluster] = refuse
        await asyncio.sleep(0.01)
        await client.append("/log", b"two")
        assert await client.first_lsn("/log") == LSN_OLDEST
        with pytest.raises(UnavailableError, match="not now"):
            await client.cluster()
        cluster._answers[service.GetCluster] = before
        assert (await client.cluster()).cluster == CLUSTER

    def refuse(node: NodeId, request: object) -> None:
        raise UnavailableError("not now")

    with_client(test, cluster_refresh_ms=1)
