"""A Python worker for the JVM surface: takes one partition and sends Arrow batches directly on the socket.

Spark's Python daemon forks the worker, which calls `main` for each task, of any query. The reader is the same
as on the Python surface. Only how rows are sent differs: without a struct around the columns, without a copy,
and as a number of rows if no columns are asked for. The Java class ArrowPartitionReader, which reads the
frames, describes them.

Spark has no public interface for such a worker, so this module and `planner.py` use parts of Spark's own
workers. The driver imports both before it plans anything for the JVM surface. So a Spark that lacks one of
these parts fails there, with an ImportError that names it, and not in a task.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Final

import pyarrow as pa
from pyspark.logger.worker_io import capture_outputs
from pyspark.serializers import SpecialLengths, write_int, write_long, write_with_length
from pyspark.taskcontext import TaskContext
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

from pyspark_logdevice.read import task_metrics

BATCH: Final = 1
ROWS: Final = 2
END: Final = 3

Work = Callable[[IO[bytes], IO[bytes]], None]


def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Runs one task."""
    run(read_partition, "PYSPARK_EXECUTOR_MEMORY_MB", infile, outfile)


@with_faulthandler
def run(work: Work, memory_limit: str, infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Does one piece of work. After an error the process ends; otherwise it can be used again.

    `memory_limit` names the environment variable in which Spark passes the memory limit in megabytes.
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


def read_partition(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Sends all rows of the partition, and at the end the task's metrics."""
    context = json.loads(utf8_deserializer.loads(infile))
    TaskContext._setTaskContext(TaskContext.from_json(context))
    setup_broadcasts(infile)
    reader, partition = (read_command(pickleSer, infile) for _ in range(2))
    task_metrics.take()
    with capture_outputs():
        send(reader.read(partition), outfile)
    write_int(END, outfile)
    write_with_length(json.dumps(task_metrics.take()).encode(), outfile)
    TaskContext._setTaskContext(None)  # type: ignore[arg-type]


def send(batches: Iterator[pa.RecordBatch], outfile: IO[bytes]) -> None:
    """Sends a frame for each batch. Columns that have only nulls are left out, as `gap` in most batches."""
    streams: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
    for batch in batches:
        if batch.num_columns == 0:
            write_int(ROWS, outfile)
            write_long(batch.num_rows, outfile)
            continue
        filled = _filled(batch)
        sent = sum(1 << column for column in filled)
        part = batch if len(filled) == batch.num_columns else batch.select(filled)
        write_int(BATCH, outfile)
        write_long(sent, outfile)
        if sent not in streams:
            streams[sent] = pa.ipc.new_stream(outfile, part.schema)
        streams[sent].write_batch(part)


def _filled(batch: pa.RecordBatch) -> list[int]:
    """The numbers of the columns with values. The first is always included: it has the number of rows."""
    return [
        number
        for number, column in enumerate(batch.columns)
        if number == 0 or column.null_count < len(column)
    ]


if __name__ == "__main__":
    with get_sock_file_to_executor() as sock_file:
        main(sock_file, sock_file)
