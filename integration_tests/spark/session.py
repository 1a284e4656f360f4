"""A Spark session for tests: small, quick with small batches, and with all files in its own directory."""

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

# Only `make test JVM=0` leaves out the JVM surface; otherwise its tests fail without a jar.
SURFACES: Final = ("python",) if os.environ.get("JVM") == "0" else ("jvm", "python")

# Two cores, and three tries for a task, as on a real cluster.
MASTER: Final = "local[2,3]"
# A JVM that runs for a minute is faster without the compiler and collector for long runs.
JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def configuration(scratch: Path) -> dict[str, str]:
    """Settings that make small batches quick; docs/spark.md says which of them suit production."""
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
        # transformWithState works with no other state store.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def require_jar() -> None:
    """Fails if the jar is missing, so that the tests of the JVM surface never pass without it."""
    try:
        jvm.jar_path()
    except jvm.JarMissingError as missing:
        message = f"The JVM surface is not tested: {missing} `make test JVM=0` leaves it out."
        pytest.fail(message, pytrace=False)


def quick_python(scratch: Path) -> Path:
    """A script that runs this Python without the zip that Spark puts first in the path: every process would
    compile the modules in the zip again, which takes three quarters of its start.
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
    """The builder of a session without any jar, whose workers use the same Python as the caller."""
    os.environ["PYSPARK_PYTHON"] = str(quick_python(scratch))
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = SparkSession.Builder().master(master).appName("logdevice-tests")
    for name, value in {**configuration(scratch), **(changes or {})}.items():
        chosen = chosen.config(name, value)
    return chosen


def builder(
    scratch: Path, master: str = MASTER, changes: Mapping[str, str] | None = None
) -> SparkSession.Builder:
    """The builder of a session with Delta and the jar of the JVM surface."""
    return jvm.configure(delta.configure(plain_builder(scratch, master, changes)))


def start(scratch: Path, master: str = MASTER, changes: Mapping[str, str] | None = None) -> SparkSession:
    session = builder(scratch, master, changes).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def cluster_environment(home: Path) -> dict[str, str]:
    """The environment for a Spark whose executors are other processes: everything stays on this machine, and
    workers may write to the directory `home`.
    """
    if not home.exists():
        home.mkdir()
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    return {**os.environ, "SPARK_HOME": str(home), **local}
