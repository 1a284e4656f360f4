"""One Spark session and one cluster for all tests of a run; every test makes its own log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from integration_tests.cluster import Cluster
from integration_tests.spark import session
from integration_tests.spark.reading import Source
from logdevice.client.blocking import Client

# Tests of only the JVM surface. Without it they are left out, as are its runs of the other tests.
collect_ignore_glob = [] if "jvm" in session.SURFACES else ["test_jvm_*.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    started = session.start(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()


@pytest.fixture(params=session.SURFACES)
def source(request: pytest.FixtureRequest, spark: SparkSession, cluster: Cluster) -> Source:
    """Reads logs through Spark. A test that uses it runs once for each surface."""
    if request.param == "jvm":
        session.require_jar()
    return Source(spark, cluster.endpoint, request.param)


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.client() as client:
        yield client
