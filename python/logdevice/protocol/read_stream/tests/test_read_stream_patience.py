"""How long a reader waits before it reports a loss: grace, the second look, and never in SCD."""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.tests.reading import Reading, lsn
from logdevice.types import AuthoritativeStatus

ALL = (1, 2, 3, 4, 5)


def reading(**arguments: object) -> Reading:
    """A reader in all-send-all. All nodes have started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


def twice(bench: Reading, say: Callable[[], None]) -> None:
    """G7: nodes must repeat after a rewind what proves a gap."""
    say()
    bench.rewind()
    bench.started(released=1_000)
    say()


# ---- grace --------------------------------------------------------------------------------------


def test_a_record_that_comes_within_the_grace_period_is_delivered() -> None:
    """G4."""
    bench = reading()
    bench.gap((1, 2, 3, 4), 1, 2)
    bench.wait(99)
    bench.records(5, 1)
    bench.wait(100)
    assert bench.text == ["n1"]
    assert bench.version == 1


def test_a_node_that_is_always_silent_is_waited_for_a_few_times_only() -> None:
    """G4: each gap takes two looks, each look a grace period; after three of these there is no more grace."""
    bench = reading(gap_grace_limit=2)
    waits = []
    for start in (1, 3, 5):
        before_ms = bench.now_ms
        twice(bench, lambda start=start: bench.gap((1, 2, 3, 4), start, start + 2))  # type: ignore[misc]
        bench.wait_until(lambda start=start: bench.health.head == lsn(start + 2))  # type: ignore[misc]
        waits.append((bench.now_ms - before_ms) // 100)
    assert waits == [2, 1, 0]


def test_a_node_that_answers_again_is_waited_for_again() -> None:
    """G4."""
    bench = reading(gap_grace_limit=0)
    bench.gap((1, 2, 3, 4), 1, 3)
    bench.wait(101)
    bench.started(released=1_000)
    bench.gap((1, 2, 3, 4), 1, 3)
    assert bench.text == ["DATALOSS n1-n3"]
    bench.gap(5, 1, 3)
    bench.gap((1, 2, 3, 4), 3, 5)
    assert bench.version == 2
    bench.wait(99)
    assert bench.version == 2
    bench.rewind()
    assert bench.version == 3


def test_without_a_limit_a_silent_node_is_waited_for_every_time() -> None:
    """G4."""
    bench = reading(gap_grace_limit=-1)
    for start in (1, 3, 5, 7, 9):
        before_ms = bench.now_ms
        bench.gap((1, 2, 3, 4), start, start + 2)
        bench.rewind()
        assert bench.now_ms - before_ms > 100
        bench.started(1, 2, 3, 4, released=1_000)
        bench.gap((1, 2, 3, 4), start, start + 2)
        assert len(bench.text) == start // 2
        bench.wait(100)
        assert len(bench.text) == start // 2 + 1


def test_when_all_nodes_have_answered_there_is_no_wait() -> None:
    """G4."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    bench.wait(1)
    assert bench.version == 2


def test_the_stream_may_end_when_the_grace_period_does() -> None:
    bench = reading(end=3)
    twice(bench, lambda: bench.gap((1, 2, 3), 1, 3))
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n3"]
    assert bench.has_ended


def test_the_grace_of_one_head_is_not_spent_on_the_next() -> None:
    """G4: the grace period of 1 has almost run out when 1 comes after all; 2 gets its own."""
    bench = reading()
    bench.gap((1, 2, 3, 4), 1, 3)
    bench.wait(99)
    bench.records(5, 1)
    bench.wait(99)
    assert bench.version == 1
    bench.wait(2)
    assert bench.version == 2


def test_a_rewind_begins_the_grace_period_anew() -> None:
    """G4: right after a rewind, no node has had time to answer."""
    bench = reading(nodes=6)
    bench.lost(6)
    bench.gap((1, 2, 3, 4), 1, 3)
    bench.wait(50)
    bench.status(1, N6=AuthoritativeStatus.AUTHORITATIVE_EMPTY)
    bench.rewind()
    bench.started(1, 2, 3, 4, 5, released=1_000)
    bench.gap((1, 2, 3, 4), 1, 3)
    assert bench.wait_until(lambda: bench.version == 3) > 100


# ---- the second look ----------------------------------------------------------------------------


def test_a_loss_is_looked_at_twice() -> None:
    """G7."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    assert bench.text == []
    bench.rewind()
    assert bench.mode is ReadMode.ALL_SEND_ALL
    assert bench.start_of(1).start == lsn(1)
    assert bench.health.rewind_reasons == {"CONFIRM_LOSS": 1}


def test_the_second_look_may_find_the_record() -> None:
    """G7: it was copied from a node that had not been asked to one that had."""
    bench = reading()
    bench.gap(ALL, 1, 2)
    bench.rewind()
    bench.started(released=1_000)
    bench.records(2, 1)
    assert bench.text == ["n1"]


def test_answers_from_before_the_second_look_do_not_count_in_it() -> None:
    """G7: all nodes must answer again."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    bench.rewind()
    bench.wait(1_000)
    assert bench.text == []


def test_one_second_look_serves_all_losses_that_were_known_by_then() -> None:
    """G7: a log with many holes must not be read again for each of them."""
    bench = reading()

    def say() -> None:
        for node in ALL:
            bench.records(node, 2, 4, 6)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n2", "n2", "DATALOSS n3-n4", "n4", "DATALOSS n5-n6", "n6"]
    assert bench.health.rewinds == 1


def test_a_loss_beyond_what_was_known_gets_a_second_look_of_its_own() -> None:
    """G7."""
    bench = reading()
    twice(bench, lambda: bench.gap(ALL, 1, 3))
    bench.gap(ALL, 3, 5)
    assert bench.text == ["DATALOSS n1-n3"]
    bench.rewind()
    assert bench.start_of(1).start == lsn(3)


def test_a_loss_that_only_one_node_had_answered_for_gets_its_second_look() -> None:
    """G7: before the rewind nothing was proven about 3."""
    bench = reading()

    def say() -> None:
        bench.gap((2, 3, 4, 5), 1, 3)
        bench.gap(1, 1, 100)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n3"]
    bench.gap((2, 3, 4, 5), 3, 100)
    assert bench.text == ["DATALOSS n1-n3"]
    bench.rewind()
    bench.started(released=1_000)
    bench.gap(ALL, 3, 100)
    assert bench.text == ["DATALOSS n1-n3", "DATALOSS n3-n100"]


# ---- only silence in all-send-all counts --------------------------------------------------------


def test_single_copy_delivery_proves_nothing() -> None:
    """G1: in SCD the node that should send a record may be down, so the reader goes to all-send-all."""
    bench = Reading()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    assert bench.text == []
    bench.rewind()
    assert bench.mode is ReadMode.ALL_SEND_ALL
    bench.started(released=10)
    bench.records(3, 1, 2, 3, 4)
    assert bench.text == ["n1", "n2", "n3", "n4"]


def test_a_loss_found_in_single_copy_delivery_is_reported_from_all_send_all() -> None:
    """G1, G7: one rewind to ask all nodes, and one more to be sure."""
    bench = Reading()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    bench.rewind()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    bench.rewind()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    assert bench.text == ["DATALOSS n1-n5"]


def test_no_gap_is_delivered_while_a_rewind_is_due() -> None:
    """G1."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    bench.gap(ALL, 3, 9)
    assert bench.text == []
    assert bench.health.rewinds == 0
