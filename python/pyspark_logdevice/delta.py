"""Configures Spark sessions to read and write Delta tables, and fetches Delta's jars.

Spark's own resolver fetches the jars from Maven Central. They are kept in the virtual environment or, without
one, where Spark keeps fetched jars. `python -m pyspark_logdevice.delta` fetches them ahead of time. Otherwise
the first session does, and needs the network.
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

# The version for which delta-spark is built. The names of its artifacts contain it.
SPARK: Final = "4.2"
# Dependencies that Spark already has among its own jars, in suitable versions.
EXCLUDED: Final = (
    "com.fasterxml.jackson.core com.fasterxml.jackson.datatype com.github.luben com.google.code.findbugs "
    "commons-logging commons-pool io.airlift javax.annotation org.apache.hadoop org.apache.logging.log4j "
    "org.apache.parquet org.locationtech.jts org.roaringbitmap org.slf4j org.xerial.snappy"
)
_FETCH_TIMEOUT_S: Final = 300
_COMPLETE: Final = "delta-version"  # the file that says that all jars of a version are there


def package() -> str:
    """The Maven coordinates of Delta, in the version of the installed Python package delta-spark.

    Raises ImportError if that package is not installed.
    """
    return f"io.delta:delta-spark_{SPARK}_2.13:{version('delta-spark')}"


def jar_cache() -> Path | None:
    """The directory for the jars; None without a virtual environment, where Spark uses its default."""
    is_virtual = sys.prefix != sys.base_prefix
    return Path(sys.prefix) / "share" / "logdevice" / "jars" if is_virtual else None


SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds Delta's jars and settings to a session builder, and returns the builder.

    Uses the jars that were fetched before; otherwise Spark fetches them when the session starts. Raises
    ImportError if the Python package delta-spark is not installed.
    """
    jars = _fetched()
    if jars:
        # Named directly, because Spark's resolver would check each of them again, which takes seconds.
        jvm.add_jars(builder, *jars)
    for name, value in {**SETTINGS, **({} if jars else _fetching())}.items():
        builder = builder.config(name, value)
    return builder


def fetch() -> None:
    """Fetches Delta's jars, by running a Spark application that does nothing. Exits if that fails."""
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
        sys.exit(f"{done.stderr}\nDelta's jars could not be fetched from Maven Central: see the output above")
    cache = jar_cache()
    if cache is not None:
        (cache / _COMPLETE).write_text(version("delta-spark"), encoding="utf-8")


def _fetching() -> Mapping[str, str]:
    """The settings that make Spark fetch the jars."""
    cache = jar_cache()
    return {
        "spark.jars.packages": package(),
        "spark.jars.excludes": ",".join(f"{group}:*" for group in EXCLUDED.split()),
        **({"spark.jars.ivy": str(cache)} if cache else {}),
    }


def _fetched() -> list[str]:
    """The paths of the jars if they were fetched in the wanted version, else none."""
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
