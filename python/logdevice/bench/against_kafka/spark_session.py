"""The one Spark session of a run: it knows logs, Kafka and Delta, and treats all of them alike."""

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
    """A new session in this process; what Spark says goes to a file in `scratch`."""
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
    """What is born in here says what it has to say in that file, for all its life."""
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
    """Ends Spark's process, which may be in the middle of anything: what a call that was given up would have
    answered must reach nobody.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway._gateway_client.is_connected = False  # or every object that is forgotten from now on complains
    gateway.proc.kill()
    gateway.proc.wait(KILL_TIMEOUT_S)
    gateway.shutdown_callback_server()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
