"""Plans the batches of a stream for the JVM surface: questions in, answers out, for as long as it runs.

Spark's own way for Python sources starts a process for every stream and ends it with the stream; importing
and connecting takes longer there than many a batch. This one is a worker of Spark's pool: when a stream ends
it is kept, with all that, for the next one. The frames are described in the Java class StreamPlanner.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any, Final

import pyarrow as pa
from pyspark.serializers import SpecialLengths, write_int, write_with_length
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType
from pyspark.util import handle_worker_exception, start_faulthandler_periodic_traceback, with_faulthandler
from pyspark.worker_util import (
    check_python_version,
    get_sock_file_to_executor,
    pickleSer,
    setup_memory_limits,
    setup_spark_files,
    utf8_deserializer,
)

from pyspark_logdevice import connections
from pyspark_logdevice.source import LogDeviceSource, StreamReader

_END: Final = "end"
_NOTHING: Final = b"null"


@with_faulthandler
def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """One stream. Leaves the process fit for the next one, or ends it."""
    try:
        start_faulthandler_periodic_traceback()
        check_python_version(infile)
        setup_memory_limits(int(os.environ.get("PYSPARK_PLANNER_MEMORY_MB", "-1")))
        setup_spark_files(infile)
        serve(infile, outfile)
    except BaseException as error:
        handle_worker_exception(error, outfile)
        sys.exit(-1)
    write_int(SpecialLengths.END_OF_STREAM, outfile)
    outfile.flush()
    connections.settle()


def serve(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Until the stream ends."""
    opening = _question(infile)
    reader = LogDeviceSource(opening["options"]).streamReader(StructType.fromJson(opening["schema"]))
    assert isinstance(reader, StreamReader)
    try:
        _answer([], outfile)
        while (question := _question(infile))["call"] != _END:
            _answer(_CALLS[question["call"]](reader, question), outfile)
    finally:
        reader.stop()
    _answer([], outfile)


def _question(infile: IO[bytes]) -> dict[str, Any]:
    question: dict[str, Any] = json.loads(utf8_deserializer.loads(infile))
    return question


def _answer(parts: list[bytes], outfile: IO[bytes]) -> None:
    write_int(len(parts), outfile)
    for part in parts:
        write_with_length(part, outfile)
    outfile.flush()


def _as_json(value: Mapping[str, Any] | None) -> list[bytes]:
    # As Spark's own runner writes it: Spark compares offsets as texts, and either surface may go on.
    return [json.dumps(value).encode()]


def _latest(reader: StreamReader, question: dict[str, Any]) -> list[bytes]:
    limit = reader.getDefaultReadLimit() if question["limited"] else ReadAllAvailable()
    return _as_json(reader.latestOffset(question["start"], limit))


def _prepare(reader: StreamReader, question: dict[str, Any]) -> list[bytes]:
    reader.prepareForTriggerAvailableNow()
    return [_NOTHING]


def _partitions(reader: StreamReader, question: dict[str, Any]) -> list[bytes]:
    return [pickleSer.dumps(split) for split in reader.partitions(question["start"], question["end"])]


def _function(reader: StreamReader, question: dict[str, Any]) -> list[bytes]:
    return [pickleSer.dumps((partial(_read, reader), None))]


def _read(reader: StreamReader, partitions: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor, where a partition arrives as it does in Spark's own function: a batch of one value."""
    for batch in partitions:
        yield from reader.read(pickleSer.loads(batch.column(0)[0].as_py()))


_CALLS: Final[Mapping[str, Callable[[StreamReader, dict[str, Any]], list[bytes]]]] = {
    "initialOffset": lambda reader, _: _as_json(reader.initialOffset()),
    "latestOffset": _latest,
    "reportLatestOffset": lambda reader, _: _as_json(reader.reportLatestOffset()),
    "prepareForTriggerAvailableNow": _prepare,
    "partitions": _partitions,
    "function": _function,
}


if __name__ == "__main__":
    with get_sock_file_to_executor(timeout=None) as sock_file:
        main(sock_file, sock_file)
