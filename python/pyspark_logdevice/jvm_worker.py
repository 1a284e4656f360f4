"""A Python worker as the JVM surface uses it: one partition in, Arrow batches out, straight on the socket.

Spark's Python daemon forks it and calls `main` for each task, which may be of any query. The reader is the
very one that Spark's own workers would use; only the way back is another: no struct around the columns, no
copy, and a number instead of columns when none are asked for. The frames are described in the Java class
ArrowPartitionReader, their only reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Final

import pyarrow as pa
from pyspark.taskcontext import TaskContext

from pyspark_logdevice import spark_worker, task_metrics
from pyspark_logdevice.spark_worker import pickleSer, write_int, write_long

BATCH: Final = 1
ROWS: Final = 2
END: Final = 3


def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """One task."""
    spark_worker.run(read_partition, "PYSPARK_EXECUTOR_MEMORY_MB", infile, outfile)


def read_partition(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Sends everything in the partition that is asked for, and at the end what was counted meanwhile."""
    context = json.loads(spark_worker.utf8_deserializer.loads(infile))
    TaskContext._setTaskContext(TaskContext.from_json(context))
    spark_worker.setup_broadcasts(infile)
    reader, partition = (spark_worker.read_command(pickleSer, infile) for _ in range(2))
    task_metrics.take()
    with spark_worker.capture_outputs():
        send(reader.read(partition), outfile)
    write_int(END, outfile)
    spark_worker.write_with_length(json.dumps(task_metrics.take()).encode(), outfile)
    TaskContext._setTaskContext(None)  # type: ignore[arg-type]


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
    with spark_worker.get_sock_file_to_executor() as sock_file:
        main(sock_file, sock_file)
