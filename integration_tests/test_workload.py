"""The checks of the integration tests find broken promises. These tests need no cluster."""

from __future__ import annotations

import pytest

from integration_tests.workload import END, Reading, check, check_same
from logdevice.types import LSN_OLDEST, Gap, GapType, Lsn

A, B, C = (Lsn.of(1, esn) for esn in (1, 2, 3))
ACKNOWLEDGED = {b"w1": A, b"w2": A, b"w3": B, END: C}
GOOD = [(A, 0, b"w1"), (A, 1, b"w2"), (B, 0, b"w3"), (C, 0, END)]
BRIDGE = Gap(GapType.BRIDGE, LSN_OLDEST, A)


def reading(entries: list[tuple[Lsn, int, bytes]], *gaps: Gap) -> Reading:
    return Reading(entries, list(gaps), C.next)


def test_a_right_reading_passes_the_checks() -> None:
    check(reading(GOOD, BRIDGE), ACKNOWLEDGED, set())


def test_an_append_of_unknown_outcome_may_be_there_or_not() -> None:
    for entries in (GOOD, [*GOOD[:3], (B, 1, b"w4"), GOOD[3]]):
        check(reading(entries), ACKNOWLEDGED, {b"w4"})


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        (GOOD[1:], "not in their place"),
        (
            [(A, 0, b"w1"), (A, 1, b"w2"), (Lsn.of(1, 9), 0, b"w3"), (Lsn.of(2, 1), 0, END)],
            "not in their place",
        ),
        ([GOOD[0], *GOOD], "positions do not increase"),
        ([GOOD[1], GOOD[0], *GOOD[2:]], "positions do not increase"),
        ([*GOOD, (Lsn.of(1, 4), 0, b"w1")], "not in their place"),
        ([(Lsn.of(0, 1), 0, b"w1"), *GOOD], "more than once"),
        ([*GOOD[:3], (B, 1, b"w9"), GOOD[3]], "never appended"),
        ([(A, 0, b"w2"), (A, 1, b"w1"), *GOOD[2:]], "order of the appends"),
    ],
)
def test_a_broken_promise_is_noticed(entries: list[tuple[Lsn, int, bytes]], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check(reading(entries), ACKNOWLEDGED, set())


def test_an_invented_loss_is_noticed() -> None:
    with pytest.raises(AssertionError, match="reported as lost"):
        check(reading(GOOD, Gap(GapType.DATALOSS, LSN_OLDEST, A)), ACKNOWLEDGED, set())


def test_readers_that_disagree_are_noticed() -> None:
    check_same(reading(GOOD, BRIDGE), reading(GOOD, BRIDGE))
    with pytest.raises(AssertionError, match="only one reader"):
        check_same(reading(GOOD), reading(GOOD[1:]))
    with pytest.raises(AssertionError):
        check_same(reading(GOOD, BRIDGE), reading(GOOD))


def test_a_skipped_position_is_noticed() -> None:
    halfway = Reading()
    halfway.note(BRIDGE)
    with pytest.raises(AssertionError, match="follows"):
        halfway.note(Gap(GapType.HOLE, B, C))


def test_a_gap_in_pieces_is_one_gap() -> None:
    whole = Reading()
    for start, end in ((LSN_OLDEST, A), (A, B)):
        whole.note(Gap(GapType.BRIDGE, start, end))
    assert whole.gaps == [Gap(GapType.BRIDGE, LSN_OLDEST, B)]
