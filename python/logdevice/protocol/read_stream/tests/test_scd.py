"""Mode, lists and rewinds alone: wishes are collected and carried out together.

Rules R1, R3 and R6 of read_path.md.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.scd import RewindReason, Rewinds, Scd
from logdevice.settings import ReadStreamSettings
from logdevice.types import NodeId, nodes

N1, N2, N3, N4 = nodes([1, 2, 3, 4])
READ_SET = {N1, N2, N3, N4}
SCD, ALL_SEND_ALL = ReadMode.SCD, ReadMode.ALL_SEND_ALL


def scd(*down: NodeId, slow: tuple[NodeId, ...] = ()) -> Scd:
    made = Scd(SCD)
    for node in down:
        made.mark_down(node)
    made.want_slow(slow)
    made.apply(READ_SET, ())
    return made


# ---- lists --------------------------------------------------------------------------------------


def test_a_wish_changes_nothing_before_it_is_carried_out() -> None:
    """R1"""
    made = Scd(SCD)
    assert made.mark_down(N2)
    made.want_slow([N3])
    made.want_mode(ALL_SEND_ALL)
    assert (made.mode, made.known_down) == (SCD, ())


def test_a_node_is_marked_down_once() -> None:
    made = Scd(SCD)
    assert made.mark_down(N2)
    assert not made.mark_down(N2)
    made.apply(READ_SET, ())
    assert made.known_down == (N2,)
    assert not made.mark_down(N2)


def test_in_all_send_all_no_node_is_marked_down() -> None:
    made = Scd(ALL_SEND_ALL)
    assert not made.mark_down(N1)
    made.apply(READ_SET, ())
    assert made.known_down == ()


def test_the_list_holds_down_and_slow_nodes_in_order() -> None:
    made = scd(N3, slow=(N1,))
    assert (made.known_down, made.down, made.slow) == ((N1, N3), {N3}, {N1})


def test_a_node_that_is_down_is_not_called_slow() -> None:
    made = scd(slow=(N1,))
    made.mark_down(N1)
    made.apply(READ_SET, ())
    assert (made.down, made.slow) == ({N1}, set())


def test_a_slow_node_that_was_down_in_between_is_slow_again() -> None:
    made = scd(N1, slow=(N1,))
    made.mark_up(N1)
    made.apply(READ_SET, ())
    assert (made.down, made.slow) == (set(), {N1})


def test_slow_nodes_are_news_only_if_the_list_changes() -> None:
    made = scd(N1, slow=(N2,))
    assert not made.want_slow([N2])
    assert not made.want_slow([N1, N2])
    assert made.want_slow([N3])


def test_a_node_that_is_up_leaves_the_list() -> None:
    made = scd(N1, N2)
    made.mark_up(N1)
    assert N1 in made.known_down
    made.apply(READ_SET, ())
    assert made.known_down == (N2,)


def test_trouble_takes_back_the_wish_to_take_a_node_off() -> None:
    made = scd(N1)
    made.mark_up(N1)
    assert made.mark_down(N1)
    made.apply(READ_SET, ())
    assert made.known_down == (N1,)


def test_good_news_does_not_take_back_trouble() -> None:
    made = Scd(SCD)
    made.mark_down(N1)
    made.mark_up(N1)
    made.apply(READ_SET, ())
    assert made.known_down == (N1,)


def test_wishes_are_carried_out_once() -> None:
    made = scd(N1)
    made.mark_up(N1)
    made.apply(READ_SET, ())
    assert made.mark_down(N1)
    made.apply(READ_SET, ())
    made.apply(READ_SET, ())
    assert made.known_down == (N1,)


def test_a_node_outside_the_read_set_is_not_listed() -> None:
    made = Scd(SCD)
    made.mark_down(NodeId(9))
    made.want_slow([NodeId(8)])
    made.apply(READ_SET, ())
    assert made.known_down == ()


def test_a_node_that_left_is_forgotten_everywhere() -> None:
    made = scd(N1, slow=(N2,))
    made.mark_up(N1)
    assert made.forget(N1)
    assert made.forget(N2)
    assert not made.forget(N3)
    made.apply(READ_SET, ())
    assert made.known_down == ()


def test_a_node_that_left_before_it_was_listed_changes_no_list() -> None:
    made = Scd(SCD)
    made.mark_down(N1)
    assert not made.forget(N1)
    made.apply(READ_SET, ())
    assert made.known_down == ()


# ---- mode ---------------------------------------------------------------------------------------


def test_all_send_all_has_no_lists() -> None:
    made = scd(N1, slow=(N2,))
    made.want_mode(ALL_SEND_ALL)
    made.apply(READ_SET, ())
    assert (made.mode, made.down, made.slow) == (ALL_SEND_ALL, set(), set())


def test_when_all_nodes_are_down_the_mode_is_all_send_all() -> None:
    """R6"""
    assert scd(N1, N2, N3, N4).mode is ALL_SEND_ALL
    assert scd(N1, N2, N3).mode is SCD


def test_single_copy_delivery_begins_with_the_unfit_on_the_list() -> None:
    made = Scd(ALL_SEND_ALL)
    made.want_mode(SCD)
    made.apply(READ_SET, [N2])
    assert (made.mode, made.known_down) == (SCD, (N2,))


def test_a_wish_for_a_mode_is_carried_out_once() -> None:
    """R1: after R6 only a new wish leads back."""
    made = Scd(ALL_SEND_ALL)
    made.want_mode(SCD)
    made.apply(READ_SET, ())
    for node in sorted(READ_SET):
        made.mark_down(node)
    made.apply(READ_SET, ())
    made.apply(READ_SET, ())
    assert made.mode is ALL_SEND_ALL


def test_unfit_nodes_matter_only_when_single_copy_delivery_begins() -> None:
    made = scd(N1)
    made.apply(READ_SET, [N2])
    assert made.known_down == (N1,)


def test_single_copy_delivery_does_not_begin_when_all_are_unfit() -> None:
    """R6"""
    made = Scd(ALL_SEND_ALL)
    made.want_mode(SCD)
    made.apply(READ_SET, READ_SET)
    assert (made.mode, made.known_down) == (ALL_SEND_ALL, ())


# ---- rewinds ------------------------------------------------------------------------------------


def rewinds(**settings: object) -> Rewinds:
    defaults: dict[str, object] = {
        "rewind_delay_ms_min": 10,
        "rewind_delay_ms_max": 100,
        "rewind_delay_decay": 0.0,
    }
    return Rewinds(ReadStreamSettings(**{**defaults, **settings}))  # type: ignore[arg-type]


def delay_ms(made: Rewinds, now_ms: int) -> int:
    at_ms = made.schedule(RewindReason.SCD_TIMEOUT, now_ms)
    assert at_ms is not None
    made.begin()
    return at_ms - now_ms


def test_the_first_reason_decides_when_and_others_join_it() -> None:
    """R3"""
    made = rewinds()
    assert made.schedule(RewindReason.CONNECTION_LOST, 1_000) == 1_010
    assert made.schedule(RewindReason.CHECKSUM_FAIL, 1_005) is None
    assert made.is_pending
    assert made.pending == (RewindReason.CONNECTION_LOST, RewindReason.CHECKSUM_FAIL)
    made.begin()
    assert (made.is_pending, made.done) == (False, 1)
    assert made.reasons == {RewindReason.CONNECTION_LOST: 1, RewindReason.CHECKSUM_FAIL: 1}


def test_the_delay_doubles_up_to_a_limit() -> None:
    """R3"""
    made = rewinds()
    assert [delay_ms(made, 0) for _ in range(6)] == [10, 20, 40, 80, 100, 100]


def test_the_delay_shrinks_while_nothing_happens() -> None:
    """R3: by a tenth of the time since the last one was asked for, down to the first delay"""
    made = rewinds(rewind_delay_decay=0.1)
    assert [delay_ms(made, 5_000) for _ in range(4)] == [10, 20, 40, 80]
    assert delay_ms(made, 5_300) == 70
    assert delay_ms(made, 100_000) == 10


def test_the_delay_may_be_zero() -> None:
    made = rewinds(rewind_delay_ms_min=0)
    assert [delay_ms(made, 5) for _ in range(3)] == [0, 0, 0]
