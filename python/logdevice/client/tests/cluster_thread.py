"""A small cluster for tests of blocking clients, in the loop that these use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from logdevice.client.loop_thread import shared
from logdevice.client.tests.small_cluster import SmallCluster, running


@contextmanager
def cluster_in_a_thread(size: int = 3, replication: int = 2) -> Iterator[SmallCluster]:
    context = running(size, replication)
    cluster = shared().run(context.__aenter__())
    try:
        yield cluster
    finally:
        shared().run(context.__aexit__(None, None, None))
