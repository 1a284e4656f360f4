"""Attributes of logs: allowed values, and errors that name the path, the attribute and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from logdevice.errors import InvalidArgumentError
from logdevice.log_attributes import ATTRIBUTES, LogAttributes, checked, contradiction
from logdevice.types import Replication, Scope

ACCEPTED: list[tuple[str, object, object]] = [
    ("replication", 2, "node: 2"),
    ("replication", "2", "node: 2"),
    ("replication", "rack: 2, node:3", "node: 3, rack: 2"),
    ("replication_mode", "chain", "chain"),
    ("replication_mode", "Chain", "chain"),
    ("extras", 0, 0),
    ("extras", "2", 2),
    ("scd", "FALSE", False),
    ("local_scd", True, True),
    ("writer_order", "none", "none"),
    ("backlog_s", 86_400, 86_400),
    ("writes_in_flight_max", "2", 2),
]


@pytest.mark.parametrize(("name", "value", "kept"), ACCEPTED)
def test_a_value_is_stored_in_one_form(name: str, value: object, kept: object) -> None:
    assert checked("/a", name, value) == kept
    assert type(checked("/a", name, value)) is type(kept)


REFUSED: list[tuple[str, object, str]] = [
    ("replication", 0, "replication must be a number of nodes, or counts by scope such as"),
    ("replication", True, "replication must be a number of nodes"),
    ("replication", "rack: 3", "replication must be a number of nodes"),
    ("replication", "node: 2, rack: 3", "got 'node: 2, rack: 3'"),
    ("replication", "shelf: 3", "got 'shelf: 3'"),
    ("replication_mode", "ring", "replication_mode must be copyset or chain, got 'ring'"),
    ("extras", -1, "extras must be an integer of at least 0, got -1"),
    ("extras", "one", "extras must be an integer of at least 0, got 'one'"),
    ("extras", True, "got True"),
    ("extras", 1.5, "got 1.5"),
    ("extras", None, "got None"),
    ("scd", "yes", "scd must be true or false, got 'yes'"),
    ("scd", 1, "scd must be true or false, got 1"),
    ("writes_in_flight_max", 1, "an integer from 2 to 1000000, got 1"),
    ("sync_leader", 1, "there is no attribute 'sync_leader'; the nearest is 'sync_leaders'"),
    ("?", 1, "there is no attribute '?'; there are: replication, replication_mode, extras"),
]


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED)
def test_a_refusal_names_path_attribute_value_and_what_is_allowed(
    name: str, value: object, reason: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        checked("/ads/clicks", name, value)
    assert caught.value.message.startswith("/ads/clicks: ")
    assert reason in caught.value.message


def test_every_default_is_allowed() -> None:
    defaults = LogAttributes()
    for name in ATTRIBUTES:
        assert checked("/", name, getattr(defaults, name)) == getattr(defaults, name)
    assert contradiction(defaults) is None
    assert defaults.parsed_replication == Replication.of({Scope.NODE: 3})


SENSIBLE: list[dict[str, Any]] = [
    {"leaders": 3, "sync_leaders": 3},
    {"leaders": 1},
    {"sync_leaders": 0, "leaders": 2},
    {"nodeset_size": 3},
    {"nodeset_size": 5, "extras": 2},
    {"local_scd": True},
    {"replication_mode": "chain"},
    {"replication_mode": "chain", "chains": 4, "min_copies": 3},
    {"replication": "node: 1"},
]


@pytest.mark.parametrize("values", SENSIBLE)
def test_values_that_fit_together_are_accepted(values: dict[str, Any]) -> None:
    assert contradiction(LogAttributes(**values)) is None


SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({"leaders": 4}, "leaders must be at most 3, the copies of replication, got 4"),
    ({"sync_leaders": 4}, "sync_leaders must be at most 3, the number of leaders, got 4"),
    ({"leaders": 1, "sync_leaders": 2}, "sync_leaders must be at most 1, the number of leaders, got 2"),
    ({"nodeset_size": 2}, "nodeset_size must be 0 or at least 3"),
    ({"min_copies": 4}, "min_copies must be at most 3, the copies of replication, got 4"),
    ({"nodeset_size": 4, "extras": 2}, "nodeset_size must be 0 or at least 5"),
    ({"local_scd": True, "scd": False}, "local_scd must be false when scd is false"),
    ({"replication_mode": "chain", "extras": 1}, "extras must be 0 when replication_mode is 'chain'"),
]


@pytest.mark.parametrize(("values", "reason"), SENSELESS)
def test_values_that_contradict_each_other_are_explained(values: dict[str, Any], reason: str) -> None:
    found = contradiction(LogAttributes(**values))
    assert found is not None
    assert found.startswith(reason)
