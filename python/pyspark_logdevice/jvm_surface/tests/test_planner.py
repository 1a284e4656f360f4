"""The planner of a stream gives the JVM the same answers as Spark's own runner for Python sources."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.serializers import SpecialLengths
from pyspark.sql.streaming import python_streaming_source_runner as spark_runner
from pyspark.worker_util import pickleSer

from logdevice.client import Client
from logdevice.client.tests.small_cluster import SmallCluster, quick
from pyspark_logdevice import connections
from pyspark_logdevice.jvm_surface import planner
from pyspark_logdevice.read.rows import SCHEMA
from pyspark_logdevice.source import LogDeviceSource, StreamReader

NUMBER = struct.Struct("!i")
SOURCE = pickleSer.dumps(LogDeviceSource)
UNLIMITED = {"_type": "ReadAllAvailable"}


@pytest.fixture(scope="module")
def client(cluster: SmallCluster) -> Iterator[Client]:
    with Client(quick(cluster.endpoints)) as client:
        client.create_log("/log", {"replication": 2})
        for number in range(5):
            client.append_many("/log", [b"one of %d" % number, b"another"])
        yield client


@pytest.fixture
def options(cluster: SmallCluster, client: Client) -> Iterator[dict[str, str]]:
    yield {
        "endpoint": cluster.endpoints,
        "logs": "/log",
        "startingOffsets": "earliest",
        "pollTimeout": "1ms",
        "maxRecordsPerTrigger": "4",
    }
    for one in connections._clients.values():
        one.close()
    connections._clients.clear()


@pytest.fixture
def reader(options: dict[str, str]) -> Iterator[StreamReader]:
    made = LogDeviceSource(options).streamReader(SCHEMA)
    assert isinstance(made, StreamReader)
    yield made
    made.stop()


def as_json(question: dict[str, Any]) -> bytes:
    return json.dumps(question).encode()


def with_length(value: bytes) -> bytes:
    return NUMBER.pack(len(value)) + value


def asked(options: dict[str, str], *questions: dict[str, Any]) -> list[list[bytes]]:
    """The answers to these questions, asked of one stream."""
    opening = {"call": "open", "options": options, "schema": json.loads(SCHEMA.json())}
    sent = [opening, *questions, {"call": "end"}]
    out = io.BytesIO()
    planner.serve(io.BytesIO(b"".join(map(with_length, (SOURCE, *map(as_json, sent))))), out)
    answers, rest = [], io.BytesIO(out.getvalue())
    for _ in sent:
        (count,) = NUMBER.unpack(rest.read(4))
        answers.append([rest.read(NUMBER.unpack(rest.read(4))[0]) for _ in range(count)])
    assert rest.read() == b""
    assert answers[0] == answers[-1] == []
    return answers[1:-1]


def as_spark_asks(reader: StreamReader, start: bytes, limit: dict[str, Any]) -> bytes:
    """The answer that Spark gets without the jar."""
    infile, out = io.BytesIO(with_length(start) + with_length(json.dumps(limit).encode())), io.BytesIO()
    spark_runner.latest_offset_admission_control_func(reader, infile, out)
    return out.getvalue()


def latest(start: bytes, *, limited: bool) -> dict[str, Any]:
    return {"call": "latestOffset", "start": json.loads(start), "limited": limited}


def test_offsets_are_the_same_text_as_those_of_sparks_own_runner(
    options: dict[str, str], reader: StreamReader
) -> None:
    ((initial,),) = asked(options, {"call": "initialOffset"})
    assert json.loads(initial) == reader.initialOffset()
    limit = {"_type": "ReadMaxRows", "max_rows": 4}
    ((first, first_us, _), (all_of_it, _, _)) = asked(
        options, latest(initial, limited=True), latest(initial, limited=False)
    )
    assert with_length(first) == as_spark_asks(reader, initial, limit)
    assert with_length(all_of_it) == as_spark_asks(reader, initial, UNLIMITED)
    assert first != all_of_it
    ((nothing_new, holds_us, _),) = asked(options, latest(all_of_it, limited=True))
    assert nothing_new == all_of_it  # Spark compares the texts
    assert int(first_us) == 0 < int(holds_us) <= 1_000_000


def test_limits_are_those_of_the_options(options: dict[str, str]) -> None:
    (limits,) = asked(options, {"call": "limits"})
    assert json.loads(limits[0]) == {"bytes": 256 << 20, "records": 4}


def test_the_target_is_all_that_the_logs_have_now(options: dict[str, str], client: Client) -> None:
    ((initial,),) = asked(options, {"call": "initialOffset"})
    prepared, (end, _, report) = asked(
        options, {"call": "prepareForTriggerAvailableNow"}, latest(initial, limited=False)
    )
    assert prepared == [b"null"]
    (position,) = json.loads(end)["logs"].values()
    assert position["next"] == str(int(client.tail("/log").next))
    assert json.loads(report)["metrics"]["lagRecords"] == 0


def test_the_reader_of_the_stream_reads_its_partitions(options: dict[str, str]) -> None:
    ((initial,),) = asked(options, {"call": "initialOffset"})
    ((end, _, _),) = asked(options, latest(initial, limited=False))
    between = {"call": "partitions", "start": json.loads(initial), "end": json.loads(end)}
    (partitions, (pickled,)) = asked(options, between, {"call": "reader"})
    reader = pickleSer.loads(pickled)
    batches = [batch for one in partitions for batch in reader.read(pickleSer.loads(one))]
    assert sum(batch.num_rows for batch in batches) == 10
    assert all(batch.schema.names == SCHEMA.names for batch in batches)


def test_an_error_ends_the_stream_and_its_worker(options: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        asked(options, {"call": "nothing of the kind"})
    out = io.BytesIO()
    with pytest.raises(SystemExit):
        planner.main(io.BytesIO(with_length(b"2.7")), out)
    (sign,) = NUMBER.unpack(out.getvalue()[:4])
    assert sign == SpecialLengths.PYTHON_EXCEPTION_THROWN
    assert b"PYTHON_VERSION_MISMATCH" in out.getvalue()
