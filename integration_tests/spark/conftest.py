"""One Spark for all tests of a run, beside the cluster they share; every test makes its own log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from integration_tests.cluster import Cluster
from integration_tests.spark import session
from integration_tests.spark.reading import Source
from logdevice.client.blocking import Client

# Tests of the JVM surface alone, left out like its half of the others.
collect_ignore_glob = [] if "jvm" in session.SURFACES else ["test_jvm_*.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    started = session.start(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()


@pytest.fixture(params=session.SURFACES)
def source(request: pytest.FixtureRequest, spark: SparkSession, cluster: Cluster) -> Source:
    """A test that reads through it is run once for each of the two ways in which Spark can read."""
    if request.param == "jvm":
        session.require_jar()
    return Source(spark, cluster.endpoint, request.param)


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.client() as client:
        yield client
