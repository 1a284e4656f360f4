"""The directory of logs: names, numbers, inheritance, and error messages that say what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import InvalidArgumentError, LogDeviceError, NameTakenError, UnknownLogError
from logdevice.metadata.codec import DIRECTORY
from logdevice.metadata.log_directory import DirectoryEntry, Effective, LogDirectory
from logdevice.types import LogId

EMPTY = LogDirectory()
# Numbers in brackets: /ads (directory), /ads/clicks [1], /ads/views [2], /mail [3].
SMALL = EMPTY.with_log("/ads/clicks").with_log("/ads/views", {"backlog_s": 60}).with_log("/mail")


def refusal(change: Callable[[], object], kind: type[LogDeviceError] = InvalidArgumentError) -> str:
    with pytest.raises(kind) as caught:
        change()
    assert type(caught.value) is kind
    return caught.value.message


def test_logs_get_numbers_in_the_order_of_their_creation() -> None:
    assert SMALL.logs() == {"/ads/clicks": 1, "/ads/views": 2, "/mail": 3}


def test_directories_on_the_way_to_a_log_are_made() -> None:
    assert EMPTY.with_log("/a/b/c").entries.keys() == {"/", "/a", "/a/b", "/a/b/c"}


def test_a_number_is_never_given_out_again() -> None:
    again = SMALL.without("/mail").with_log("/mail")
    assert again.logs()["/mail"] == 4


def test_a_change_returns_a_new_directory_and_keeps_the_old_one() -> None:
    before = SMALL.to_plain()
    SMALL.with_log("/x").renamed("/ads", "/y").with_attributes("/", {"extras": 1})
    assert SMALL.to_plain() == before


def test_a_renamed_log_keeps_its_number_and_its_own_attributes() -> None:
    renamed = SMALL.renamed("/ads/views", "/shop/views")
    assert renamed.find("/shop/views") == DirectoryEntry(LogId(2), {"backlog_s": 60})
    assert "/ads/views" not in renamed.entries


def test_a_renamed_directory_keeps_its_content() -> None:
    renamed = SMALL.with_attributes("/ads", {"extras": 1}).renamed("/ads", "/shop/ads")
    assert renamed.logs() == {"/mail": 3, "/shop/ads/clicks": 1, "/shop/ads/views": 2}
    assert renamed.explained("/shop/ads/clicks")["extras"] == Effective(1, "/shop/ads")


def test_a_directory_is_removed_with_its_logs_only_on_request() -> None:
    assert refusal(lambda: SMALL.without("/ads")) == "/ads: the directory is not empty; entries in it: 2"
    assert SMALL.without("/ads", recursive=True).entries.keys() == {"/", "/mail"}


def test_a_neighbour_with_a_longer_name_is_not_inside_a_directory() -> None:
    neighbours = SMALL.with_log("/ads-old")
    assert "/ads-old" in neighbours.without("/ads", recursive=True).entries
    assert "/ads-old" in neighbours.renamed("/ads", "/b").entries


def test_a_value_comes_from_the_nearest_directory_that_sets_it() -> None:
    directory = (
        SMALL.with_attributes("/", {"backlog_s": 10, "extras": 1})
        .with_attributes("/ads", {"backlog_s": 20, "scd": False})
        .with_attributes("/ads/clicks", {"sync_leaders": 2})
    )
    explained = directory.explained("/ads/clicks")
    assert explained["backlog_s"] == Effective(20, "/ads")
    assert explained["extras"] == Effective(1, "/")
    assert explained["sync_leaders"] == Effective(2, "/ads/clicks")
    assert explained["writer_order"] == Effective("strict", "default")
    assert directory.explained("/ads/views")["backlog_s"] == Effective(60, "/ads/views")
    assert directory.attributes("/ads/clicks").backlog_s == 20


def test_after_a_value_is_unset_the_one_above_it_holds() -> None:
    directory = SMALL.with_attributes("/ads", {"backlog_s": 20})
    unset = directory.without_attribute("/ads/views", "backlog_s")
    assert unset.explained("/ads/views")["backlog_s"] == Effective(20, "/ads")


def test_an_attribute_that_is_not_set_cannot_be_unset() -> None:
    message = refusal(lambda: SMALL.without_attribute("/ads/views", "extras"))
    assert message == "/ads/views: extras is not set here; these are: backlog_s"
    assert refusal(lambda: SMALL.without_attribute("/mail", "extras")).endswith("these are: none")


PATHS = ["", "/", "ads", "/ads/", "//ads", "/a b", "/a/../b", "/.", "/..", "/ü", "/" + "x" * 101, "/a" * 21]


@pytest.mark.parametrize("path", PATHS)
def test_a_name_that_is_not_a_path_is_refused_with_an_example(path: str) -> None:
    message = refusal(lambda: EMPTY.with_log(path))
    assert message.startswith(f"{path!r} is not a path of a log; it must be parts of letters")


@pytest.mark.parametrize("path", ["/...", "/.a", "/a.b-c_d", "/" + "x" * 100, "/a" * 20])
def test_unusual_names_are_allowed(path: str) -> None:
    assert EMPTY.with_log(path).logs() == {path: 1}


def test_a_name_is_taken_once() -> None:
    assert refusal(lambda: SMALL.with_log("/mail"), NameTakenError).startswith(
        "/mail: there is already a log"
    )
    assert "already a directory" in refusal(lambda: SMALL.with_log("/ads"), NameTakenError)
    assert "already a log" in refusal(lambda: SMALL.renamed("/ads", "/mail"), NameTakenError)


def test_nothing_can_be_inside_a_log() -> None:
    assert refusal(lambda: SMALL.with_log("/mail/in")) == "/mail/in: /mail is a log; nothing can be inside it"
    assert "/mail is a log" in refusal(lambda: SMALL.renamed("/ads", "/mail/ads"))


def test_a_directory_cannot_be_moved_into_itself() -> None:
    assert "the same path or inside it" in refusal(lambda: SMALL.renamed("/ads", "/ads/x"))
    assert "the same path or inside it" in refusal(lambda: SMALL.renamed("/ads", "/ads"))


def test_a_directory_cannot_be_moved_so_deep_that_the_paths_of_its_logs_are_too_long() -> None:
    assert "is not a path of a log" in refusal(lambda: SMALL.renamed("/ads", "/a" * 20))


def test_the_root_cannot_be_removed_or_renamed() -> None:
    assert "cannot be removed" in refusal(lambda: SMALL.without("/", recursive=True))
    assert "cannot be renamed" in refusal(lambda: SMALL.renamed("/", "/x"))


def test_a_missing_path_is_answered_with_the_nearest() -> None:
    message = refusal(lambda: SMALL.find("/ads/click"), UnknownLogError)
    assert message == "there is no log or directory '/ads/click'; the nearest is '/ads/clicks'"
    assert refusal(lambda: SMALL.find("?"), UnknownLogError) == "there is no log or directory '?'"


def test_attributes_of_a_directory_are_checked_for_every_log_in_it() -> None:
    directory = SMALL.with_attributes("/ads/views", {"nodeset_size": 3})
    message = refusal(lambda: directory.with_attributes("/ads", {"extras": 2}))
    assert message == "/ads/views: nodeset_size must be 0 or at least 5, copies plus extras, got 3"


def test_a_move_is_checked_against_what_is_inherited_at_the_new_place() -> None:
    directory = SMALL.with_attributes("/ads/views", {"nodeset_size": 3}).with_directory(
        "/big", {"replication": 5}
    )
    assert "/big/views: nodeset_size" in refusal(lambda: directory.renamed("/ads/views", "/big/views"))


def test_a_directory_is_read_as_it_was_written() -> None:
    directory = SMALL.with_attributes("/ads", {"replication": "node: 3, rack: 2"}).without("/mail")
    assert LogDirectory.from_plain(json.loads(json.dumps(directory.to_plain()))) == directory
    assert DIRECTORY.decode(DIRECTORY.encode(directory), "directory") == directory


def test_the_written_form_is_the_documented_one() -> None:
    assert EMPTY.with_log("/ads/clicks", {"extras": "1"}).to_plain() == {
        "format": 1,
        "next_log": 2,
        "entries": {
            "/": {"attributes": {}},
            "/ads": {"attributes": {}},
            "/ads/clicks": {"log": 1, "attributes": {"extras": 1}},
        },
    }


BROKEN = [
    ({"format": 2, "next_log": 1, "entries": {"/": {"attributes": {}}}}, "reads format 1"),
    ({"format": 1, "next_log": 1, "entries": {}}, "'/'"),
    ({"format": 1, "next_log": 2, "entries": {"/": {"log": 1, "attributes": {}}}}, "cannot be a log"),
    ({"format": 1, "next_log": 1, "entries": {"/": {"attributes": {"extra": 1}}}}, "nearest is 'extras'"),
    (
        {
            "format": 1,
            "next_log": 1,
            "entries": {"/": {"attributes": {}}, "/a": {"log": 1, "attributes": {}}},
        },
        "never given out",
    ),
    (
        {
            "format": 1,
            "next_log": 2,
            "entries": {p: {"attributes": {}} | ({} if p == "/" else {"log": 1}) for p in ("/", "/a", "/b")},
        },
        "is taken",
    ),
    ({"format": 1, "next_log": 1, "entries": {"/": {"attributes": {}}, "/a/b": {"attributes": {}}}}, "'/a'"),
    (
        {"format": 1, "next_log": 1, "entries": {"/": {"attributes": {}}, "a": {"attributes": {}}}},
        "not a path",
    ),
    (
        {
            "format": 1,
            "next_log": 3,
            "entries": {
                "/": {"attributes": {}},
                "/a": {"log": 1, "attributes": {}},
                "/a/b": {"attributes": {}},
            },
        },
        "inside a log",
    ),
    (
        {"format": 1, "next_log": 1, "entries": {"/": {"attributes": {"leaders": 9}}}},
        "leaders must be at most",
    ),
]


@pytest.mark.parametrize(("plain", "reason"), BROKEN)
def test_a_directory_that_breaks_the_rules_is_not_read(plain: dict[str, object], reason: str) -> None:
    with pytest.raises((KeyError, ValueError, InvalidArgumentError), match=reason):
        LogDirectory.from_plain(plain)


parts = st.sampled_from(["a", "b", "c"])
paths = st.lists(parts, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
steps = st.one_of(
    st.tuples(st.just("with_log"), paths),
    st.tuples(st.just("with_directory"), paths),
    st.tuples(st.just("without"), paths),
    st.tuples(st.just("renamed"), paths, paths),
    st.tuples(st.just("with_attributes"), paths, st.just({"extras": 1})),
    st.tuples(st.just("without_attribute"), paths, st.just("extras")),
)


@given(st.lists(steps, max_size=30))
def test_after_any_changes_names_and_numbers_are_valid(history: list[tuple[str, ...]]) -> None:
    directory = EMPTY
    given_out: set[int] = set()
    for name, *arguments in history:
        try:
            after = getattr(directory, name)(*arguments)
        except LogDeviceError:
            continue
        created = set(after.logs().values()) - set(directory.logs().values())
        assert not created & given_out
        given_out |= created
        directory = after
        # A valid directory can be written down and read again; from_plain checks all its rules.
        assert LogDirectory.from_plain(directory.to_plain()) == directory


def test_ten_thousand_logs_fit_into_one_cell() -> None:
    entries = {
        f"/team{number % 50}/log-{number}": DirectoryEntry(LogId(number)) for number in range(1, 10_001)
    }
    folders = {f"/team{number}": DirectoryEntry() for number in range(50)}
    directory = LogDirectory({"/": DirectoryEntry(), **folders, **entries}, LogId(10_001))
    data = DIRECTORY.encode(directory)
    assert len(data) < 200_000
    assert DIRECTORY.decode(data, "directory") == directory
