"""The one Spark session of a run, for logs, Kafka and Delta, with the same settings for all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from logdevice.bench.against_kafka.kafka_clients import Jars
from pyspark_logdevice import delta, jvm
from pyspark_logdevice.sessions import LOCAL_SETTINGS, SETTINGS

CORES: Final = 2
DRIVER_MEMORY: Final = "3g"
KILL_TIMEOUT_S: Final = 10


def start(scratch: Path, jars: Jars) -> SparkSession:
    """A new session in this process. Spark's error output goes to a file in `scratch`."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.Builder().master(f"local[{CORES}]").appName("bench")
    settings = {
        **SETTINGS,
        **LOCAL_SETTINGS,
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.source.glob("*.jar"))),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _errors_to(scratch / "spark.log"):
        return jvm.configure(delta.configure(builder), required=True).getOrCreate()


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Processes that are started in the block write their error output to this file."""
    sys.stderr.flush()
    before = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def kill() -> None:
    """Ends Spark's process, which may be in the middle of a call.

    A late answer to a call that was given up must not be taken for the answer to another.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway._gateway_client.is_connected = False  # otherwise each collected object logs an error
    gateway.proc.kill()
    gateway.proc.wait(KILL_TIMEOUT_S)
    gateway.shutdown_callback_server()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
