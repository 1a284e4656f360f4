"""What the source returns when Spark calls it. The calls are plain methods, so Spark is not needed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

import pyspark_logdevice
from logdevice.client import Client
from logdevice.client.tests.small_cluster import SmallCluster, quick
from logdevice.errors import InvalidOptionError
from pyspark_logdevice import connections, source
from pyspark_logdevice.plan.idle_backoff import PAUSE_MS_MIN
from pyspark_logdevice.plan.offsets import INITIAL
from pyspark_logdevice.read.rows import SCHEMA
from pyspark_logdevice.source import LogDeviceSource, StreamReader


@pytest.fixture(scope="module")
def client(cluster: SmallCluster) -> Iterator[Client]:
    with Client(quick(cluster.endpoints)) as client:
        client.create_log("/log", {"replication": 2})
        client.append_many("/log", [b"one", b"two", b"three"])
        yield client


@pytest.fixture
def reader(cluster: SmallCluster, client: Client) -> Iterator[StreamReader]:
    options = {
        "endpoint": cluster.endpoints,
        "logs": "/log",
        "startingOffsets": "earliest",
        "pollTimeout": "1ms",
    }
    made = LogDeviceSource(options).streamReader(SCHEMA)
    assert isinstance(made, StreamReader)
    yield made
    made.stop()
    connections.client(made._options).close()
    connections._clients.clear()


def stream(**options: str) -> StreamReader:
    made = LogDeviceSource({"endpoint": "a:1", "logs": "/log", **options}).streamReader(SCHEMA)
    assert isinstance(made, StreamReader)
    return made


def test_spark_finds_the_source_by_its_name() -> None:
    assert pyspark_logdevice.LOAD_ERROR is None
    assert pyspark_logdevice.DefaultSource is LogDeviceSource
    assert LogDeviceSource.name() == "logdevice"


def test_a_broken_installation_does_not_hide_other_sources() -> None:
    """Spark finds no source at all when one package cannot be imported."""
    code = (
        "import sys; sys.modules['pyspark'] = None; import pyspark_logdevice as package; "
        "print(package.LOAD_ERROR); print(hasattr(package, 'DefaultSource'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("ModuleNotFoundError: ")
    assert done.stdout.splitlines()[1] == "False"


def test_options_are_checked_when_a_frame_is_made() -> None:
    assert LogDeviceSource({"endpoint": "a:1", "logs": "/log"}).schema() == SCHEMA
    with pytest.raises(InvalidOptionError, match="there is no option 'logz'; the nearest is 'logs'"):
        LogDeviceSource({"endpoint": "a:1", "logz": "/log"}).schema()
    with pytest.raises(InvalidOptionError, match="option endingOffsets is for batch reads"):
        stream(endingOffsets="latest")


def test_spark_gets_one_of_the_limits() -> None:
    assert stream().getDefaultReadLimit() == ReadMaxBytes(256 << 20)
    assert stream(maxRecordsPerTrigger="7").getDefaultReadLimit() == ReadMaxRows(7)


def test_the_initial_offset_is_always_the_same() -> None:
    assert stream().initialOffset() == stream().initialOffset() == dict(INITIAL)
    assert stream().partitions(dict(INITIAL), dict(INITIAL)) == []


def through_spark(offset: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def test_a_reader_answers_the_calls_that_spark_makes(reader: StreamReader, client: Client) -> None:
    begin = reader.initialOffset()
    assert reader.reportLatestOffset() is None  # before anything was asked
    first = through_spark(reader.latestOffset(begin, reader.getDefaultReadLimit()))
    report = reader.reportLatestOffset()
    assert report is not None
    assert report["metrics"] == {"lagRecords": 0, "lagBytes": 0, "lagSeconds": 0.0, "logs": 1}
    (split,) = reader.partitions(begin, first)
    assert split.ranges[0].start == 1
    assert reader.latestOffset(first, ReadAllAvailable()) is first
    client.append("/log", b"four")
    second = through_spark(reader.latestOffset(first, ReadAllAvailable()))
    (split,) = reader.partitions(first, second)
    assert split.ranges[0].end == client.tail("/log").next
    reader.commit(first)
    copy = pickle.loads(pickle.dumps(reader))
    assert copy._made is None
    assert copy.partitions(first, first) == []
    copy.stop()


def test_available_now_reads_what_the_logs_have_at_the_start(reader: StreamReader, client: Client) -> None:
    reader.prepareForTriggerAvailableNow()
    tail = client.tail("/log").next
    client.append("/log", b"later")
    end = through_spark(reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit()))
    (position,) = end["logs"].values()
    assert position["next"] == str(int(tail))
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) is end


def test_an_idle_stream_answers_at_once_and_asks_seldom(
    cluster: SmallCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark asks the sources of a query one after the other, so a slow answer would delay all of them."""
    reader = LogDeviceSource(
        {"endpoint": cluster.endpoints, "logs": "/log", "startingOffsets": "latest", "pollTimeout": "1h"}
    ).streamReader(SCHEMA)
    assert isinstance(reader, StreamReader)
    clock_ms = 1000.0
    monkeypatch.setattr(source, "_now_ms", lambda: clock_ms)
    limit = reader.getDefaultReadLimit()
    at = through_spark(reader.latestOffset(reader.initialOffset(), limit))
    assert reader.latestOffset(at, limit) is at
    client.append("/log", b"new")
    assert reader.latestOffset(at, limit) is at, "the last answer is given again"
    assert reader.latestOffset(at, ReadAllAvailable()) is not at, "a read of everything asks the cluster"
    at = through_spark(reader.latestOffset(at, limit))
    assert reader.latestOffset(at, limit) is at
    assert reader.idle_ms() == PAUSE_MS_MIN
    client.append("/log", b"newer")
    clock_ms += PAUSE_MS_MIN
    assert reader.latestOffset(at, limit) is not at
    reader.stop()
    connections.client(reader._options).close()
    connections._clients.clear()
