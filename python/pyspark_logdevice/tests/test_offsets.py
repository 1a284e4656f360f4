"""Offsets as Spark keeps them: canonical, complete, and refused when they cannot be understood."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import CheckpointFormatError
from logdevice.types import LSN_MAX, LogId, Lsn
from pyspark_logdevice.offsets import INITIAL, Mark, Offsets, Position, from_json

CLICKS = Position(
    path="/ads/clicks", since=Lsn(1), marks=(Mark(Lsn(5), 10, 100), Mark(Lsn(1 << 33), 20, 200))
)
OFFSETS = Offsets("ads", {LogId(12): CLICKS, LogId(7): CLICKS.resting()})

numbers = st.integers(0, (1 << 63) - 1)
lsns = st.integers(1, int(LSN_MAX)).map(Lsn)
positions = st.builds(
    Position,
    path=st.text(min_size=1),
    since=lsns,
    marks=st.lists(st.builds(Mark, lsns, numbers, numbers), min_size=1).map(
        lambda marks: tuple(sorted(marks, key=lambda mark: mark.lsn))
    ),
    lineage=st.none() | st.text(),
    purged_seen=st.just(Lsn(0)) | lsns,
)
offsets = st.builds(Offsets, st.text(), st.dictionaries(st.integers(1, 1 << 40).map(LogId), positions))


@given(offsets)
def test_what_was_written_is_read_and_written_again_as_the_same_text(wrote: Offsets) -> None:
    text = json.dumps(wrote.to_json())
    read = from_json(json.loads(text))
    assert read == wrote
    assert json.dumps(read.to_json()) == text


def test_the_form_is_a_promise_to_checkpoints_that_exist() -> None:
    assert json.dumps(OFFSETS.to_json()) == (
        '{"version": 1, "cluster": "ads", "logs": {'
        '"7": {"path": "/ads/clicks", "next": "8589934592", "from": "1", "lineage": null, '
        '"marks": [["8589934592", "20", "200"]]}, '
        '"12": {"path": "/ads/clicks", "next": "8589934592", "from": "1", "lineage": null, '
        '"marks": [["5", "10", "100"], ["8589934592", "20", "200"]]}}}'
    )
    assert dict(INITIAL) == {"version": 1, "start": "initial"}
    assert from_json(dict(INITIAL)) is None


def test_the_order_of_logs_does_not_change_the_text() -> None:
    turned = Offsets("ads", dict(reversed(list(OFFSETS.logs.items()))))
    assert json.dumps(turned.to_json()) == json.dumps(OFFSETS.to_json())


def refusal(plain: Any) -> str:
    with pytest.raises(CheckpointFormatError) as caught:
        from_json(plain)
    return caught.value.message


def test_a_newer_checkpoint_is_refused_and_nothing_is_guessed() -> None:
    assert refusal({"version": 2, "whatever": 1}) == (
        "the checkpoint is of version 2; this program reads up to version 1"
    )


@pytest.mark.parametrize("version", [None, "1", 0, True, 1.0])
def test_an_offset_without_a_version_is_not_ours(version: object) -> None:
    assert refusal({"version": version}) == f"the checkpoint has no version, got {version!r}"


def changed(**fields: object) -> dict[str, Any]:
    plain = OFFSETS.to_json()
    plain["logs"]["12"].update(fields)
    return plain


@pytest.mark.parametrize(
    ("plain", "field"),
    [
        ({"version": 1}, "the whole"),
        ({"version": 1, "cluster": 5, "logs": {}}, "the whole"),
        ({"version": 1, "cluster": "a", "logs": []}, "the whole"),
        ({"version": 1, "cluster": "a", "logs": {}, "more": 1}, "the whole"),
        ({"version": 1, "cluster": "a", "logs": {"x": {}}}, "the number of a log"),
        ({"version": 1, "cluster": "a", "logs": {"7": {}}}, "log 7"),
        ({"version": 1, "cluster": "a", "logs": {"7": 5}}, "log 7"),
        (changed(path=5), "log 12"),
        (changed(lineage=5), "log 12"),
        (changed(marks=[]), "marks of log 12"),
        (changed(marks="x"), "marks of log 12"),
        (changed(marks=[["1", "2"]]), "marks of log 12"),
        (changed(marks=[["1", "2", 3]]), "marks of log 12"),
        (changed(marks=[["9", "0", "0"], ["5", "0", "0"]]), "marks of log 12"),
        (changed(next="6"), "marks of log 12"),
        (changed(next=8589934592), "next of log 12"),
        (changed(**{"from": "-1"}), "from of log 12"),
        (changed(**{"from": "01"}), "from of log 12"),
        (changed(**{"from": str(1 << 63)}), "from of log 12"),
    ],
)
def test_damage_is_named(plain: dict[str, Any], field: str) -> None:
    assert refusal(plain).startswith(f"the checkpoint is damaged: {field} cannot be ")
