"""Lineage: branches, the rollback table with its published cases, random histories against a plain model."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from logdevice.protocol.lineage import (
    BRANCHES_MAX,
    Branch,
    Held,
    Lineage,
    lost_ranges,
    parsed_id,
    rollback_point,
    shown_id,
)
from logdevice.types import LSN_OLDEST, Epoch, Gap, GapType, Lsn, LsnRange


def table(*branches: tuple[int, int]) -> Lineage:
    """A lineage from (id, sequence number of the last common item), oldest first."""
    return Lineage(tuple(Branch(id, Epoch(1), Lsn(seq + 1)) for id, seq in branches))


def asked(
    lineage: Lineage,
    *,
    high: int,
    id: int,
    start: int,
    snapshot: tuple[int, int],
    purge: int = 0,
    seen_purge: int = 0,
    strict: bool = False,
) -> int | None:
    """`rollback_point` in the terms of the protocol of the table: sequence numbers are inclusive."""
    held = Held(
        next=Lsn(start + 1),
        lineage=id,
        snapshot=LsnRange(Lsn(snapshot[0] + 1), Lsn(snapshot[1] + 1)),
        dropped_seen=Lsn(seen_purge + 1),
    )
    point = rollback_point(lineage, held, end=Lsn(high + 1), dropped_end=Lsn(purge + 1), strict=strict)
    return None if point is None else int(point) - 1


TWO = table((1111, 0), (2222, 3))
ONE = table((7, 0))


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        # In the middle of a snapshot that reaches over the branch: back to where the snapshot began.
        (asked(TWO, high=10, id=1111, start=3, snapshot=(1, 4)), 1),
        # Without its snapshot the position is accepted, so a checkpoint must include the snapshot.
        (asked(TWO, high=10, id=1111, start=3, snapshot=(3, 3)), None),
        # Only the start of the snapshot was seen.
        (asked(TWO, high=10, id=1111, start=3, snapshot=(3, 8)), None),
        # A complete snapshot above the branch: back to the branch, not to the snapshot's start.
        (asked(TWO, high=10, id=1111, start=5, snapshot=(1, 5)), 3),
        (asked(TWO, high=10, id=1111, start=5, snapshot=(4, 6)), 3),
        # The newest id: everything that the log has holds.
        (asked(TWO, high=10, id=2222, start=10, snapshot=(10, 10)), None),
        (asked(TWO, high=10, id=2222, start=11, snapshot=(11, 11)), 10),
        # Nothing held; nothing known.
        (asked(ONE, high=0, id=0, start=0, snapshot=(0, 0)), None),
        (asked(ONE, high=0, id=0, start=10, snapshot=(0, 10)), 0),
        (asked(ONE, high=0, id=9, start=0, snapshot=(0, 0), strict=True), 0),
        (asked(ONE, high=0, id=9, start=0, snapshot=(0, 0)), None),
        (asked(ONE, high=0, id=0, start=0, snapshot=(0, 0), strict=True), None),
        # Below the dropped end, unless the reader knew of it.
        (asked(ONE, high=300, id=7, start=3, snapshot=(3, 5), purge=4), 0),
        (asked(ONE, high=300, id=7, start=5, snapshot=(0, 5), purge=4), None),
        (asked(ONE, high=300, id=7, start=3, snapshot=(3, 5), purge=4, seen_purge=4), None),
        # Sequence numbers near the maximum.
        (asked(TWO, high=2**62, id=2222, start=2**62, snapshot=(2**62, 2**62)), None),
    ],
)
def test_the_published_cases(got: int | None, wanted: int | None) -> None:
    """L24, L25, L26, L27: every row of the table of rollback decisions."""
    assert got == wanted


def test_a_branch_below_earlier_ones_counts_for_all_of_them() -> None:
    """L23: the lowest base of all newer branches, in whatever order they came."""
    lineage = table((1, 0), (2, 50), (3, 20), (4, 90))
    ends = [lineage.common_end(id, Lsn(200)) for id in (1, 2, 3, 4)]
    assert ends == [Lsn(21), Lsn(21), Lsn(91), Lsn(200)]
    assert lineage.common_end(5, Lsn(200)) is None


def test_the_number_of_branches_is_limited_and_the_version_grows() -> None:
    """L22: a reader that knows only a removed branch has nothing in common with the log any more."""
    lineage = Lineage()
    assert (lineage.id, lineage.version) == (0, 0)
    for id in range(1, BRANCHES_MAX + 4):
        lineage = lineage.branched(id, Epoch(id), Lsn(id))
        assert lineage.version == id == lineage.id
    assert [branch.id for branch in lineage.branches] == list(range(4, BRANCHES_MAX + 4))
    assert rollback_point(lineage, Held(next=Lsn(3), lineage=3)) == LSN_OLDEST


def test_ids_are_never_zero_nor_taken_twice() -> None:
    """L21."""
    with pytest.raises(ValueError, match="lineage id 0 is not between"):
        Lineage().branched(0, Epoch(1), LSN_OLDEST)
    with pytest.raises(ValueError, match="is not between 1 and"):
        Branch(1 << 48, Epoch(1), LSN_OLDEST)
    with pytest.raises(ValueError, match="00000000002a is taken"):
        Lineage().branched(42, Epoch(1), LSN_OLDEST).branched(42, Epoch(2), Lsn(7))


def test_ids_have_a_text_form() -> None:
    assert Lineage().shown is None
    assert TWO.shown == shown_id(2222) == "0000000008ae"
    assert parsed_id(shown_id(0xABC)) == 0xABC
    for text in ("", "abc", "00000000002A", "+0000000002a"):
        with pytest.raises(ValueError, match="12 hexadecimal digits"):
            parsed_id(text)


def test_lost_ranges_were_read_and_are_gone() -> None:
    """L28: other gaps are no losses, and a reader does not lose what it never read."""
    gaps = [
        Gap(GapType.HOLE, Lsn(3), Lsn(4)),
        Gap(GapType.DATALOSS, Lsn(5), Lsn(7)),
        Gap(GapType.DATALOSS, Lsn(7), Lsn(9)),
        Gap(GapType.TRIM, Lsn(9), Lsn(10)),
        Gap(GapType.DATALOSS, Lsn(12), Lsn(90)),
        Gap(GapType.DATALOSS, Lsn(95), Lsn(99)),
    ]
    assert lost_ranges(gaps, Lsn(20)) == (LsnRange(Lsn(5), Lsn(9)), LsnRange(Lsn(12), Lsn(20)))
    assert lost_ranges(gaps, Lsn(5)) == ()


@dataclass
class Consumer:
    held: Held
    copy: list[int]


def history(seed: int) -> tuple[Lineage, list[int], list[Consumer]]:
    """A log that loses its end now and then, and what consumers read from it meanwhile."""
    dice, values = random.Random(seed), iter(range(1, 1000))
    log: list[int] = []
    lineage = table((1, 0))
    consumers: list[Consumer] = []
    for id in range(2, 62):
        what = dice.random()
        if what < 0.6:
            log.append(next(values))
        elif what < 0.85 and log:
            last = dice.randint(1, len(log))
            first = dice.randint(0, last)
            start = dice.randint(first, last)
            snapshot = LsnRange(Lsn(first + 1), Lsn(last + 1))
            held = Held(next=Lsn(start + 1), lineage=lineage.id, snapshot=snapshot)
            consumers.append(Consumer(held, log[:start]))
        elif what >= 0.85:
            kept = dice.randint(0, len(log))
            del log[kept:]
            lineage = lineage.branched(id, Epoch(id), Lsn(kept + 1))
    return lineage, log, consumers


def test_random_histories_never_get_an_unsafe_answer() -> None:
    """I9: what holds is still in the log, and below a rollback point everything is as it was read."""
    rollbacks = 0
    for seed in range(1500):
        lineage, log, consumers = history(seed)
        for consumer in consumers:
            point = rollback_point(lineage, consumer.held, end=Lsn(len(log) + 1))
            if point is None:
                assert consumer.copy == log[: len(consumer.copy)], seed
            else:
                rollbacks += 1
                kept = int(point) - 1
                assert consumer.copy[:kept] == log[:kept], seed
                assert point <= consumer.held.next, seed
    assert rollbacks > 1000
