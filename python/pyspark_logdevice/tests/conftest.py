"""Nodes for tests that can share them: a test file has them for itself, and makes its own logs."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.client.tests.small_cluster import SmallCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[SmallCluster]:
    with cluster_in_a_thread() as cluster:
        yield cluster
    gc.unfreeze()  # `connections.freeze_gc` is meant for processes that do nothing else
