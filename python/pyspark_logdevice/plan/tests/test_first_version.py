"""Checkpoints of version 1 are continued: their last batch is divided as the program that wrote it did.

The cases in first_version.json were made by that program, with the tasks it planned. They stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logdevice.types import LogId
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.offsets import from_json
from pyspark_logdevice.plan.tasks import splits

CASES = json.loads((Path(__file__).parent / "first_version.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_a_batch_of_version_1_is_divided_as_before(case: dict[str, Any]) -> None:
    start, end = case["start"] and from_json(case["start"]), from_json(case["end"])
    assert end is not None
    found = splits(start, end, ReadOptions(endpoint="a:1", logs=("/a",), **case["options"]))
    tasks = [[[part.log, part.start, part.end, part.is_undone] for part in split.ranges] for split in found]
    assert tasks == case["tasks"]


def test_a_position_of_version_1_is_where_the_next_batch_begins() -> None:
    (log, plain), *_ = CASES[0]["end"]["logs"].items()
    read = from_json(CASES[0]["end"])
    assert read is not None
    at = read.logs[LogId(int(log))].at
    assert [str(int(at.lsn)), str(at.entry_end), str(at.byte_end)] == plain["marks"][-1]
