"""A Spark session for commands: it supports Delta, prints nothing, and ends with its `with` block.

Spark's JVM writes to the standard error of the process that starts it. A command needs that for its own
progress, so the JVM writes to a file instead. Without a file name, a temporary file is used, and its end is
shown only if Spark does not start.
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
    # Saves about 40 ms in every task that runs Python.
    "spark.python.unix.domain.socket.enabled": "true",
}
# When Spark runs on this machine: its defaults are meant for large clusters, and cost seconds here.
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
    """A new Spark session with Delta, stopped at the end of the `with` block.

    `master` says where Spark runs, such as `local[*]`. `settings` replace the defaults of this module. `log`
    names a file to which Spark's output is appended. Raises LogDeviceError, with the last lines of that
    output, if Spark does not start.
    """
    # Workers must use this Python: the `python3` on the path may lack this package.
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
