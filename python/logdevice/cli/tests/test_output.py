"""Results and remarks are separate outputs; tables are for people, JSON for programs."""

from __future__ import annotations

import io
import json

from logdevice.cli.output import Output, plain_bytes, shown_bytes, shown_time, table_lines

ROWS = [{"node": "N1", "logs": 12, "is_alive": True}, {"node": "N10", "logs": 3, "is_alive": None}]


def output(*, is_json: bool) -> tuple[Output, io.BytesIO, io.StringIO]:
    results, remarks = io.BytesIO(), io.StringIO()
    return Output(results, remarks, is_json=is_json), results, remarks


def test_columns_are_as_wide_as_their_content() -> None:
    assert table_lines(ROWS, ("node", "logs", "is_alive")) == [
        "node  logs  is alive",
        "N1      12  yes",
        "N10      3  -",
    ]


def test_a_table_without_rows_still_has_its_head() -> None:
    assert table_lines([], ("node", "logs")) == ["node  logs"]


def test_people_get_the_table_and_programs_the_objects() -> None:
    for_people, text, _ = output(is_json=False)
    for_programs, lines, _ = output(is_json=True)
    for each in (for_people, for_programs):
        each.rows(ROWS, ("node", "logs"))
        each.text("that is all")
        each.flush()
    assert text.getvalue().decode().splitlines() == ["node  logs", "N1      12", "N10      3", "that is all"]
    assert [json.loads(line) for line in lines.getvalue().splitlines()] == ROWS


def test_remarks_are_not_among_the_results() -> None:
    written, results, remarks = output(is_json=True)
    written.remark("half of it is done")
    assert results.getvalue() == b""
    assert remarks.getvalue() == "half of it is done\n"


def test_bytes_that_are_not_utf8_are_shown_in_base64() -> None:
    assert plain_bytes("key", None) == {"key": None}
    assert plain_bytes("key", "schlüssel".encode()) == {"key": "schlüssel"}
    assert plain_bytes("key", b"\xff\x00") == {"key_base64": "/wA="}


def test_sizes_and_times_are_short() -> None:
    assert [shown_bytes(count) for count in (0, 1023, 1536, 3 << 20, 5 << 30, 2 << 40)] == [
        "0 bytes",
        "1023 bytes",
        "1.5 KiB",
        "3.0 MiB",
        "5.0 GiB",
        "2.0 TiB",
    ]
    assert shown_time(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
