"""Arguments of the command line are read as their help says, and wrong ones are refused."""

from __future__ import annotations

import argparse

import pytest

from logdevice.cli import arguments
from logdevice.types import LSN_OLDEST, Lsn, NodeId

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("now", NOW_MS),
        ("250ms", NOW_MS - 250),
        ("30s", NOW_MS - 30_000),
        ("5m", NOW_MS - 300_000),
        ("1h", NOW_MS - 3_600_000),
        ("2d", NOW_MS - 172_800_000),
        ("1700000000", NOW_MS),
        ("1700000000000", NOW_MS),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T23:13:20.500+01:00", NOW_MS + 500),
    ],
)
def test_a_time_can_be_written_in_many_ways(text: str, expected_ms: int) -> None:
    assert arguments.timestamp_at(text, now_ms=NOW_MS) == expected_ms


def test_text_that_is_not_a_time_is_refused_with_examples() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="2026-01-31T12:00:00Z"):
        arguments.timestamp("yesterday")


def test_positions_are_lsns_or_names() -> None:
    assert arguments.lsn("e5n3") == Lsn.of(5, 3)
    assert arguments.lsn("oldest") == LSN_OLDEST
    assert arguments.lsn_or_tail("tail") is None
    assert arguments.lsn_or_tail("e5n3") == Lsn.of(5, 3)
    with pytest.raises(argparse.ArgumentTypeError, match="must be an LSN"):
        arguments.lsn("five")


def test_a_log_is_its_path_or_its_number() -> None:
    assert arguments.log("/ads/clicks") == "/ads/clicks"
    assert arguments.log("17") == 17


@pytest.mark.parametrize("text", ["3", "N3", "n3"])
def test_a_node_is_its_number(text: str) -> None:
    assert arguments.node(text) == NodeId(3)


def test_text_that_is_not_a_node_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as 3 or N3"):
        arguments.node("third")


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_a_count_is_at_least_one(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        arguments.count(text)


def test_an_attribute_is_a_name_and_a_value() -> None:
    assert arguments.attribute("replication=node: 3, rack: 2") == ("replication", "node: 3, rack: 2")
    assert arguments.attribute("backlog_s=") == ("backlog_s", "")
    for text in ("replication", "=3"):
        with pytest.raises(argparse.ArgumentTypeError, match="NAME=VALUE"):
            arguments.attribute(text)
