"""Taking a cut: its rounds, and why it begins again."""

from __future__ import annotations

from logdevice.protocol.cut import CutFailed, CutFound, CutRefused, CutTaking
from logdevice.protocol.messages.write import AppendStatus, Barrier, BarrierIs, GetTail, Tail
from logdevice.types import Epoch, LogId, LogPoint, Lsn

ONE, TWO = LogId(1), LogId(2)
LOGS = (ONE, TWO)


def consistent(seen_ms: int = 0, attempts: int = 2) -> CutTaking:
    return CutTaking(LOGS, is_consistent=True, seen_ms=seen_ms, attempts_max=attempts)


def tails(*clocks: int, epochs: tuple[int, int] = (4, 4)) -> list[Tail]:
    return [
        Tail(status=AppendStatus.OK, end=LogPoint(Lsn.of(epoch, 9)), clock_ms=clock_ms)
        for log, clock_ms, epoch in zip(LOGS, clocks, epochs, strict=True)
    ]


def ends(
    *places: int,
    epochs: tuple[int, int] = (4, 4),
    status: AppendStatus = AppendStatus.OK,
    clock_ms: int = 0,
) -> list[BarrierIs]:
    return [
        BarrierIs(status=status, epoch=Epoch(epoch), end=LogPoint(Lsn.of(epoch, place)), clock_ms=clock_ms)
        for log, place, epoch in zip(LOGS, places, epochs, strict=True)
    ]


def test_a_fresh_cut_is_one_round_of_confirmed_ends() -> None:
    """T20."""
    taking = CutTaking(LOGS, is_consistent=False, seen_ms=0, attempts_max=1)
    assert taking.questions() == [Barrier(ONE, confirm=True), Barrier(TWO, confirm=True)]
    found = ends(5, 6, clock_ms=70)
    assert taking.answered(found) == CutFound(70, tuple(found))


def test_a_consistent_cut_is_at_the_highest_time_of_all_and_confirmed_at_the_end() -> None:
    """T21, T22, T23."""
    taking = consistent()
    assert taking.questions() == [GetTail(ONE, confirm=False), GetTail(TWO, confirm=False)]
    assert taking.answered(tails(100, 130)) is None
    assert taking.questions() == [Barrier(ONE, 130), Barrier(TWO, 130)]
    found = ends(5, 6)
    assert taking.answered(found) is None
    assert taking.questions() == [Barrier(ONE, confirm=True), Barrier(TWO, confirm=True)]
    assert taking.answered(ends(8, 9)) == CutFound(130, tuple(found))


def test_what_the_client_has_seen_is_in_the_cut() -> None:
    """T21."""
    taking = consistent(seen_ms=500)
    taking.answered(tails(100, 130))
    assert taking.questions() == [Barrier(ONE, 500), Barrier(TWO, 500)]


def test_a_sequencer_that_was_replaced_in_any_round_makes_it_begin_again() -> None:
    """T23."""
    for times, places, last in (((4, 4), (4, 5), (4, 5)), ((4, 4), (4, 4), (5, 4)), ((3, 4), (4, 4), (4, 4))):
        taking = consistent()
        taking.answered(tails(1, 2, epochs=times))
        taking.answered(ends(5, 6, epochs=places))
        assert taking.answered(ends(5, 6, epochs=last)) is None
        assert taking.questions() == [GetTail(ONE, confirm=False), GetTail(TWO, confirm=False)]


def test_a_time_too_long_ago_makes_it_begin_again_up_to_a_limit() -> None:
    """T22."""
    taking = consistent(attempts=2)
    taking.answered(tails(1, 2))
    assert taking.answered(ends(0, 0, status=AppendStatus.TOO_LATE)) is None
    taking.answered(tails(1, 2))
    assert taking.answered(ends(0, 0, status=AppendStatus.TOO_LATE)) == CutFailed()


def test_a_clock_that_cannot_be_moved_so_far_ends_the_cut() -> None:
    """T15."""
    taking = consistent()
    taking.answered(tails(1, 2_000_000))
    refused = ends(0, 0, status=AppendStatus.CLOCK_AHEAD, clock_ms=7)
    assert taking.answered(refused) == CutRefused(2_000_000, LOGS[0], refused[0])
