"""The difference of two directories, as people and nodes need to hear it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logdevice.metadata.directory_changes import (
    AttributeChanged,
    Change,
    Created,
    Removed,
    Renamed,
    changes,
)
from logdevice.metadata.log_directory import LogDirectory
from logdevice.types import LogId

L1, L2, L3 = LogId(1), LogId(2), LogId(3)
OLD = LogDirectory().with_log("/ads/clicks").with_log("/ads/views", {"backlog_s": 60})

Edit = Callable[[LogDirectory], LogDirectory]
TABLE: list[tuple[str, Edit, list[Change]]] = [
    ("nothing", lambda old: old, []),
    ("a log", lambda old: old.with_log("/mail"), [Created("/mail", L3)]),
    ("two levels", lambda old: old.with_log("/b/c"), [Created("/b", None), Created("/b/c", L3)]),
    ("gone", lambda old: old.without("/ads/views"), [Removed("/ads/views", L2)]),
    ("moved", lambda old: old.renamed("/ads/views", "/ads/v"), [Renamed("/ads/v", L2, "/ads/views")]),
    (
        "inherited",
        lambda old: old.with_attributes("/ads", {"backlog_s": 10}),
        [
            AttributeChanged("/ads", None, "backlog_s", 0, 10),
            AttributeChanged("/ads/clicks", L1, "backlog_s", 0, 10),
        ],
    ),
    (
        "moved under other rules",
        lambda old: old.with_directory("/fast", {"extras": 1}).renamed("/ads/clicks", "/fast/clicks"),
        [
            Created("/fast", None),
            Renamed("/fast/clicks", L1, "/ads/clicks"),
            AttributeChanged("/fast/clicks", L1, "extras", 0, 1),
        ],
    ),
    (
        "replaced by another of the same name",
        lambda old: old.without("/ads/clicks").with_log("/ads/clicks"),
        [Removed("/ads/clicks", L1), Created("/ads/clicks", L3)],
    ),
    ("set to what held anyway", lambda old: old.with_attributes("/ads", {"extras": 0}), []),
]


@pytest.mark.parametrize(("edit", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_difference_is_what_was_done(edit: Edit, expected: list[Change]) -> None:
    assert changes(OLD, edit(OLD)) == expected
