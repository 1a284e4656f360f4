"""What `cat` and `tail` print: payloads or objects, gaps in their places, and the last entries of a log."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa
import pytest

from logdevice.cli.commands.read import DATA_LOST, Printer, last_entries
from logdevice.cli.output import Output
from logdevice.client.admin.chain_points import Point
from logdevice.client.blocking import Client
from logdevice.client.read.arrow_batches import ENTRIES_READ, RecordsBatch
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.types import Gap, GapType, Lsn

LOSS = Gap(GapType.DATALOSS, Lsn.of(1, 3), Lsn.of(1, 5))
BRIDGE = Gap(GapType.BRIDGE, Lsn.of(1, 5), Lsn.of(2, 1))


def batch(lsn: Lsn, *payloads: bytes) -> RecordsBatch:
    rows = [
        {"lsn": int(lsn), "batch_offset": offset, "timestamp": 1_700_000_000_000, "payload": payload}
        for offset, payload in enumerate(payloads)
    ]
    return RecordsBatch(lsn, lsn.next, pa.RecordBatch.from_pylist(rows, schema=ENTRIES_READ), 0)


def printed(*items: RecordsBatch | Gap, is_json: bool, gaps: bool = False) -> tuple[bytes, str, int]:
    results, remarks = io.BytesIO(), io.StringIO()
    printer = Printer(Output(results, remarks, is_json=is_json), with_quiet_gaps=gaps)
    printer.print_all(items)
    return results.getvalue(), remarks.getvalue(), printer.exit_code


@pytest.mark.parametrize(
    ("point", "result", "remark", "code"),
    [
        (Point(PointStatus.WRITTEN, batch(Lsn.of(1, 1), b"a")), b"a\n", "", 0),
        (Point(PointStatus.UNWRITTEN), b"", "e1n1: UNWRITTEN\n", 0),
        (Point(PointStatus.LOST), b"", "e1n1: LOST\n", DATA_LOST),
    ],
)
def test_a_point_is_printed_as_its_entries_or_a_remark(
    point: Point, result: bytes, remark: str, code: int
) -> None:
    results, remarks = io.BytesIO(), io.StringIO()
    printer = Printer(Output(results, remarks, is_json=False), with_quiet_gaps=False)
    printer.print_point(Lsn.of(1, 1), point)
    assert (results.getvalue(), remarks.getvalue(), printer.exit_code) == (result, remark, code)


def test_a_point_without_a_record_is_printed_as_an_object_with_json() -> None:
    results = io.BytesIO()
    Printer(Output(results, io.StringIO(), is_json=True), with_quiet_gaps=False).print_point(
        Lsn.of(1, 1), Point(PointStatus.BEYOND_TAIL)
    )
    assert json.loads(results.getvalue()) == {"lsn": "e1n1", "status": "BEYOND_TAIL"}


def test_payloads_are_lines() -> None:
    out, _, code = printed(batch(Lsn.of(1, 1), b"a", b""), batch(Lsn.of(1, 2), b"\xff"), is_json=False)
    assert (out, code) == (b"a\n\n\xff\n", 0)


def test_a_loss_is_a_remark_and_sets_the_exit_code() -> None:
    out, err, code = printed(LOSS, batch(Lsn.of(1, 5), b"a"), is_json=False)
    assert (out, err, code) == (b"a\n", "gap: DATALOSS [e1n3, e1n5)\n", DATA_LOST)


def test_the_end_of_an_epoch_is_a_remark_only_with_gaps() -> None:
    assert printed(BRIDGE, is_json=False)[1] == ""
    assert printed(BRIDGE, is_json=False, gaps=True)[1] == "gap: BRIDGE [e1n5, e2n1)\n"


def test_with_json_entries_and_gaps_are_objects_in_order() -> None:
    out, err, code = printed(batch(Lsn.of(1, 1), b"a"), LOSS, BRIDGE, is_json=True)
    entry, *gaps = (json.loads(line) for line in out.splitlines())
    assert entry == {
        "lsn": "e1n1",
        "batch_offset": 0,
        "timestamp": "2023-11-14T22:13:20.000Z",
        "key": None,
        "payload": "a",
    }
    assert [gap["gap"] for gap in gaps] == ["DATALOSS", "BRIDGE"]
    assert (err, code) == ("", DATA_LOST)


class LogOfRecords:
    """Stands in for a client while the last entries are searched: each LSN is a record of two entries."""

    def __init__(self, first: Lsn, tail: Lsn) -> None:
        self.first, self.tail = first, tail
        self.looked_at = 0

    def first_lsn(self, log: Any) -> Lsn:
        return self.first

    @contextmanager
    def read(self, log: Any, start: Lsn, end: Lsn) -> Iterator[Iterator[RecordsBatch | Gap]]:
        yield (self._record(Lsn(lsn)) for lsn in range(start, end))

    def _record(self, lsn: Lsn) -> RecordsBatch | Gap:
        self.looked_at += 1
        if lsn.esn % 5 == 0:
            return Gap(GapType.HOLE, lsn, lsn.next)
        return batch(lsn, b"%d first" % lsn.esn, b"%d second" % lsn.esn)


def last(log: LogOfRecords, count: int) -> list[bytes]:
    return [entry.payload for entry in last_entries(cast(Client, log), "/log", log.tail, count)]


def test_the_last_entries_are_found_near_the_tail() -> None:
    log = LogOfRecords(Lsn.of(1, 1), Lsn.of(1, 1000))
    assert last(log, 3) == [b"998 second", b"999 first", b"999 second"]
    assert log.looked_at == 16


def test_for_more_entries_the_search_goes_further_back() -> None:
    log = LogOfRecords(Lsn.of(1, 1), Lsn.of(1, 1000))
    assert len(last(log, 100)) == 100
    assert log.looked_at == 16 + 256


@pytest.mark.parametrize("size", [0, 1, 30])
def test_all_entries_of_a_short_log_are_found(size: int) -> None:
    log = LogOfRecords(Lsn.of(1, 1), Lsn.of(1, 1 + size))
    holes = size // 5
    assert len(last(log, 1000)) == 2 * (size - holes)


def test_nothing_is_read_for_the_last_zero_entries() -> None:
    log = LogOfRecords(Lsn.of(1, 1), Lsn.of(1, 1000))
    assert last(log, 0) == []
    assert log.looked_at == 0
