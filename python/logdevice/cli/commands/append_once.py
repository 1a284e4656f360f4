"""`logdevice append --writer NAME`: appends an input exactly once, however often the command is run.

How the input is cut into batches depends only on its lines, and the number of a batch is the number of its
append. So an interrupted command is simply run again with the same name and input: the log says how many
batches it has, and the command skips those. Two runs at the same time do no harm either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from logdevice.cli.output import counted
from logdevice.client import RecordsBatch, TaggedAppend, writer_number
from logdevice.client.blocking import Client
from logdevice.errors import InvalidArgumentError
from logdevice.records import batch as batches
from logdevice.types import Lsn, WriterTag

LINES_MAX: Final = 1_000
BYTES_MAX: Final = 256 * 1024
_INCARNATION: Final = 1  # the same for every run, so that no run fences out another

Note = Callable[[list[bytes], TaggedAppend], None]


def append_once(client: Client, log: str | int, name: str, lines: Iterator[list[bytes]], note: Note) -> int:
    """Appends what the log does not have yet. Returns how many lines it already had."""
    writer = writer_number(name)
    there = client.append_status(log, _tag(writer, 0)).next_seq
    skipped, last = 0, None
    for seq, batch in enumerate(even_batches(lines)):
        if seq < there:
            skipped, last = skipped + len(batch), (seq, batch)
            continue
        if last is not None:
            _check_same(client, log, name, writer, *last)
            last = None
        note(batch, client.append_tagged(log, batches.from_entries(None, batch, None), _tag(writer, seq)))
    if last is not None:
        _check_same(client, log, name, writer, *last)
    return skipped


def even_batches(lines: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Cuts lines into batches. The batches depend on the lines only, not on how they arrive."""
    batch: list[bytes] = []
    size = 0
    for some in lines:
        for line in some:
            batch.append(line)
            size += len(line)
            if len(batch) >= LINES_MAX or size >= BYTES_MAX:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _tag(writer: int, seq: int) -> WriterTag:
    return WriterTag(writer, _INCARNATION, seq, 1, seq)


def _check_same(client: Client, log: str | int, name: str, writer: int, seq: int, batch: list[bytes]) -> None:
    """Raises an error unless the last batch to be skipped is the one that the log has at its number."""
    lsn = client.append_status(log, _tag(writer, seq)).lsn
    if not lsn:
        return  # so old that the log no longer knows its LSN
    found = [
        entry.payload
        for item in client.read(log, lsn, Lsn(lsn + 1))
        if isinstance(item, RecordsBatch)
        for entry in item.entries()
    ]
    if found and found != batch:
        raise InvalidArgumentError(
            f"writer {name!r} has appended another input to this log: its batch {seq} "
            f"({counted(len(found), 'line', 'lines')}) is not batch {seq} of this input "
            f"({counted(len(batch), 'line', 'lines')}); choose another writer name"
        )
