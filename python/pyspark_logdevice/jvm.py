"""The jar of the JVM surface: where it is, and how a session gets it.

The jar comes with the wheel. Without it everything still works, read the slower way and without the catalog;
`configure` therefore says so and goes on, unless it is told that the jar must be there.
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
    """The package was installed without its jar."""


def jar_path() -> str:
    """Where the jar is, for `--jars` and `spark.jars`."""
    if not _JAR.is_file():
        raise JarMissingError(
            f"{_JAR} does not exist: the package was installed without the JVM surface. Run `make jar` in a "
            "checkout, or install a wheel that was built after it."
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
    """Before `getOrCreate`: puts the jar beside those the builder has, and the catalog under its name.

    With `endpoint` the catalog knows its cluster; other options of the source may follow and hold for all its
    tables. `spark.jars` of a configuration file cannot be seen from here and would be replaced: name those
    jars in the builder as well. Without the jar: a warning, or JarMissingError if `required`.
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
    """Beside those that the builder has."""
    said = [jar for jar in str(builder._options.get("spark.jars", "")).split(",") if jar]
    builder.config("spark.jars", ",".join(dict.fromkeys([*said, *jars])))
