"""The JVM surface and its Python workers: what it passes on, and what is left when workers fail.

Uses a stand-in for the real source, because nothing here depends on logs.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from integration_tests.spark import session
from integration_tests.spark.stand_in import ROWS, StandIn
from pyspark_logdevice.read import task_metrics

WAIT_S = 60


@pytest.fixture
def stand_in(spark: SparkSession) -> Iterator[SparkSession]:
    session.require_jar()
    other = spark.newSession()
    other.dataSource.register(StandIn)
    yield other
    assert wait_until(lambda: arrow_bytes(spark) == 0), f"{arrow_bytes(spark)} bytes of Arrow memory are left"


def arrow_bytes(spark: SparkSession) -> int:
    assert spark._jvm is not None
    allocated: int = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getAllocatedMemory()
    return allocated


def read(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("logdevice").options(**options).load()


def wait_until(condition: object) -> bool:
    """Checks the condition repeatedly, until it is true or the time is up."""
    assert callable(condition)
    until = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def is_gone(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def workers(pids: Path) -> list[str]:
    """The ids of processes, which they have written into a directory."""
    return [file.name for file in pids.iterdir() if file.is_file()]


def plan(frame: DataFrame) -> str:
    text: str = frame._jdf.queryExecution().executedPlan().toString()
    return text


def test_rows_are_the_same_on_both_surfaces(stand_in: SparkSession) -> None:
    by_jvm, by_python = (
        read(stand_in, surface=surface).orderBy("lsn").collect() for surface in ("jvm", "python")
    )
    assert len(by_jvm) == ROWS
    assert by_jvm == by_python
    assert by_jvm[4321].payload == b"4321"
    assert by_jvm[4321].attributes == {"n": "4321"}


def test_only_columns_that_are_used_are_asked_for(stand_in: SparkSession) -> None:
    frame = read(stand_in)
    assert "logdevice(jvm) columns [lsn]" in plan(frame.selectExpr("sum(lsn)"))
    assert "ColumnarToRow" in plan(frame.select("lsn"))
    assert frame.selectExpr("sum(lsn)").first() == (ROWS * (ROWS - 1) // 2,)
    assert "logdevice(jvm) columns []" in plan(frame.groupBy().count())
    assert frame.count() == ROWS
    assert frame.select("attributes.n", "lsn").where("lsn = 77").collect() == [("77", 77)]


def test_with_surface_python_spark_reads_without_the_jar(stand_in: SparkSession) -> None:
    assert "(Python)" in plan(read(stand_in, surface="python").select("lsn"))


def test_a_worker_serves_many_tasks(stand_in: SparkSession, tmp_path: Path) -> None:
    for _ in range(4):
        assert read(stand_in, pids=str(tmp_path)).count() == ROWS
    assert len(workers(tmp_path)) <= 2  # as many as there are cores


def test_a_query_that_has_enough_rows_ends_its_workers(stand_in: SparkSession, tmp_path: Path) -> None:
    frame = read(stand_in, pids=str(tmp_path), batches="1000")
    assert len(frame.select("lsn", "payload").limit(2_500).collect()) == 2_500
    assert wait_until(lambda: all(map(is_gone, workers(tmp_path))))


def test_an_error_in_python_reaches_the_user_with_its_traceback(
    stand_in: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(PythonException, match="ValueError: the stand-in was told to fail"):
        read(stand_in, what="raise", pids=str(tmp_path)).collect()
    assert wait_until(lambda: all(map(is_gone, workers(tmp_path))))
    assert read(stand_in).count() == ROWS


def test_a_worker_that_dies_fails_its_task_with_a_reason(stand_in: SparkSession) -> None:
    with pytest.raises(Py4JJavaError, match="The Python worker that reads logs for this task ended before"):
        read(stand_in, what="die").collect()
    assert read(stand_in).count() == ROWS


@pytest.mark.parametrize("interrupts", ["true", "false"])
def test_cancelling_ends_workers_that_hang(stand_in: SparkSession, tmp_path: Path, interrupts: str) -> None:
    errors: list[Exception] = []

    def run() -> None:
        stand_in.sparkContext.setJobGroup("hangs", "hangs", interrupts == "true")
        try:
            read(stand_in, what="hang", pids=str(tmp_path)).collect()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert wait_until(lambda: len(workers(tmp_path)) == 2), "the workers did not get as far as to hang"
    stand_in.sparkContext.cancelJobGroup("hangs")
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert "cancelled" in str(errors[0])
    assert wait_until(lambda: all(map(is_gone, workers(tmp_path))))


def test_a_task_whose_worker_was_killed_is_tried_again(stand_in: SparkSession, tmp_path: Path) -> None:
    """The worker is killed from outside, as an operating system does when memory is short."""
    frame = read(stand_in, what="hang once", pids=str(tmp_path))
    counted: list[int] = []
    thread = threading.Thread(target=lambda: counted.append(frame.count()))
    thread.start()
    assert wait_until(lambda: len(list(tmp_path.glob("again-*"))) == 2)
    for worker in workers(tmp_path):
        os.kill(int(worker), signal.SIGKILL)
    thread.join(WAIT_S)
    assert counted == [ROWS]


def test_metrics_of_tasks_are_in_the_plan(stand_in: SparkSession) -> None:
    frame = read(stand_in)
    frame.collect()
    metrics = frame._jdf.queryExecution().executedPlan().collectLeaves().head().metrics()
    assert {name for name in task_metrics.NAMES if metrics.contains(name)} == set(task_metrics.NAMES)
    assert metrics.apply("records").value() == ROWS
    assert metrics.apply("gaps").value() == 0


def test_both_sides_have_the_same_names_for_the_metrics(stand_in: SparkSession) -> None:
    assert stand_in._jvm is not None
    assert list(stand_in._jvm.logdevice.spark.TaskMetrics.names()) == list(task_metrics.NAMES)
