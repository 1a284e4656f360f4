"""The slow-node detector alone: which nodes it finds, for how long, and what it forgets.

Rules L2, L3, L5 and L6 of read_path.md. `waits` says how long the head was missing in one window
while a node owed an answer.
"""

from __future__ import annotations

import pytest

from logdevice.protocol.read_stream.detector import MovingAverage, SlowNodeDetector
from logdevice.settings import ReadStreamSettings
from logdevice.types import NodeId, nodes


class Bench:
    """Plays windows one after the other; each says how long the reader waited for every node."""

    def __init__(self, **settings: object) -> None:
        defaults: dict[str, object] = {
            "slow_node_floor_ms": 50,
            "slow_node_margin": 10.0,
            "slow_node_margin_decay_per_s": 0.0,
        }
        self.detector = SlowNodeDetector(ReadStreamSettings(**{**defaults, **settings}))  # type: ignore[arg-type]
        self.now_ms = 0

    def window(self, waits: dict[int, int], *, outliers_max: int = 2) -> tuple[NodeId, ...]:
        """Play one window, one node after the other. Returns the nodes on probation after it."""
        for node, waited_ms in waits.items():
            self.detector.waits_for((NodeId(node),), self.now_ms)
            self.now_ms += waited_ms
        self.detector.window_done(nodes(waits), self.now_ms)
        self.detector.check(nodes(waits), outliers_max, self.now_ms)
        return self.detector.on_probation

    def check(self, *candidates: int, outliers_max: int = 2) -> bool:
        return self.detector.check(nodes(candidates), outliers_max, self.now_ms)


# ---- which nodes are slow -----------------------------------------------------------------------


def test_one_node_that_stands_apart_is_found() -> None:
    """L3"""
    assert Bench().window({1: 10, 2: 10, 3: 10, 4: 1_000, 5: 10}) == (4,)


def test_two_nodes_that_stand_apart_are_found_together() -> None:
    """L3: either of them would hide the other, so the larger group is tried first."""
    assert Bench().window({1: 10, 2: 1_000, 3: 10, 4: 1_100, 5: 10}) == (2, 4)


def test_of_two_different_outliers_both_are_found() -> None:
    """L3"""
    assert Bench().window({1: 10, 2: 10, 3: 10, 4: 500, 5: 60_000}) == (4, 5)


def test_a_slow_group_that_is_too_large_is_not_found() -> None:
    """L3, L4: two of three slow nodes do not stand apart from the third, which is as slow."""
    assert Bench().window({1: 10, 2: 10, 3: 1_000, 4: 1_000, 5: 1_000}) == ()


def test_a_slow_group_that_is_small_enough_is_found() -> None:
    """L3"""
    assert Bench().window({1: 10, 2: 10, 3: 10, 4: 1_000, 5: 1_000}) == (4, 5)


def test_if_only_one_may_be_listed_two_equally_slow_nodes_are_left_alone() -> None:
    """L4: the second node is as slow as the first and counts as its peer."""
    assert Bench().window({1: 10, 2: 10, 3: 10, 4: 1_000, 5: 1_000}, outliers_max=1) == ()


def test_if_only_one_may_be_listed_the_slower_of_two_is_found() -> None:
    """L4"""
    assert Bench().window({1: 10, 2: 10, 3: 10, 4: 60, 5: 60_000}, outliers_max=1) == (5,)


def test_nodes_that_are_all_the_same_have_no_outlier() -> None:
    """L3"""
    assert Bench().window(dict.fromkeys(range(1, 6), 5_000)) == ()


def test_nodes_that_get_evenly_slower_have_no_outlier() -> None:
    """L3"""
    assert Bench().window({node: node * 100 for node in range(1, 11)}) == ()


@pytest.mark.parametrize("waits", [{}, {1: 5_000}, {1: 5_000, 2: 0}])
def test_there_must_be_peers_to_compare_with(waits: dict[int, int]) -> None:
    """L3: at least two other nodes."""
    assert Bench().window(waits) == ()


def test_no_node_is_listed_if_none_may_be() -> None:
    """L4"""
    assert Bench().window({1: 0, 2: 0, 3: 5_000}, outliers_max=0) == ()


def test_the_floor_protects_quick_nodes_from_each_other() -> None:
    """L3: the node is a hundred times slower than its peers, and still quick."""
    assert Bench(slow_node_floor_ms=50).window({1: 0, 2: 0, 3: 0, 4: 49}) == ()
    assert Bench(slow_node_floor_ms=50).window({1: 0, 2: 0, 3: 0, 4: 50}) == (4,)


def test_the_margin_adds_a_multiple_of_the_mean() -> None:
    """L3: peers of 100 ms without spread and a margin of 10 make 1100 ms."""
    assert Bench().window({1: 100, 2: 100, 3: 100, 4: 1_099}) == ()
    assert Bench().window({1: 100, 2: 100, 3: 100, 4: 1_100}) == (4,)


def test_the_spread_of_the_peers_counts_five_times() -> None:
    """L3: peers of 100 and 300 ms have mean 200 and spread 100: 200 + 500 without any margin."""
    assert Bench(slow_node_margin=0.0).window({1: 100, 2: 300, 3: 699}, outliers_max=1) == ()
    assert Bench(slow_node_margin=0.0).window({1: 100, 2: 300, 3: 700}, outliers_max=1) == (3,)


# ---- samples ------------------------------------------------------------------------------------


def test_one_bad_window_among_many_good_ones_is_averaged_out_once_it_is_over() -> None:
    """L2: once a window is over, only the average counts."""
    bench = Bench()
    for _ in range(99):
        bench.window({1: 1, 2: 1, 3: 1, 4: 1})
    assert bench.window({1: 1, 2: 1, 3: 1, 4: 900}) == ()


def test_a_wait_that_goes_on_counts_before_the_window_is_over() -> None:
    """L2: a node that hangs must not be waited for until the window ends."""
    bench = Bench()
    bench.detector.waits_for(nodes([1]), 0)
    bench.now_ms = 50
    assert bench.check(1, 2, 3)
    assert bench.detector.on_probation == (1,)


def test_all_nodes_that_owe_an_answer_are_waited_for() -> None:
    """L1: no node stands apart if all of them are silent."""
    bench = Bench()
    bench.detector.waits_for(nodes([1, 2, 3, 4, 5]), 0)
    bench.now_ms = 60_000
    assert not bench.check(1, 2, 3, 4, 5)


def test_time_in_which_no_node_owes_an_answer_is_not_counted() -> None:
    """L1"""
    bench = Bench()
    bench.detector.waits_for(nodes([1]), 0)
    bench.detector.waits_for((), 40)
    bench.detector.waits_for(nodes([1]), 60_000)
    bench.now_ms = 60_009
    assert not bench.check(1, 2, 3)
    bench.now_ms = 60_010
    assert bench.check(1, 2, 3)


def test_a_rewind_measures_the_window_anew() -> None:
    """L2"""
    bench = Bench()
    bench.detector.waits_for(nodes([1]), 0)
    bench.detector.waits_for((), 40)
    bench.detector.restart_window(45)
    bench.detector.waits_for(nodes([1]), 50)
    bench.now_ms = 99
    assert not bench.check(1, 2, 3)


def test_the_average_forgets_what_is_too_old() -> None:
    """L2: ten buckets"""
    average = MovingAverage(span_ms=100)
    assert average.mean == 0
    average.add(50, now_ms=0)
    average.add(30, now_ms=5)
    average.add(10, now_ms=99)
    assert average.mean == 30
    average.add(20, now_ms=100)
    assert average.mean == 15


def test_a_node_that_left_is_no_longer_on_probation() -> None:
    bench = Bench()
    assert bench.window({1: 0, 2: 0, 3: 5_000}, outliers_max=1) == (3,)
    bench.detector.forget(NodeId(3))
    assert bench.detector.on_probation == ()


def test_a_node_that_left_is_no_longer_waited_for() -> None:
    """The other nodes still are."""
    bench = Bench()
    bench.detector.waits_for(nodes([2, 3]), 0)
    bench.detector.forget(NodeId(3))
    bench.now_ms = 60
    assert bench.check(1, 2, 3, 4)
    assert bench.detector.on_probation == (2,)


def test_a_node_that_comes_back_after_it_left_is_measured_anew() -> None:
    bench = Bench()
    bench.window({1: 0, 2: 0, 3: 5_000}, outliers_max=0)
    bench.detector.forget(NodeId(3))
    assert not bench.check(1, 2, 3)


# ---- probation and margin -----------------------------------------------------------------------


def test_no_probation_ends_while_there_is_none() -> None:
    assert Bench().detector.probation_end_ms is None


def test_after_its_probation_a_node_is_measured_anew() -> None:
    """L5"""
    bench = Bench(slow_node_probation_ms_min=60_000)
    assert bench.window({1: 0, 2: 0, 3: 5_000}, outliers_max=1) == (3,)
    assert bench.detector.probation_end_ms == 65_000
    bench.now_ms = 64_999
    assert not bench.check(1, 2, 3)
    bench.now_ms = 65_000
    assert bench.check(1, 2, 3)
    detector = bench.detector
    assert (detector.on_probation, detector.probation_end_ms) == ((), None)


def test_nodes_on_probation_count_towards_the_number_that_may_be_listed() -> None:
    """L4"""
    bench = Bench()
    assert bench.window({1: 0, 2: 0, 3: 0, 4: 0, 5: 5_000}, outliers_max=1) == (5,)
    assert bench.window({1: 0, 2: 0, 3: 0, 4: 5_000}, outliers_max=1) == (5,)


def probations(bench: Bench, *, count: int, healthy_ms: int) -> list[int]:
    """The length of each probation of N3, with healthy times in between."""
    lengths = []
    for _ in range(count):
        bench.window({1: 0, 2: 0, 3: 5_000}, outliers_max=1)
        end_ms = bench.detector.probation_end_ms
        assert end_ms is not None
        lengths.append(end_ms - bench.now_ms)
        bench.now_ms = end_ms
        bench.check(1, 2, 3)
        bench.now_ms += healthy_ms
    return lengths


def test_each_probation_is_twice_as_long_up_to_a_limit() -> None:
    """L5"""
    bench = Bench(
        slow_node_probation_ms_min=100, slow_node_probation_ms_max=500, slow_node_probation_decay=0.0
    )
    assert probations(bench, count=5, healthy_ms=0) == [100, 200, 400, 500, 500]


def test_a_healthy_time_shortens_the_next_probation() -> None:
    """L5: by a quarter of the healthy time, down to the first length."""
    bench = Bench(slow_node_probation_ms_min=100_000, slow_node_probation_decay=0.25)
    assert probations(bench, count=2, healthy_ms=35_000) == [100_000, 190_000]
    bench = Bench(slow_node_probation_ms_min=100_000, slow_node_probation_decay=0.25)
    assert probations(bench, count=2, healthy_ms=10_000_000) == [100_000, 100_000]


def after_a_verdict(*, calm_ms: int, waited_ms: int, decay: float, verdict_ms: int = 0) -> tuple[NodeId, ...]:
    """The nodes found slow some time after a first verdict, with peers of 100 ms."""
    bench = Bench(slow_node_margin_decay_per_s=decay, slow_node_probation_ms_min=1)
    bench.now_ms = verdict_ms
    assert bench.window({1: 100, 2: 100, 3: 100, 4: 60_000}, outliers_max=1) == (4,)
    bench.now_ms += calm_ms
    return bench.window({1: 100, 2: 100, 3: 100, 5: waited_ms}, outliers_max=1)


def test_the_margin_doubles_with_every_verdict() -> None:
    """L6: 100 + 20 * 100 instead of 100 + 10 * 100"""
    assert after_a_verdict(calm_ms=0, waited_ms=2_099, decay=0.0) == ()
    assert after_a_verdict(calm_ms=0, waited_ms=2_100, decay=0.0) == (5,)


def test_the_margin_shrinks_again_with_time() -> None:
    """L6: not below where it began"""
    assert after_a_verdict(calm_ms=3_600_000, waited_ms=1_099, decay=0.25) == ()
    assert after_a_verdict(calm_ms=3_600_000, waited_ms=1_100, decay=0.25) == (5,)


def test_the_margin_shrinks_by_its_decay_per_second() -> None:
    """L6: six seconds after the verdict (peers 300 ms, the node 1500 ms, the rest calm) 20 has become 14."""
    assert after_a_verdict(calm_ms=4_199, waited_ms=1_500, decay=1.0) == ()
    assert after_a_verdict(calm_ms=4_200, waited_ms=1_500, decay=1.0) == (5,)


@pytest.mark.parametrize(("waited_ms", "found"), [(2_600, ()), (2_700, (6,))])
def test_the_margin_doubles_from_what_it_has_shrunk_to(waited_ms: int, found: tuple[int, ...]) -> None:
    """L6: 20, after six seconds 14, doubled 28, and about three seconds later 25."""
    bench = Bench(slow_node_margin_decay_per_s=1.0, slow_node_probation_ms_min=1)
    bench.window({1: 100, 2: 100, 3: 100, 4: 60_000}, outliers_max=1)
    bench.now_ms += 4_200
    assert bench.window({1: 100, 2: 100, 3: 100, 5: 1_500}, outliers_max=1) == (5,)
    assert bench.window({1: 100, 2: 100, 3: 100, 6: waited_ms}, outliers_max=1) == found


def test_the_margin_shrinks_from_the_last_verdict_on() -> None:
    """L6: an hour without slow nodes before the verdict does not count."""
    assert after_a_verdict(calm_ms=0, waited_ms=1_500, decay=0.25, verdict_ms=3_600_000) == ()


def test_the_detector_can_be_turned_off() -> None:
    assert Bench(slow_node_detection="disabled").detector.is_off
    assert not Bench(slow_node_detection="observe").detector.is_off
