"""The blocking client does what the async one does, from any thread, in any process."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import logdevice
from logdevice.client import BlockingReader, Client, Position, RecordsBatch, connect
from logdevice.client.loop_thread import shared
from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.client.tests.small_cluster import FIRST_RECORD_MS, SmallCluster, quick
from logdevice.errors import LocalProtocolError, NoSpaceError, UnknownLogError
from logdevice.protocol.messages.write import Append, AppendStatus
from logdevice.types import Gap, GapType, LogId, Lsn


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with cluster_in_a_thread() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: SmallCluster) -> Iterator[Client]:
    with Client(quick(cluster.endpoints)) as client:
        client.create_log("/log", {"replication": 2})
        yield client


def payloads(client: Client) -> list[bytes]:
    return [
        entry.payload
        for item in client.read("/log")
        if isinstance(item, RecordsBatch)
        for entry in item.entries()
    ]


def test_everything_can_be_done_without_a_loop(client: Client) -> None:
    first = client.append("/log", b"one", b"a")
    second = client.append_many("/log", [b"two", b"three"], [b"b", b"c"])
    with client.read("/log", first) as reader:
        batch = next(reader)
        assert isinstance(batch, RecordsBatch)
        third = client.append_batch("/log", batch.columns.select(["key", "payload"]))
        health = reader.health()
        assert health is not None
    assert [lsn.esn for lsn in (first, second, third)] == [1, 2, 3]
    assert client.tail("/log").next == third.next
    assert client.tails(["/log", "/log"]) == [client.tail("/log")] * 2
    assert client.sequencer("/log") == 1
    assert client.first_lsn("/log") == Lsn(1)
    assert client.find_time("/log", FIRST_RECORD_MS + 1000) == second
    assert client.find_key("/log", b"b") == second
    assert client.lsn_after("/log", first, entries=1) == second
    assert client.data_size("/log") > 0
    assert client.trim("/log", second) == ()
    assert not client.is_empty("/log")
    client.create_directory("/old")
    client.rename("/log", "/old/log")
    client.set_attributes("/old", {"backlog_s": 60})
    assert [log.path for log in client.logs("/old")] == ["/old", "/old/log"]
    client.remove_log("/old/log")
    with pytest.raises(UnknownLogError):
        client.tail("/old/log")
    assert client.node_status(1).node == client.cluster().nodes[0].node


def test_a_reader_times_out_goes_on_and_ends(client: Client) -> None:
    with client.read("/log", "tail", follow=True) as reader:
        with pytest.raises(TimeoutError):
            reader.next(timeout_ms=30)
        lsn = client.append("/log", b"one")
        item = reader.next(timeout_ms=10_000)
        assert isinstance(item, RecordsBatch)
        assert item.start == lsn
        reader.close()
        assert list(reader) == []


def test_a_record_that_cannot_be_decoded_is_a_gap(cluster: SmallCluster, client: Client) -> None:
    before = client.append("/log", b"before")
    cluster._release = lambda log, end: None  # type: ignore[method-assign]
    garbage = cluster.store(LogId(1), b"this is no batch", 1)
    del cluster._release
    after = client.append("/log", b"after")
    items = list(client.read("/log", before))
    assert [item for item in items if isinstance(item, Gap)] == [Gap(GapType.DATALOSS, garbage, after)]
    assert payloads(client) == [b"before", b"after"]


def test_a_writer_collects_in_the_callers_thread(cluster: SmallCluster, client: Client) -> None:
    small = Client(quick(cluster.endpoints, writer_batch_entries=10))
    with small, small.writer("/log", writer_delay_ms=60_000) as writer:
        receipts = [writer.put(b"%d" % i, b"k", {"a": "b"}) for i in range(25)]
        assert receipts[3].result(10_000) == Position(Lsn.of(1, 1), 3)
        assert not receipts[24].done()
        writer.flush()
        assert receipts[24].result() == Position(Lsn.of(1, 3), 4)
    appends = [request.entries for _, request in cluster.asked if isinstance(request, Append)]
    assert appends == [10, 10, 5]
    with pytest.raises(LocalProtocolError, match="closed"):
        writer.put(b"late")
    assert payloads(client) == [b"%d" % i for i in range(25)]


def test_an_entry_does_not_wait_for_others_for_long(client: Client) -> None:
    with client.writer("/log", writer_delay_ms=5) as writer:
        assert writer.put(b"alone").result(10_000) == Position(Lsn.of(1, 1), 0)


def test_a_writers_error_reaches_receipts_and_flush(cluster: SmallCluster, client: Client) -> None:
    cluster.scripted.append(AppendStatus.NO_SPACE)
    writer = client.writer("/log")
    receipt = writer.put(b"one")
    with pytest.raises(NoSpaceError):
        writer.flush()
    with pytest.raises(NoSpaceError):
        receipt.result()
    writer.close()


def test_many_threads_may_share_a_client_and_a_writer(client: Client) -> None:
    writer = client.writer("/log", writer_batch_bytes=2000, writer_memory_bytes_max=8000, writer_delay_ms=1)

    def put(thread: int) -> None:
        for i in range(200):
            writer.put(b"%d %d" % (thread, i))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    read = payloads(client)
    assert len(read) == 800
    for number in range(4):
        mine = [entry for entry in read if entry.startswith(b"%d " % number)]
        assert mine == [b"%d %d" % (number, i) for i in range(200)]


def test_a_client_that_was_pickled_connects_where_it_arrives(client: Client) -> None:
    client.append("/log", b"one")
    with pickle.loads(pickle.dumps(client)) as other:
        assert payloads(other) == [b"one"]


def test_closing_a_client_flushes_its_writers(cluster: SmallCluster, client: Client) -> None:
    other = connect(cluster.endpoints)
    receipt = other.writer("/log", writer_delay_ms=60_000).put(b"one")
    other.close()
    assert receipt.result(0) == Position(Lsn.of(1, 1), 0)


def test_what_a_writer_cannot_hand_over_fails(client: Client) -> None:
    writer = client.writer("/log", writer_delay_ms=60_000)
    receipt = writer.put(b"one")
    shared().run(writer._writer.close())
    with pytest.raises(LocalProtocolError, match="closed"):
        writer.flush()
    with pytest.raises(LocalProtocolError, match="closed"):
        receipt.result(0)


def test_a_closed_client_says_so(cluster: SmallCluster) -> None:
    client = connect(cluster.endpoints)
    client.close()
    client.close()
    with pytest.raises(LocalProtocolError, match="closed"):
        client.cluster()


def test_a_client_without_references_is_closed(cluster: SmallCluster) -> None:
    for in_the_loop in (False, True):
        client: Client | None = connect(cluster.endpoints)
        assert client is not None
        client.cluster()
        inner = client.engine().client

        async def forget() -> None:
            nonlocal client
            client = None

        if in_the_loop:
            shared().run(forget())
        else:
            client = None
        while not inner.context.nodes._is_closed:
            shared().run(asyncio.sleep(0.01))


def test_a_reader_without_references_is_closed(client: Client) -> None:
    client.append("/log", b"one")
    reader: BlockingReader | None = client.read("/log", follow=True)
    assert reader is not None
    inner = reader._reader
    for _ in reader:
        break
    reader = None
    while not inner._inbox.has_ended:
        shared().run(asyncio.sleep(0.01))


def test_the_names_of_the_client_are_in_the_package() -> None:
    assert logdevice.connect is connect
    assert logdevice.Client is Client
    assert logdevice.RecordsBatch is RecordsBatch
    assert logdevice.AsyncClient.__name__ == "AsyncClient"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        logdevice.nonsense  # noqa: B018


def run_python(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_none_of_the_clients_libraries() -> None:
    loaded = run_python("import logdevice, sys; print(*sys.modules)").split()
    assert not {"grpc", "pyarrow", "numpy", "tenacity", "asyncio"} & set(loaded)


FORKS_BEFORE_USE = """
import os, sys, warnings
import logdevice
client = logdevice.connect(sys.argv[1])
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        client.append("/log", b"from child %d" % number)
        client.close()
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
print(client.tail("/log").entry_end)
"""


def test_a_client_made_before_a_fork_works_in_every_child(cluster: SmallCluster, client: Client) -> None:
    assert run_python(FORKS_BEFORE_USE, cluster.endpoints).split("\n")[:2] == ["[0, 0, 0]", "3"]


FORKS_AFTER_USE = """
import os, sys
import logdevice
client = logdevice.connect(sys.argv[1])
client.append("/log", b"from the parent")
child = os.fork()
if child == 0:
    try:
        client.append("/log", b"from the child")
    except logdevice.LocalProtocolError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
client.close()
"""


def test_a_client_used_before_a_fork_says_so_in_the_child(cluster: SmallCluster, client: Client) -> None:
    assert run_python(FORKS_AFTER_USE, cluster.endpoints) == "7\n"


LEAVES_IT_OPEN = """
import sys
import logdevice
client = logdevice.connect(sys.argv[1])
writer = client.writer("/log", writer_delay_ms=60_000)
writer.put(b"left to the end of the process")
reader = client.read("/log", follow=True)
next(reader)
"""


def test_a_process_may_end_with_everything_open(cluster: SmallCluster, client: Client) -> None:
    assert run_python(LEAVES_IT_OPEN, cluster.endpoints) == ""
    assert payloads(client) == [b"left to the end of the process"]
