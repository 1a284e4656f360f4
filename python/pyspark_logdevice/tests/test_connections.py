"""Clients are kept for a process, not for a task, and never taken over from the process that forked it."""

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
from pyspark_logdevice import connections
from pyspark_logdevice.options import ReadOptions

OPTIONS = ReadOptions(endpoint="127.0.0.1:1", logs=("/log",))

# As Spark's daemon does: everything is imported, then each worker is forked, uses clients and ends.
WORKERS = """
import gc, os, sys
from pyspark_logdevice import connections
from pyspark_logdevice.options import ReadOptions

options = ReadOptions(endpoint=sys.argv[1], logs=("/log",))
before = connections.client(options)
for worker in range(3):
    child = os.fork()
    if child == 0:
        connections.freeze_gc()
        client = connections.client(options)
        assert client is not before
        assert client is connections.client(options)
        sys.stdout.write(f"{client.tail('/log').next} {gc.get_freeze_count() > 0}\\n")
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


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
    assert connections.client(replace(OPTIONS, retry_timeout_ms=7_000)).config.client.call_timeout_ms == 7_000


def test_forked_workers_have_clients_of_their_own(cluster: SmallCluster) -> None:
    with connect(cluster.endpoints) as client:
        client.create_log("/log", {"replication": 2})
        end = client.append("/log", b"one").next
    done = subprocess.run(
        [sys.executable, "-c", WORKERS, cluster.endpoints], stdout=subprocess.PIPE, check=True, timeout=60
    )
    assert done.stdout.decode().splitlines() == [f"{end} True"] * 3


def test_a_worker_settles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[int] = []
    monkeypatch.setattr(connections, "_frozen_process", 0)
    monkeypatch.setattr(gc, "collect", lambda: collections.append(1))
    try:
        connections.freeze_gc()
        connections.freeze_gc()
        assert collections == [1]
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
