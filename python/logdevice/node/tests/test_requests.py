"""The requests that a node answers, and those that it refuses."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from logdevice.cli.local.ports import choose_ports
from logdevice.errors import (
    AccessError,
    InvalidArgumentError,
    MetadataUnavailableError,
    NameTakenError,
    PayloadTooLargeError,
    RemoteProtocolError,
    UnknownLogError,
    WrongClusterError,
)
from logdevice.metadata.values import NodeRole
from logdevice.node.assembly import READ_METHOD
from logdevice.node.cluster_view import NodeClusterView
from logdevice.node.context import NodeContext
from logdevice.node.requests.directory import DirectoryService
from logdevice.node.tests.real_nodes import (
    FAST,
    RealNodes,
    epoch_store,
    messages,
    real_nodes,
    run,
    take_epoch_store_away,
    until,
)
from logdevice.protocol.messages.read import (
    EpochMetadataIs,
    GetEpochMetadata,
    Start,
    Started,
    StartedStatus,
    Window,
)
from logdevice.protocol.messages.rebuilding import CopiesAre, GetCopies, Pong
from logdevice.protocol.messages.service import (
    ChangeLogs,
    DirectoryChange,
    FindLog,
    FindRecord,
    FindSequencer,
    FindTime,
    GetLogs,
    GetStatus,
    GetStoredRange,
    RecordFound,
    TimeFound,
)
from logdevice.protocol.messages.write import Append, AppendStatus, GetTail, Seal, Tail, Trim
from logdevice.protocol.metadata_log.entries import metadata_log_of
from logdevice.settings import WireSettings, WriteSettings
from logdevice.types import LSN_MAX, LSN_OLDEST, Epoch, LogId, Lsn, MetadataSource, NodeId
from logdevice.wire.channel import Channels
from logdevice.wire.codec import encode
from logdevice.wire.hello import Hello


async def change(cluster: RealNodes, kind: DirectoryChange, path: str, **more: str) -> list[str]:
    new_path = more.pop("new_path", "")
    request = ChangeLogs(change=kind, path=path, new_path=new_path, attributes=tuple(more.items()))
    return [view.path for view in (await cluster.ask(0, request)).logs]


def test_the_log_directory_is_changed_and_shown(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            assert await change(cluster, DirectoryChange.CREATE_DIRECTORY, "/ads", replication="1") == [
                "/ads"
            ]
            log = await cluster.create("/ads/clicks", backlog_s=60)
            assert await change(cluster, DirectoryChange.SET, "/ads", sync_leaders="0") == [
                "/ads",
                "/ads/clicks",
            ]
            view = (await cluster.ask(0, GetLogs("/ads/clicks"))).logs[0]
            shown = {name: (value, source) for name, value, source in view.attributes}
            assert view.log == log
            assert shown["backlog_s"] == ("60", "/ads/clicks")
            assert shown["replication"] == ("node: 1", "/ads")
            assert shown["sync_leaders"] == ("0", "/ads")
            assert shown["scd"] == ("true", "")
            await change(cluster, DirectoryChange.SET, "/ads/clicks", backlog_s="")
            assert await change(cluster, DirectoryChange.RENAME, "/ads/clicks", new_path="/c") == ["/c"]
            assert await change(cluster, DirectoryChange.REMOVE, "/c") == []
            assert [other.path for other in (await cluster.ask(0, GetLogs("/"))).logs] == ["/", "/ads"]

    run(story())


def test_a_log_that_cannot_be_stored_is_refused_when_it_is_made(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            await cluster.create("/a", replication=1)
            with pytest.raises(NameTakenError):
                await cluster.create("/a", replication=1)
            with pytest.raises(InvalidArgumentError, match="cannot be satisfied by the 1 storage nodes"):
                await cluster.create("/b", replication=3)
            with pytest.raises(InvalidArgumentError, match="replication must be"):
                await cluster.create("/b", replication="many")

    run(story())


def test_a_log_that_does_not_exist_is_unknown_to_every_request(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = LogId(77)
            requests = [
                Append(log=log, body=b"x", entries=1),
                FindSequencer(log),
                FindTime(log, 5),
                GetEpochMetadata(log, Epoch(1)),
                GetStoredRange(log),
                Trim(log, Lsn(5)),
                GetLogs("/nowhere"),
                FindLog(log),
            ]
            for request in requests:
                with pytest.raises(UnknownLogError):
                    await cluster.ask(0, request)
            stream = await cluster.open_read(0, log)
            with pytest.raises(UnknownLogError):
                await stream.receive()

    run(story())


def test_a_log_made_through_one_node_is_known_to_the_others_when_they_are_asked(tmp_path: Path) -> None:
    async def story() -> None:
        slow = replace(FAST, node=replace(FAST.node, configuration_poll_ms=60_000))
        async with real_nodes(tmp_path, 0, 1, settings=slow) as cluster:
            log = await cluster.create("/a", replication=1)
            assert (await cluster.ask(1, GetLogs("/a"))).logs[0].log == log
            assert [view.path for view in (await cluster.ask(1, FindLog(log))).logs] == ["/a"]
            await change(cluster, DirectoryChange.RENAME, "/a", new_path="/A")
            assert [view.path for view in (await cluster.ask(1, FindLog(log))).logs] == ["/A"]
            other = await cluster.create("/b", replication=1)
            assert (await cluster.ask(1, FindSequencer(other))).node is not None
            await cluster.create("/c", replication=1)
            listed = (await cluster.ask(1, GetLogs("/"))).logs
            assert [view.path for view in listed] == ["/", "/A", "/b", "/c"]

    run(story())


def test_logs_are_listed_as_last_heard_while_the_epoch_store_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        node = NodeContext(RealNodes(tmp_path).config(0))
        async with epoch_store(tmp_path) as store:
            await store.change_directory(lambda directory: directory.with_log("/a", {"replication": "1"}))
            node.epoch_store, node.cluster_view = store, NodeClusterView(store)
            await node.cluster_view.refresh()
            take_epoch_store_away(tmp_path)
            service = DirectoryService(node)
            assert [view.path for view in (await service.get_logs(GetLogs(""))).logs] == ["/", "/a"]
            assert "may be out of date" in caplog.text
            with pytest.raises(MetadataUnavailableError):
                await service.get_logs(GetLogs("/b"))

    run(story())


def test_a_body_that_is_too_large_is_refused_and_the_node_lives_on(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(
            FAST, write=WriteSettings(body_bytes_max=1000), wire=WireSettings(message_bytes_max=8 << 20)
        )
        async with real_nodes(tmp_path, 0, settings=settings) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"x" * 1000)
            answer = await cluster.ask(0, Append(log=log, body=b"x" * 1001, entries=1))
            assert answer.status is AppendStatus.TOO_BIG
            with pytest.raises(PayloadTooLargeError):
                await cluster.ask(0, Append(log=log, body=bytes(8 << 20), entries=1))
            await cluster.append(log, b"fine")

    run(story())


def test_a_caller_of_another_cluster_is_turned_away(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            channels = Channels(Hello(cluster="other"), WireSettings())
            with pytest.raises(WrongClusterError):
                await channels.get(cluster.nodes[0].address).connect()
            await channels.close()

    run(story())


def test_requests_that_only_nodes_may_send_are_refused_to_clients(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            seal = Seal(log=log, epoch=Epoch(9), sealed_by=NodeId(3), last_clean=Epoch(0))
            with pytest.raises(AccessError):
                await cluster.ask(0, seal)
            with pytest.raises(AccessError):
                await cluster.ask(0, Trim(metadata_log_of(log), LSN_MAX))
            with pytest.raises(RemoteProtocolError, match="Pong is not a request"):
                await cluster.ask(0, Pong(1))

    run(story())


def test_a_read_stream_that_breaks_the_rules_ends_with_an_error(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            other = await cluster.create("/b", replication=1)
            for wrong in (
                encode(Window(other, 1, LSN_MAX, 5)),
                encode(Pong(1)),
                b"\x00nonsense",
                b"",
            ):
                stream = await cluster.open_read(0, log)
                await stream.send(wrong)
                with pytest.raises(RemoteProtocolError):
                    async for _ in messages(stream):
                        pass
            await cluster.append(log, b"fine")

    run(story())


def test_a_node_that_stores_nothing_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 1) as cluster:
            await cluster.start(0, roles=(NodeRole.SEQUENCER,))
            log = await cluster.create(replication=1)
            with pytest.raises(InvalidArgumentError, match="stores nothing"):
                await cluster.ask(0, GetStoredRange(log))
            with pytest.raises(InvalidArgumentError, match="stores nothing"):
                await cluster.ask(0, Trim(log, Lsn(5)))
            stream = await cluster.open_read(0, log)
            first = await anext(messages(stream))
            assert isinstance(first, Started)
            assert first.status is StartedStatus.FAILED
            stream.cancel()

    run(story())


def test_a_node_with_too_many_readers_tells_others_to_try_again(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(FAST, node=replace(FAST.node, read_streams_max=1))
        async with real_nodes(tmp_path, 0, settings=settings) as cluster:
            log = await cluster.create(replication=1)
            streams = [await cluster.open_read(0, log)]
            assert (await anext(messages(streams[0]))).status is StartedStatus.OK
            streams.append(await cluster.open_read(0, log))
            assert (await anext(messages(streams[1]))).status is StartedStatus.AGAIN
            for stream in streams:
                stream.cancel()

    run(story())


def test_a_second_start_on_one_connection_is_a_rewind(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            lsn = await cluster.append(log, b"x")
            stream = await cluster.open_read(0, log, end=lsn.next)
            seen = messages(stream)
            assert [type(await anext(seen)).__name__ for _ in range(2)] == ["Started", "Records"]
            again = Start(
                log=log,
                filter_version=2,
                start=LSN_OLDEST,
                end=lsn.next,
                window_end=LSN_MAX,
                window_bytes=1 << 20,
            )
            await stream.send(encode(again))
            assert [(await anext(seen)).filter_version for _ in range(2)] == [2, 2]
            stream.cancel()
            values = cluster.nodes[0].metrics.values()
            assert values["logdevice_rewinds_total"] == 1
            assert values['logdevice_read_starts_total{mode="ALL_SEND_ALL"}'] == 2

    run(story())


def test_a_storage_node_says_what_it_holds(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"x" * 10)
            second = await cluster.append(log, b"y" * 20)
            assert (await cluster.ask(0, GetStoredRange(log, LSN_OLDEST, LSN_MAX))).body_bytes == 30
            found: RecordFound = await cluster.ask(0, FindRecord(log=log, start=LSN_OLDEST, entries=1))
            assert found.record is not None
            assert (found.record.lsn, found.record.entry_start, found.record.byte_start) == (second, 1, 10)
            nothing = await cluster.ask(0, FindRecord(log=log, start=LSN_OLDEST, body_bytes=30))
            assert nothing == RecordFound(None)
            assert await cluster.ask(0, FindTime(log, 0)) == TimeFound(Lsn(0))
            assert await cluster.ask(0, FindTime(log, 1 << 50)) == TimeFound(second)

            async def released() -> bool:
                held: CopiesAre = await cluster.ask(0, GetCopies(log=log, start=LSN_OLDEST, end=LSN_MAX))
                return held.released_end == second.next

            await until(released)
            assert (await cluster.ask(0, GetStoredRange(log))).last == second

    run(story())


def test_the_tail_has_the_counters_of_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            lsn = await cluster.append(log, b"x" * 10)
            tail: Tail = await cluster.ask(0, GetTail(log))
            assert (tail.status, tail.end.lsn, tail.end.entry_end, tail.end.byte_end) == (
                AppendStatus.OK,
                lsn.next,
                1,
                10,
            )

    run(story())


def test_every_node_knows_which_nodes_store_an_epoch(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=2)
            await cluster.append(log, b"x")
            # A record may be acknowledged, but not released, before its epoch is in the metadata log.
            found: EpochMetadataIs = await until(lambda: cluster.ask(1, GetEpochMetadata(log, Epoch(1))))
            assert found.source is MetadataSource.LAST
            assert found.metadata.nodeset == (NodeId(0), NodeId(1), NodeId(2))
            await change(cluster, DirectoryChange.SET, "/a", replication="3")

            async def bounded() -> bool:
                found: EpochMetadataIs = await cluster.ask(1, GetEpochMetadata(log, Epoch(1)))
                return found.source is MetadataSource.BOUNDED

            await until(bounded)

            async def newer() -> bool:
                # While the entry is being written, a read may reach only nodes that do not have it yet.
                found: EpochMetadataIs = await cluster.ask(2, GetEpochMetadata(log, Epoch(2), confirm=True))
                assert found.source is MetadataSource.LAST
                return found.metadata.replication.copies == 3

            await until(newer)

    run(story())


def test_the_metrics_of_a_node_are_the_same_in_the_status_and_for_prometheus(tmp_path: Path) -> None:
    port = choose_ports(1, None)[0]
    settings = replace(FAST, node=replace(FAST.node, metrics_port=port))

    async def story() -> None:
        async with real_nodes(tmp_path, 0, settings=settings) as cluster:
            log = await cluster.create("/ads/clicks", replication=1)
            await cluster.append(log, b"x")
            status = await cluster.ask(0, GetStatus())
            logs, metrics = json.loads(status.logs), json.loads(status.metrics)
            assert logs["/ads/clicks"]["epoch"] == 1
            assert logs["/ads/clicks"]["is_sequencer"] is True
            assert metrics['logdevice_appends_total{status="OK"}'] == 1
            page = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://127.0.0.1:{port}/metrics"
            )
            with page:
                lines = page.read().decode().splitlines()
            assert 'logdevice_appends_total{status="OK"} 1.0' in lines
            assert "logdevice_logs_sequenced 1.0" in lines

    run(story())


def test_the_method_of_read_streams_is_part_of_the_protocol() -> None:
    assert READ_METHOD == "read"
