"""Offsets as Spark keeps them: canonical, complete, and refused if they are damaged or too new."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import CheckpointFormatError
from logdevice.types import LSN_MAX, LogId, LogPoint, Lsn
from pyspark_logdevice.plan.offsets import INITIAL, LogPosition, Offsets, TaskEnd, from_json

CLICKS = LogPosition(path="/ads/clicks", since=Lsn(1), at=LogPoint(Lsn(1 << 33), 20, 200))
OFFSETS = Offsets("ads", {LogId(12): CLICKS, LogId(7): CLICKS}, (TaskEnd(LogId(7), Lsn(5)),))

numbers = st.integers(0, (1 << 63) - 1)
lsns = st.integers(1, int(LSN_MAX)).map(Lsn)
positions = st.builds(
    LogPosition,
    path=st.text(min_size=1),
    since=lsns,
    at=st.builds(LogPoint, lsns, numbers, numbers),
    lineage=st.none() | st.text(),
    purged_seen=st.just(Lsn(0)) | lsns,
)
logs = st.integers(1, 1 << 40).map(LogId)
tasks = st.lists(st.builds(TaskEnd, logs, lsns)).map(lambda ends: tuple(sorted(ends)))
offsets = st.builds(Offsets, st.text(), st.dictionaries(logs, positions), tasks)


@given(offsets)
def test_offsets_that_are_read_and_written_again_are_the_same_text(wrote: Offsets) -> None:
    text = json.dumps(wrote.to_json())
    read = from_json(json.loads(text))
    assert read == wrote
    assert json.dumps(read.to_json()) == text


def test_the_form_never_changes_for_existing_checkpoints() -> None:
    assert json.dumps(OFFSETS.to_json()) == (
        '{"version": 2, "cluster": "ads", "tasks": [["7", "5"]], "logs": {'
        '"7": {"path": "/ads/clicks", "next": "8589934592", "entries": "20", "bytes": "200", "from": "1", '
        '"lineage": null}, '
        '"12": {"path": "/ads/clicks", "next": "8589934592", "entries": "20", "bytes": "200", "from": "1", '
        '"lineage": null}}}'
    )
    assert dict(INITIAL) == {"version": 2, "start": "initial"}
    assert from_json(dict(INITIAL)) is None
    assert from_json({"version": 1, "start": "initial"}) is None


def test_the_order_of_logs_does_not_change_the_text() -> None:
    turned = replace(OFFSETS, logs=dict(reversed(list(OFFSETS.logs.items()))))
    assert json.dumps(turned.to_json()) == json.dumps(OFFSETS.to_json())


def refusal(plain: Any) -> str:
    with pytest.raises(CheckpointFormatError) as caught:
        from_json(plain)
    return caught.value.message


def test_a_newer_checkpoint_is_refused() -> None:
    assert refusal({"version": 3, "whatever": 1}) == (
        "the checkpoint has version 3; this program reads versions up to 2"
    )


@pytest.mark.parametrize("version", [None, "1", 0, True, 1.0])
def test_an_offset_without_a_version_is_refused(version: object) -> None:
    expected = f"the checkpoint's version must be an integer of at least 1, got {version!r}"
    assert refusal({"version": version}) == expected


def changed(**fields: object) -> dict[str, Any]:
    plain = OFFSETS.to_json()
    plain["logs"]["12"].update(fields)
    return plain


def first_version(**fields: object) -> dict[str, Any]:
    marks = [["5", "10", "100"], ["9", "20", "200"]]
    log = {"path": "/a", "next": "9", "from": "1", "lineage": None, "marks": marks, **fields}
    return {"version": 1, "cluster": "ads", "logs": {"12": log}}


@pytest.mark.parametrize(
    ("plain", "field"),
    [
        ({"version": 1}, "the whole offset"),
        ({"version": 1, "cluster": 5, "logs": {}}, "the whole offset"),
        ({"version": 1, "cluster": "a", "logs": []}, "the whole offset"),
        ({"version": 1, "cluster": "a", "tasks": [], "logs": {}}, "the whole offset"),
        ({"version": 2, "cluster": "a", "logs": {}}, "the whole offset"),
        ({"version": 2, "cluster": "a", "tasks": 1, "logs": {}}, "the whole offset"),
        ({"version": 2, "cluster": "a", "tasks": [["7"]], "logs": {}}, "tasks"),
        ({"version": 2, "cluster": "a", "tasks": [["7", "5"], ["7", "4"]], "logs": {}}, "tasks"),
        ({"version": 2, "cluster": "a", "tasks": [], "logs": {"x": {}}}, "the number of a log"),
        ({"version": 2, "cluster": "a", "tasks": [], "logs": {"7": {}}}, "log 7"),
        ({"version": 2, "cluster": "a", "tasks": [], "logs": {"7": 5}}, "log 7"),
        (changed(path=5), "log 12"),
        (changed(lineage=5), "log 12"),
        (changed(next=8589934592), "next of log 12"),
        (changed(entries="-1"), "entries of log 12"),
        (changed(bytes="x"), "bytes of log 12"),
        (changed(**{"from": "01"}), "from of log 12"),
        (changed(**{"from": str(1 << 63)}), "from of log 12"),
        (first_version(marks=[]), "marks of log 12"),
        (first_version(marks="x"), "marks of log 12"),
        (first_version(marks=[["1", "2"]]), "marks of log 12"),
        (first_version(marks=[["1", "2", 3]]), "marks of log 12"),
        (first_version(marks=[["9", "0", "0"], ["5", "0", "0"]]), "marks of log 12"),
        (first_version(next="6"), "marks of log 12"),
        (first_version(next=9), "next of log 12"),
        (first_version(more=9), "log 12"),
    ],
)
def test_an_error_names_the_damaged_field(plain: dict[str, Any], field: str) -> None:
    assert refusal(plain).startswith(f"the checkpoint is damaged: {field} cannot be ")
