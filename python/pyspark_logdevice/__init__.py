"""The Spark connector: `spark.readStream.format("logdevice")`.

Spark imports every installed module whose name begins with `pyspark_` to look for data sources. If one of
these imports fails, Spark finds no source at all. So importing this package never fails: without Spark, or
with a broken installation, the source is not found, and `LOAD_ERROR` says why.
"""

from __future__ import annotations

LOAD_ERROR: str | None
try:
    from pyspark_logdevice.jvm import configure, jar_path
    from pyspark_logdevice.source import LogDeviceSource as DefaultSource
except Exception as problem:
    LOAD_ERROR = f"{type(problem).__name__}: {problem}"
else:
    LOAD_ERROR = None
    __all__ = ["DefaultSource", "configure", "jar_path"]
