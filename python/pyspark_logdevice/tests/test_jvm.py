"""How a session gets the jar, and what a worker sends to the JVM."""

from __future__ import annotations

import io
import logging
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyspark_logdevice import jvm
from pyspark_logdevice.jvm_surface.worker import BATCH, ROWS, send
from pyspark_logdevice.read import task_metrics

FRAME = struct.Struct("!iq")  # the kind of frame, and a number


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "logdevice.jar"
    path.touch()
    monkeypatch.setattr(jvm, "_JAR", path)
    return path


@pytest.fixture
def builder() -> SparkSession.Builder:
    return SparkSession.Builder()


def test_the_jar_is_added_to_the_jars_of_the_builder(jar: Path, builder: SparkSession.Builder) -> None:
    builder.config("spark.jars", "/opt/one.jar,/opt/two.jar")
    configured = jvm.configure(jvm.configure(builder))
    assert configured._options["spark.jars"] == f"/opt/one.jar,/opt/two.jar,{jar}"


def test_the_catalog_gets_its_cluster_and_options(jar: Path, builder: SparkSession.Builder) -> None:
    jvm.configure(builder, "host:1", catalog="logs", scd="false")
    assert builder._options == {
        "spark.jars": str(jar),
        "spark.sql.catalog.logs": jvm.CATALOG_CLASS,
        "spark.sql.catalog.logs.endpoint": "host:1",
        "spark.sql.catalog.logs.scd": "false",
    }


def test_without_the_jar_the_python_surface_is_used(
    jar: Path, builder: SparkSession.Builder, caplog: pytest.LogCaptureFixture
) -> None:
    jar.unlink()
    with caplog.at_level(logging.WARNING):
        assert jvm.configure(builder)._options == {}
    assert caplog.messages == [
        f"{jar} does not exist: the package was installed without the JVM surface. Run `make jar` in a "
        "checkout, or install a wheel that contains the jar. Logs are read by the Python surface, and "
        "there is no catalog."
    ]
    with pytest.raises(jvm.JarMissingError):
        jvm.configure(builder, required=True)


def test_task_metrics_are_taken_once() -> None:
    task_metrics.take()
    task_metrics.add("records", 3)
    task_metrics.add("records", 4)
    task_metrics.add("gaps")
    assert task_metrics.take() == {"records": 7, "gaps": 1}
    assert task_metrics.take() == {}


def test_an_unknown_task_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="no task metric is called 'recrods'; those known are records, "):
        task_metrics.add("recrods")


def received(out: bytes) -> list[tuple[int, pa.RecordBatch]]:
    """What the JVM reads from frames with batches: which columns were sent, and the columns."""
    source, schemas, found = pa.BufferReader(out), {}, []
    while head := source.read(FRAME.size):
        kind, sent = FRAME.unpack(head)
        assert kind == BATCH
        if sent not in schemas:
            schemas[sent] = pa.ipc.read_schema(pa.ipc.read_message(source))
        found.append((sent, pa.ipc.read_record_batch(pa.ipc.read_message(source), schemas[sent])))
    return found


def test_a_batch_is_sent_without_columns_that_have_only_nulls() -> None:
    def batch(lsns: list[int], gaps: list[str | None]) -> pa.RecordBatch:
        rows = len(lsns)
        columns = [pa.nulls(rows, pa.binary()), pa.array(lsns), pa.array(gaps, pa.string())]
        return pa.RecordBatch.from_arrays(columns, names=["key", "lsn", "gap"])

    batches = [batch([1, 2], [None, None]), batch([3], ["TRIM"]), batch([4], [None]), batch([], [])]
    out = io.BytesIO()
    send(iter(batches), out)
    assert received(out.getvalue()) == [
        (0b011, batches[0].select(["key", "lsn"])),
        (0b111, batches[1]),
        (0b011, batches[2].select(["key", "lsn"])),
        (0b001, batches[3].select(["key"])),
    ]


def test_rows_without_columns_are_sent_as_a_number() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 5, [None]))
    out = io.BytesIO()
    send(iter([rows, rows]), out)
    assert out.getvalue() == FRAME.pack(ROWS, 5) * 2
