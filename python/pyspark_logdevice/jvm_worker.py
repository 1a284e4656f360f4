"""A Python worker as the JVM surface uses it: one partition in, Arrow batches out, straight on the socket.

Spark's Python daemon forks it and calls `main` for each task, which may be of any query. What is run is the
very function that Spark's own workers would run; only the way back is another: no struct around the columns,
no copy, and a number instead of columns when none are asked for. The frames are described in the Java class
ArrowPartitionReader, their only reader.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final

import pyarrow as pa
from pyspark.logger.worker_io import capture_outputs
from pyspark.serializers import SpecialLengths, read_int, write_int, write_long, write_with_length
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

from pyspark_logdevice import task_metrics

BATCH: Final = 1
ROWS: Final = 2
END: Final = 3

ReadFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@with_faulthandler
def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """One task. Leaves the process fit for the next one, or ends it."""
    try:
        read, partition = _request(infile)
        task_metrics.take()
        with capture_outputs():
            send(read(iter([_as_input(partition)])), outfile)
        write_int(END, outfile)
        write_with_length(json.dumps(task_metrics.take()).encode(), outfile)
        TaskContext._setTaskContext(None)  # type: ignore[arg-type]
    except BaseException as error:
        handle_worker_exception(error, outfile)
        sys.exit(-1)
    if read_int(infile) == SpecialLengths.END_OF_STREAM:
        write_int(SpecialLengths.END_OF_STREAM, outfile)
    else:
        write_int(SpecialLengths.END_OF_DATA_SECTION, outfile)
        sys.exit(-1)


def _request(infile: IO[bytes]) -> tuple[ReadFunction, bytes]:
    read_int(infile)  # the number of the partition, which the task's context has too
    start_faulthandler_periodic_traceback()
    check_python_version(infile)
    setup_memory_limits(int(os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB", "-1")))
    TaskContext._setTaskContext(TaskContext.from_json(json.loads(utf8_deserializer.loads(infile))))
    setup_spark_files(infile)
    setup_broadcasts(infile)
    read, _ = read_command(pickleSer, infile)
    return read, infile.read(read_int(infile))


def _as_input(partition: bytes) -> pa.RecordBatch:
    """The partition as Spark's read function takes it."""
    return pa.RecordBatch.from_arrays([pa.array([partition], pa.binary())], names=["partition"])


def send(batches: Iterator[pa.RecordBatch], outfile: IO[bytes]) -> None:
    """A frame for each batch. Columns of nothing but nulls are left out: most have some, like `gap`."""
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
    """The columns that have values, and the first in any case: it carries the number of rows."""
    return [
        number
        for number, column in enumerate(batch.columns)
        if number == 0 or column.null_count < len(column)
    ]


if __name__ == "__main__":
    with get_sock_file_to_executor() as sock_file:
        main(sock_file, sock_file)
