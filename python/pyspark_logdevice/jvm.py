"""The jar of the JVM surface: where it is, and how to add it to a session.

The jar is part of the wheel. Without it, logs are read by the Python surface, which is slower and has no
catalog. `configure` then logs a warning, or raises an error if the jar is required.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

CATALOG: Final = "logdevice"
CATALOG_CLASS: Final = "logdevice.spark.catalog.LogDeviceCatalog"

_JAR: Final = Path(__file__).parent / "jars" / "logdevice-spark-connector.jar"
_log = logging.getLogger(__name__)


class JarMissingError(FileNotFoundError):
    """The package was installed without the jar of the JVM surface."""


def jar_path() -> str:
    """The path of the JVM surface's jar, for `--jars` and `spark.jars`.

    Raises JarMissingError if the package was installed without it.
    """
    if not _JAR.is_file():
        raise JarMissingError(
            f"{_JAR} does not exist: the package was installed without the JVM surface. Run `make jar` in a "
            "checkout, or install a wheel that contains the jar."
        )
    return str(_JAR)


def configure(
    builder: SparkSession.Builder,
    endpoint: str | None = None,
    *,
    catalog: str = CATALOG,
    required: bool = False,
    **options: str,
) -> SparkSession.Builder:
    """Adds the JVM surface to a session builder, and returns the builder. Call it before `getOrCreate()`.

    The jar is added to the builder's `spark.jars`. A `spark.jars` in a configuration file is not visible here
    and would be replaced, so name those jars in the builder as well.

    The SQL catalog gets the name `catalog`. `endpoint` says which cluster it shows; `options` are options of
    the source that hold for all its tables.

    Without the jar, logs a warning and leaves the builder unchanged; with `required`, raises JarMissingError.
    """
    try:
        jar = jar_path()
    except JarMissingError as missing:
        if required:
            raise
        _log.warning("%s Logs are read by the Python surface, and there is no catalog.", missing)
        return builder
    add_jars(builder, jar)
    builder.config(f"spark.sql.catalog.{catalog}", CATALOG_CLASS)
    for name, value in ({"endpoint": endpoint} if endpoint else {}).items() | options.items():
        builder.config(f"spark.sql.catalog.{catalog}.{name}", value)
    return builder


def add_jars(builder: SparkSession.Builder, *jars: str) -> None:
    """Adds jars to those that the builder already has."""
    before = [jar for jar in str(builder._options.get("spark.jars", "")).split(",") if jar]
    builder.config("spark.jars", ",".join(dict.fromkeys([*before, *jars])))
