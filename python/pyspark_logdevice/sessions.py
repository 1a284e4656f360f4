"""A Spark session for a command: knows Delta, is quiet, and ends with the block it is used in.

Spark's JVM writes to the standard error it is born with. A command has that for its own progress, so the JVM
gets a file instead: one that is kept if asked for, else one whose end is shown only if Spark does not start.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from logdevice.errors import LogDeviceError
from pyspark_logdevice import delta

APP_NAME: Final = "logdevice"
SETTINGS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # Saves about 40 ms of every task that runs Python.
    "spark.python.unix.domain.socket.enabled": "true",
}
# For a Spark on this machine: the defaults are meant for large clusters, and cost seconds here.
LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
}
_LAST_WORDS_BYTES: Final = 2_000


@contextmanager
def session(
    master: str, settings: Mapping[str, str] | None = None, log: str | None = None
) -> Iterator[SparkSession]:
    """A new session; `settings` win over those above."""
    # Workers must be the same Python: whatever `python3` is on the path may lack our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = delta.configure(SparkSession.builder.master(master).appName(APP_NAME))
    ours = {**SETTINGS, **(LOCAL_SETTINGS if master.startswith("local") else {})}
    for name, value in {**ours, **(settings or {})}.items():
        builder = builder.config(name, value)
    with open(log, "ab") if log else tempfile.TemporaryFile() as file:
        spark = _started(builder, file)
    try:
        yield spark
    finally:
        spark.stop()


def _started(builder: SparkSession.Builder, log: BinaryIO) -> SparkSession:
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        return builder.getOrCreate()
    except PySparkException as problem:
        raise LogDeviceError(f"Spark does not start: {problem}\n{_last_words(log)}") from problem
    finally:
        os.dup2(before, 2)
        os.close(before)


def _last_words(log: BinaryIO) -> str:
    end = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), _LAST_WORDS_BYTES, max(0, end - _LAST_WORDS_BYTES)).decode(errors="replace")
