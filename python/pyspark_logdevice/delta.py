"""Spark sessions that can write Delta tables: which jars, from where, and what must be configured.

The jars come from Maven Central through Spark's own resolver and are kept inside the virtual environment
(outside of one: where Spark keeps such things). `python -m pyspark_logdevice.delta` fetches them ahead of
time; without that the first session does, which needs the network once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from pyspark_logdevice import jvm

# What delta-spark is built for; its artifacts carry the Spark version in their names.
SPARK: Final = "4.2"
# Spark has these in its own jars already, in versions that fit.
EXCLUDED: Final = (
    "com.fasterxml.jackson.core com.fasterxml.jackson.datatype com.github.luben com.google.code.findbugs "
    "commons-logging commons-pool io.airlift javax.annotation org.apache.hadoop org.apache.logging.log4j "
    "org.apache.parquet org.locationtech.jts org.roaringbitmap org.slf4j org.xerial.snappy"
)
_FETCH_TIMEOUT_S: Final = 300
_COMPLETE: Final = "delta-version"  # the file that says that all jars of a version are there


def package() -> str:
    """The Maven coordinates of Delta, in the version of delta-spark; an ImportError if that is missing."""
    return f"io.delta:delta-spark_{SPARK}_2.13:{version('delta-spark')}"


def jar_cache() -> Path | None:
    """Where jars are kept; None: where Spark keeps them by default."""
    is_virtual = sys.prefix != sys.base_prefix
    return Path(sys.prefix) / "share" / "logdevice" / "jars" if is_virtual else None


SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """The builder, for sessions that know Delta."""
    jars = _fetched()
    if jars:
        # Spark's resolver would look at each of them again, which takes seconds.
        jvm.add_jars(builder, *jars)
    for name, value in {**SETTINGS, **({} if jars else _fetching())}.items():
        builder = builder.config(name, value)
    return builder


def fetch() -> None:
    """Has Spark fetch the jars, by an application that does nothing."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = [
        word for name, value in {**SETTINGS, **_fetching()}.items() for word in ("--conf", f"{name}={value}")
    ]
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
    cache = jar_cache()
    if cache is not None:
        (cache / _COMPLETE).write_text(version("delta-spark"), encoding="utf-8")


def _fetching() -> Mapping[str, str]:
    """What has Spark fetch the jars."""
    cache = jar_cache()
    return {
        "spark.jars.packages": package(),
        "spark.jars.excludes": ",".join(f"{group}:*" for group in EXCLUDED.split()),
        **({"spark.jars.ivy": str(cache)} if cache else {}),
    }


def _fetched() -> list[str]:
    """The jars, if they have been fetched in the version that is wanted."""
    cache = jar_cache()
    if cache is None:
        return []
    group, artifact, wanted = package().split(":")
    has_all = (cache / _COMPLETE).is_file() and (cache / _COMPLETE).read_text(encoding="utf-8") == wanted
    is_there = (cache / "jars" / f"{group}_{artifact}-{wanted}.jar").is_file()
    return sorted(map(str, (cache / "jars").glob("*.jar"))) if has_all and is_there else []


if __name__ == "__main__":
    fetch()
    sys.stdout.write("".join(f"{jar}\n" for jar in _fetched()))
