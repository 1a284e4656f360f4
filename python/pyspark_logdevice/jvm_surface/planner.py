"""Answers the JVM surface's questions on the driver: about streams, about batches, and about logs for SQL.

For a Python source, Spark itself starts a process for every stream and ends it with the stream. There,
importing and connecting may take longer than a batch. This process is a worker of Spark's pool instead: when
a stream ends, or a single question is answered, the worker is kept, with its modules and connections, for the
next one. The Java class PythonPlanner describes the frames. The partitions are those of the Python surface,
without what filters leave out of a batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from pyspark.serializers import write_int, write_with_length
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType
from pyspark.worker_util import get_sock_file_to_executor, pickleSer, read_command, utf8_deserializer

from pyspark_logdevice import connections
from pyspark_logdevice.jvm_surface import catalog, worker
from pyspark_logdevice.plan.pushdown import Comparison
from pyspark_logdevice.read.rows import Columns
from pyspark_logdevice.source import BatchReader, StreamReader

_NOTHING: Final = b"null"
# The assumed size of a column that is not part of a body: exact enough to tell small tables from large ones.
_COLUMN_BYTES: Final = 8

Question = Mapping[str, Any]


def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Serves one stream, or answers one question."""
    worker.run(serve, "PYSPARK_PLANNER_MEMORY_MB", infile, outfile)
    connections.freeze_gc()


def serve(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Answers questions until the JVM sends `end`. The JVM first sends the session's source `logdevice`."""
    source = read_command(pickleSer, infile)
    stream: StreamReader | None = None
    try:
        while (question := json.loads(utf8_deserializer.loads(infile)))["call"] != "end":
            if question["call"] == "open":
                stream, answer = _opened(question, source), []
            elif stream is None:
                answer = _ALONE[question["call"]](question, source)
            else:
                answer = _OF_STREAM[question["call"]](stream, question)
            _send(answer, outfile)
    finally:
        if stream is not None:
            stream.stop()
    _send([], outfile)


def _send(parts: list[bytes], outfile: IO[bytes]) -> None:
    write_int(len(parts), outfile)
    for part in parts:
        write_with_length(part, outfile)
    outfile.flush()


def _as_json(value: Mapping[str, Any] | None) -> list[bytes]:
    # As Spark's own runner writes it: Spark compares offsets as text, and a query may change its surface.
    return [json.dumps(value).encode()]


def plan(question: Question, source: type[DataSource]) -> list[bytes]:
    """How much there is to read, then the pickled reader, then the pickled partitions.

    If bodies are read, their bytes are counted as they are stored.
    """
    schema = StructType.fromJson(question["schema"])
    columns, reader = Columns.of(schema), source(question["options"]).reader(schema)
    filters = [Comparison(**one) for one in question["filters"]]
    assert isinstance(reader, BatchReader)
    splits, amount = reader.plan(filters)
    bodies = amount.bytes if columns.needs_bodies else 0
    size = {"rows": amount.entries, "bytes": bodies + amount.entries * _COLUMN_BYTES * len(columns.names)}
    return [*_as_json(size), pickleSer.dumps(reader), *map(pickleSer.dumps, splits)]


_ALONE: Final[Mapping[str, Callable[[Question, type[DataSource]], list[bytes]]]] = {
    "plan": plan,
    "catalog": lambda question, _: _as_json(catalog.answer(question)),
}


def _opened(question: Question, source: type[DataSource]) -> StreamReader:
    reader = source(question["options"]).streamReader(StructType.fromJson(question["schema"]))
    assert isinstance(reader, StreamReader)
    return reader


def _latest(reader: StreamReader, question: Question) -> list[bytes]:
    """The offset, for how many microseconds this answer is valid, and the lag of the query."""
    limit = reader.getDefaultReadLimit() if question["limited"] else ReadAllAvailable()
    latest = _as_json(reader.latestOffset(question["start"], limit))
    holds_us = b"%d" % (reader.idle_ms() * 1000)
    return [*latest, holds_us, *_as_json(reader.reportLatestOffset())]


def _prepare(reader: StreamReader, question: Question) -> list[bytes]:
    reader.prepareForTriggerAvailableNow()
    return [_NOTHING]


def _partitions(reader: StreamReader, question: Question) -> list[bytes]:
    return [pickleSer.dumps(split) for split in reader.partitions(question["start"], question["end"])]


_OF_STREAM: Final[Mapping[str, Callable[[StreamReader, Question], list[bytes]]]] = {
    "initialOffset": lambda reader, _: _as_json(reader.initialOffset()),
    "latestOffset": _latest,
    "prepareForTriggerAvailableNow": _prepare,
    "partitions": _partitions,
    "reader": lambda reader, _: [pickleSer.dumps(reader)],
    "limits": lambda reader, _: _as_json(reader.limits()),
}


if __name__ == "__main__":
    with get_sock_file_to_executor(timeout=None) as sock_file:
        main(sock_file, sock_file)
