"""Spark sessions that can write Delta tables: which jars, from where, and what must be configured.

The jars come from Maven Central through Spark's own resolver and are kept inside the virtual environment
(outside of one: where Spark keeps such things). `python -m pyspark_logdevice.delta` fetches them ahead of
time; without that the first session does, which needs the network once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

# What delta-spark is built for; its artifacts carry the Spark version in their names.
SPARK: Final = "4.2"
# Spark has these in its own jars already, in versions that fit.
EXCLUDED: Final = (
    "com.fasterxml.jackson.core com.fasterxml.jackson.datatype com.github.luben com.google.code.findbugs "
    "commons-logging commons-pool io.airlift javax.annotation org.apache.hadoop org.apache.logging.log4j "
    "org.apache.parquet org.locationtech.jts org.roaringbitmap org.slf4j org.xerial.snappy"
)
_FETCH_TIMEOUT_S: Final = 300


def package() -> str:
    """The Maven coordinates of Delta, in the version of delta-spark; an ImportError if that is missing."""
    return f"io.delta:delta-spark_{SPARK}_2.13:{version('delta-spark')}"


def jar_cache() -> Path | None:
    """Where jars are kept; None: where Spark keeps them by default."""
    is_virtual = sys.prefix != sys.base_prefix
    return Path(sys.prefix) / "share" / "logdevice" / "jars" if is_virtual else None


def settings() -> Mapping[str, str]:
    """What a session needs to know Delta."""
    cache = jar_cache()
    return {
        "spark.jars.packages": package(),
        "spark.jars.excludes": ",".join(f"{group}:*" for group in EXCLUDED.split()),
        **({"spark.jars.ivy": str(cache)} if cache else {}),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """The builder, for sessions that know Delta."""
    for name, value in settings().items():
        builder = builder.config(name, value)
    return builder


def fetch() -> None:
    """Has Spark fetch the jars, by an application that does nothing."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = [word for name, value in settings().items() for word in ("--conf", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as directory:
        nothing = Path(directory) / "nothing.py"
        nothing.touch()
        done = subprocess.run(
            [str(submit), *options, str(nothing)],
            capture_output=True,
            text=True,
            timeout=_FETCH_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        sys.exit(f"{done.stderr}\nDelta's jars could not be fetched from Maven Central; see above")


def _resolved() -> Iterator[Path]:
    cache = jar_cache()
    if cache:
        yield from sorted((cache / "jars").glob("io.delta_*.jar"))


if __name__ == "__main__":
    fetch()
    sys.stdout.write("".join(f"{jar}\n" for jar in _resolved()))
