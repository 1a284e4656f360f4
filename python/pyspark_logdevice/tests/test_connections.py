"""Clients are kept for a process, not for a task. A forked process never uses those of its parent."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from logdevice.client.blocking import connect
from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.client.tests.small_cluster import SmallCluster
from logdevice.types import Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.options.read import ReadOptions

OPTIONS = ReadOptions(endpoint="127.0.0.1:1", logs=("/log",))

# Like Spark's daemon: imports everything, then forks workers, which use clients and end.
WORKERS = """
import os, sys
from logdevice.types import Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.options.read import ReadOptions

options = ReadOptions(endpoint=sys.argv[1], logs=("/log",))
before = connections.client(options)
for worker in range(3):
    child = os.fork()
    if child == 0:
        client = connections.client(options)
        assert client is not before
        assert client is connections.client(options)
        sys.stdout.write(f"{client.tail('/log').next}\\n")
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""

# Does what each kind of worker does for Spark, and prints how many objects Spark's collector visits after it.
WORK = """
import gc, os, sys
import pyarrow as pa
from pyspark_logdevice.jvm_surface import worker
from pyspark_logdevice.options import write
from pyspark_logdevice.read.rows import SCHEMA
from pyspark_logdevice.source import LogDeviceSource
from pyspark_logdevice.write import sink

source = LogDeviceSource({"endpoint": sys.argv[1], "path": "/log"})

def create():
    source.schema()

def plan():
    source.reader(SCHEMA).partitions()

def read():
    reader = source.reader(SCHEMA)
    assert sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split)) == 1

def append():
    options = write.parse({"endpoint": sys.argv[1], "path": "/log", "writerId": "w"}, streaming=False)
    rows = pa.RecordBatch.from_pydict({"payload": [b"two"]})
    sink.append_rows(options, sink.Attempt("w", 0, 0), iter([rows]))

for work in (create, plan, read, append):
    child = os.fork()
    if child == 0:
        work()
        sys.stdout.write(f"{work.__name__} {len(gc.get_objects())} {gc.get_freeze_count()}\\n")
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
_MANY = 10_000  # modules make many times more objects; a worker that has just finished has some hundreds


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with cluster_in_a_thread() as cluster:
        yield cluster


def test_tasks_share_the_client_of_their_options() -> None:
    client = connections.client(OPTIONS)
    assert connections.client(replace(OPTIONS, gaps="all")) is client
    for other in (
        replace(OPTIONS, endpoint="127.0.0.1:2"),
        replace(OPTIONS, location="eu.one"),
        replace(OPTIONS, cluster="another"),
        replace(OPTIONS, retry_timeout_ms=7_000),
    ):
        assert connections.client(other) is not client
    settings = connections.client(replace(OPTIONS, retry_timeout_ms=7_000)).config.client
    assert (settings.call_timeout_ms, settings.attempt_timeout_ms) == (7_000, 5_000)
    assert (settings.delivery_bytes, settings.delivery_entries) == (4 << 20, 32_768)


def test_forked_workers_have_clients_of_their_own(cluster: SmallCluster) -> None:
    end = _log_with_one_record(cluster)
    assert _run(WORKERS, cluster).splitlines() == [str(end)] * 3


def test_sparks_garbage_collection_visits_few_objects_after_any_work(cluster: SmallCluster) -> None:
    """With the objects of all modules it would take longer than a small task, and occupy a core."""
    _log_with_one_record(cluster)
    seen = {
        name: (int(left), int(frozen))
        for name, left, frozen in map(str.split, _run(WORK, cluster).splitlines())
    }
    assert seen.keys() == {"create", "plan", "read", "append"}
    for name, (left, frozen) in seen.items():
        assert left < _MANY < frozen, f"after {name} the collector visits {left} objects; frozen: {frozen}"


def test_a_worker_without_new_imports_freezes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage of tasks must stay collectable."""
    monkeypatch.setattr(connections, "_modules_frozen", 0)
    try:
        connections.freeze_gc()
        frozen = gc.get_freeze_count()
        kept: list[list[int]] = [[] for _ in range(1_000)]
        connections.freeze_gc()
        assert gc.get_freeze_count() <= frozen
        assert len(kept) == 1_000
    finally:
        gc.unfreeze()


def _log_with_one_record(cluster: SmallCluster) -> Lsn:
    with connect(cluster.endpoints) as client:
        client.create_log("/log", {"replication": 2})
        return client.append("/log", b"one").next


def _run(program: str, cluster: SmallCluster) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, cluster.endpoints], stdout=subprocess.PIPE, check=True, timeout=60
    )
    return done.stdout.decode()
