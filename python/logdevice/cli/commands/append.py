"""`logdevice append`: every line of the input becomes one entry of a log.

Lines that are available at the same time share a batch, so a file is appended fast, and a line typed at a
terminal at once. Lines are bytes: nothing is decoded, and only the newline at the end is removed. If an
append fails, the command says what was acknowledged before, so that the user knows where to continue.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from logdevice.cli import declaring
from logdevice.cli.output import Output, counted, shown_bytes
from logdevice.errors import InvalidArgumentError, LogDeviceError
from logdevice.types import Lsn

if TYPE_CHECKING:
    from logdevice.client import TaggedAppend
    from logdevice.client.blocking import Client

READ_BYTES: Final = 256 * 1024
LINES_MAX: Final = 10_000  # of one batch
_PROGRESS_S: Final = 2.0


def add_commands(group: declaring.Commands) -> None:
    parser = declaring.add(
        group,
        "append",
        run_append,
        "append lines to a log, one entry per line",
        details="`logdevice cat` prints the same lines.",
    )
    declaring.add_log(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="the input (default -, standard input)"
    )
    parser.add_argument(
        "--writer",
        metavar="NAME",
        help="append exactly once: a repeated run with the same NAME and input appends only what is missing",
    )


@dataclass(slots=True)
class AppendProgress:
    """What the log has acknowledged so far."""

    lines: int = 0
    size: int = 0
    batches: int = 0
    first: Lsn | None = None
    last: Lsn | None = None
    skipped_lines: int = 0  # already in the log, appended by another run

    def note(self, batch: list[bytes], lsn: Lsn) -> None:
        self.lines += len(batch)
        self.size += sum(map(len, batch))
        self.batches += 1
        self.first = self.first or lsn
        self.last = lsn

    def __str__(self) -> str:
        where = f", {self.first} to {self.last}" if self.first else ""
        lines, batches = counted(self.lines, "line", "lines"), counted(self.batches, "batch", "batches")
        return f"{lines}, {shown_bytes(self.size)} in {batches}{where}"


def run_append(client: Client, options: argparse.Namespace, output: Output) -> None:
    progress = AppendProgress()
    with _opened(options.file) as descriptor:
        try:
            if options.writer is None:
                _append(client, options.log, descriptor, progress, output)
            else:
                _append_once(client, options, descriptor, progress)
        except LogDeviceError:
            output.remark(f"acknowledged before the error: {progress}")
            raise
    if progress.skipped_lines:
        output.remark(f"already in the log: {counted(progress.skipped_lines, 'line', 'lines')}")
    output.result(
        f"appended {progress}",
        {
            "log": options.log,
            "lines": progress.lines,
            "bytes": progress.size,
            "batches": progress.batches,
            "first_lsn": progress.first and str(progress.first),
            "last_lsn": progress.last and str(progress.last),
            "skipped_lines": progress.skipped_lines,
        },
    )


def _append(
    client: Client, log: str | int, descriptor: int, progress: AppendProgress, output: Output
) -> None:
    shown = time.monotonic()
    for batch in batches(descriptor):
        progress.note(batch, client.append_many(log, batch))
        if time.monotonic() - shown >= _PROGRESS_S:
            shown = time.monotonic()
            output.remark(f"{counted(progress.lines, 'line', 'lines')}, {shown_bytes(progress.size)}")


def _append_once(
    client: Client, options: argparse.Namespace, descriptor: int, progress: AppendProgress
) -> None:
    from logdevice.cli.commands.append_once import append_once

    def note(batch: list[bytes], done: TaggedAppend) -> None:
        if done.is_duplicate:
            progress.skipped_lines += len(batch)
        else:
            progress.note(batch, done.lsn)

    progress.skipped_lines += append_once(client, options.log, options.writer, batches(descriptor), note)


@contextmanager
def _opened(file: str) -> Iterator[int]:
    """The descriptor to read from: of the file, or of standard input for `-`."""
    if file == "-":
        yield sys.stdin.fileno()
        return
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError as problem:
        raise InvalidArgumentError(f"{file} cannot be read: {problem.strerror}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def batches(descriptor: int) -> Iterator[list[bytes]]:
    """The lines that each read of the descriptor returns, without waiting for more."""
    rest: list[bytes] = []  # of a line whose end has not been read yet
    while data := os.read(descriptor, READ_BYTES):
        head, newline, tail = data.rpartition(b"\n")
        if not newline:
            rest.append(data)
            continue
        lines = b"".join((*rest, head)).split(b"\n")
        rest = [tail] if tail else []
        yield from _parts(lines)
    if rest:
        yield [b"".join(rest)]


def _parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(lines), LINES_MAX):
        yield lines[start : start + LINES_MAX]
