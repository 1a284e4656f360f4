"""`logdevice cat` and `logdevice tail`: print the entries and gaps of a log, in order.

As text, each payload is on a line of its own, and gaps are remarks. As JSON, entries and gaps are objects in
the order of their LSNs. If records were lost, the exit code is 5.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, assert_never

from logdevice.cli import arguments, declaring
from logdevice.cli.output import Output, plain_bytes, shown_time
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.types import LSN_OLDEST, Gap, GapType, Lsn

if TYPE_CHECKING:
    from logdevice.client.admin.chain_points import Point
    from logdevice.client.blocking import Client
    from logdevice.client.read.arrow_batches import Entry, RecordsBatch

DATA_LOST: Final = 5
LINES_DEFAULT: Final = 10
# How many LSNs before the tail to look for the last entries, in the order of the attempts.
_STEPS_BACK: Final = (16, 256, 4096, 65_536)


def add_commands(group: declaring.Commands) -> None:
    cat = declaring.add(group, "cat", run_cat, "print the entries of a log")
    _add_log(cat)
    cat.add_argument(
        "--from",
        dest="start",
        type=arguments.lsn,
        default=LSN_OLDEST,
        metavar="LSN",
        help="the first LSN to print: e5n3, a number, or oldest (default)",
    )
    cat.add_argument(
        "--until",
        type=arguments.lsn_or_tail,
        default=None,
        metavar="LSN",
        help="where to stop, not included; waits for LSNs that are not there yet; tail (default) stops at "
        "what is in the log now",
    )
    cat.add_argument(
        "--at",
        type=arguments.lsn,
        default=None,
        metavar="LSN",
        help="print only the record at this LSN, or why there is none; reads it even before it is released",
    )
    tail = declaring.add(group, "tail", run_tail, "print the last entries of a log, and with -f the new ones")
    _add_log(tail)
    tail.add_argument("-f", "--follow", action="store_true", help="go on with entries as they are appended")
    tail.add_argument(
        "-n",
        "--lines",
        type=int,
        default=LINES_DEFAULT,
        metavar="N",
        help=f"how many of the last entries (default {LINES_DEFAULT}); with 0 and -f only new ones",
    )


def _add_log(parser: argparse.ArgumentParser) -> None:
    declaring.add_log(parser)
    parser.add_argument(
        "--gaps",
        action="store_true",
        help="report every gap, including holes, ends of epochs and compacted records",
    )


def run_cat(client: Client, options: argparse.Namespace, output: Output) -> int:
    printer = Printer(output, with_quiet_gaps=options.gaps)
    if options.at is not None:
        printer.print_point(options.at, client.read_at(options.log, options.at))
    else:
        with client.read(options.log, options.start, options.until) as reader:
            printer.print_all(reader)
    return printer.exit_code


def run_tail(client: Client, options: argparse.Namespace, output: Output) -> int:
    printer = Printer(output, with_quiet_gaps=options.gaps)
    tail = client.tail(options.log).released_end
    last = last_entries(client, options.log, tail, options.lines)
    if output.is_json:
        printer.print_entries(last)
    else:
        printer.print_payloads(entry.payload for entry in last)
    output.flush()
    if options.follow:
        with client.read(options.log, tail, follow=True) as reader:
            printer.print_all(reader)
    return printer.exit_code


def last_entries(client: Client, log: str | int, tail: Lsn, count: int) -> list[Entry]:
    """The last entries before `tail`. Looks back further and further until it has found enough."""
    if count <= 0:
        return []
    first = client.first_lsn(log)
    for step in (*_STEPS_BACK, int(tail)):
        start = Lsn(max(tail - step, first))
        found: deque[Entry] = deque(maxlen=count)
        with client.read(log, min(start, tail), tail) as reader:
            for batch in (item for item in reader if not isinstance(item, Gap)):
                # Of each batch, only the last `count` entries can be among the last: skip the others.
                found.extend(batch.entries(max(0, len(batch) - count)))
        if len(found) == count or start <= first:
            break
    return list(found)


class Printer:
    """Prints what a reader yields, and remembers whether records were lost."""

    def __init__(self, output: Output, *, with_quiet_gaps: bool) -> None:
        self._output, self._with_quiet_gaps = output, with_quiet_gaps
        self.exit_code = 0

    def print_all(self, items: Iterable[RecordsBatch | Gap]) -> None:
        for item in items:
            if isinstance(item, Gap):
                self.print_gap(item)
            elif self._output.is_json:
                self.print_entries(item.entries())
            else:
                self.print_payloads(item.columns["payload"].to_pylist())
            # At once: the user may be following the log.
            self._output.flush()

    def print_point(self, lsn: Lsn, point: Point) -> None:
        if point.records is not None:
            self.print_all([point.records])
            return
        if point.status is PointStatus.LOST:
            self.exit_code = DATA_LOST
        self._output.json({"lsn": str(lsn), "status": point.status.value})
        if not self._output.is_json:
            self._output.remark(f"{lsn}: {point.status.value}")

    def print_entries(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._output.json(plain_entry(entry))

    def print_payloads(self, payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            self._output.raw(payload + b"\n")

    def print_gap(self, gap: Gap) -> None:
        if gap.type.is_loss:
            self.exit_code = DATA_LOST
        self._output.json({"gap": gap.type.value, "start": str(gap.start), "end": str(gap.end)})
        if not self._output.is_json and (self._with_quiet_gaps or not _is_quiet(gap.type)):
            self._output.remark(f"gap: {gap}")


def _is_quiet(gap: GapType) -> bool:
    """Whether a gap of this type hides nothing from a person who reads the log."""
    match gap:
        case GapType.BRIDGE | GapType.HOLE | GapType.FILTERED_OUT | GapType.COMPACTED:
            return True
        case GapType.DATALOSS | GapType.TRIM | GapType.ACCESS | GapType.NOTINCONFIG | GapType.ROLLBACK:
            return False
        case _:
            assert_never(gap)


def plain_entry(entry: Entry) -> dict[str, Any]:
    """An entry as a JSON object."""
    plain = {
        "lsn": str(entry.lsn),
        "batch_offset": entry.batch_offset,
        "timestamp": shown_time(entry.timestamp_ms),
        **plain_bytes("key", entry.key),
        **plain_bytes("payload", entry.payload),
    }
    return plain | {"attributes": entry.attributes} if entry.attributes else plain
