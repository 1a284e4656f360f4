"""A Spark for tests: small, quick with small batches, and with nothing outside of its own directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark
import pytest
from pyspark.sql import SparkSession

from pyspark_logdevice import delta, jvm

# `make test JVM=0` leaves the JVM surface out, knowingly; without a jar its tests fail.
SURFACES: Final = ("python",) if os.environ.get("JVM") == "0" else ("jvm", "python")

# Two cores, and three tries for a task, as on a real cluster.
MASTER: Final = "local[2,3]"
# A JVM that lives for a minute does better without the compiler and collector that are made for days.
JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def configuration(scratch: Path) -> dict[str, str]:
    """Confs that make small batches quick; docs/spark.md says which of them suit production."""
    return {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
        "spark.executor.extraJavaOptions": JVM_OPTIONS,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # transformWithState takes no other.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def require_jar() -> None:
    """The tests of the JVM surface say so when they cannot run, instead of passing without it."""
    try:
        jvm.jar_path()
    except jvm.JarMissingError as missing:
        message = f"The JVM surface is not tested: {missing} `make test JVM=0` leaves it out."
        pytest.fail(message, pytrace=False)


def quick_python(scratch: Path) -> Path:
    """The caller's Python for the processes that Spark starts, without the zip that Spark puts first in their
    path: Python compiles what is in there anew in every process, which takes three quarters of its start.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    script = scratch / "python"
    path = """PYTHONPATH="$(printf %s "$PYTHONPATH" | tr : '\\n' | grep -v 'zip$' | paste -sd:)\""""
    script.write_text(f'#!/bin/sh\nexport {path}\nexec {sys.executable} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def plain_builder(
    scratch: Path, master: str = MASTER, changes: Mapping[str, str] | None = None
) -> SparkSession.Builder:
    """For a session without any jar, and with workers that use the same Python as the caller."""
    os.environ["PYSPARK_PYTHON"] = str(quick_python(scratch))
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = SparkSession.Builder().master(master).appName("logdevice-tests")
    for name, value in {**configuration(scratch), **(changes or {})}.items():
        chosen = chosen.config(name, value)
    return chosen


def builder(
    scratch: Path, master: str = MASTER, changes: Mapping[str, str] | None = None
) -> SparkSession.Builder:
    """For a session that knows Delta, and our own jar."""
    return jvm.configure(delta.configure(plain_builder(scratch, master, changes)))


def start(scratch: Path, master: str = MASTER, changes: Mapping[str, str] | None = None) -> SparkSession:
    session = builder(scratch, master, changes).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def cluster_environment(home: Path) -> dict[str, str]:
    """For a Spark whose executors are processes of their own: all of it stays on this machine, and its
    workers have a directory, `home`, into which they may write.
    """
    if not home.exists():
        home.mkdir()
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    return {**os.environ, "SPARK_HOME": str(home), **local}
