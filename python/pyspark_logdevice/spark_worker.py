"""A process of Spark's pool of Python workers, forked and kept by its daemon: what it does around its work.

There is no public way to be such a worker, so this is the one place that uses what Spark's own are made of.
The driver imports it, in `jvm_planner`, before it plans anything for the JVM surface: a Spark that lacks some
of it is noticed then, by an ImportError that names it, and not in a task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO

from pyspark.logger.worker_io import capture_outputs
from pyspark.serializers import SpecialLengths, write_int, write_long, write_with_length
from pyspark.util import handle_worker_exception, start_faulthandler_periodic_traceback, with_faulthandler
from pyspark.worker_util import (
    check_python_version,
    get_sock_file_to_executor,
    pickleSer,
    read_command,
    setup_broadcasts,
    setup_memory_limits,
    setup_spark_files,
    utf8_deserializer,
)

__all__ = [
    "capture_outputs",
    "get_sock_file_to_executor",
    "pickleSer",
    "read_command",
    "setup_broadcasts",
    "utf8_deserializer",
    "write_int",
    "write_long",
    "write_with_length",
]

Work = Callable[[IO[bytes], IO[bytes]], None]


@with_faulthandler
def run(work: Work, memory_limit: str, infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Does one piece of work. Leaves the process fit for the next one, or ends it.

    `memory_limit` is the variable by which Spark says how many megabytes the process may have.
    """
    try:
        start_faulthandler_periodic_traceback()
        check_python_version(infile)
        setup_memory_limits(int(os.environ.get(memory_limit, "-1")))
        setup_spark_files(infile)
        work(infile, outfile)
    except BaseException as error:
        handle_worker_exception(error, outfile)
        sys.exit(-1)
    write_int(SpecialLengths.END_OF_STREAM, outfile)
    outfile.flush()
