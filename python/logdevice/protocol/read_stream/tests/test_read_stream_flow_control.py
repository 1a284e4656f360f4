"""How much nodes may send: the window in LSNs that slides as the application consumes, and its bytes."""

from __future__ import annotations

from logdevice.protocol.messages.read import Window
from logdevice.protocol.read_stream.events import Consumed
from logdevice.protocol.read_stream.tests.reading import Reading, lsn, record

RECORD_BYTES = record(1).size


def reading(**arguments: object) -> Reading:
    """A reader in all-send-all. All nodes have started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


# ---- the window ---------------------------------------------------------------------------------


def test_nothing_after_the_end_is_asked_for() -> None:
    """W1."""
    assert Reading(start=1, end=4).start_of(1).window_end == lsn(4)


def test_window_goes_to_all_nodes_when_enough_was_consumed_and_not_before() -> None:
    """W2, W3: 0.7 of a window of 10, so the seventh record triggers it."""
    bench = reading(window_lsns=10)
    bench.records(1, *range(1, 7))
    assert bench.windows == {}
    bench.records(1, 7)
    assert bench.windows == dict.fromkeys(bench.nodes, lsn(18))


def test_the_window_slides_again_and_again() -> None:
    """W2."""
    bench = reading(window_lsns=3)
    ends = []
    for position in range(1, 7):
        bench.records(1, position)
        ends += [window.esn for node, window in bench.windows.items() if node == 1]
    assert ends == [6, 8, 10]


def test_a_range_that_fits_one_window_never_slides() -> None:
    bench = reading(end=4, window_lsns=4)
    bench.records(1, 1, 2)
    assert bench.windows == {}
    bench.records(1, 3)
    assert bench.windows == {}
    assert bench.text == ["n1", "n2", "n3"]


def test_what_was_delivered_counts_only_once_it_is_consumed() -> None:
    """W2: a slow application holds up the nodes, not the other way round."""
    bench = reading(window_lsns=3, consumes=False)
    bench.records(1, 1, 2, 3)
    assert bench.windows == {}
    bench.feed(Consumed(lsn(3)))
    assert bench.windows == dict.fromkeys(bench.nodes, lsn(6))


def test_a_node_that_starts_late_hears_of_the_window_that_moved_meanwhile() -> None:
    """W3."""
    bench = Reading(scd=False, window_lsns=3)
    bench.started(1, 2, 3, 4, released=1_000)
    bench.records(1, 1, 2)
    assert set(bench.windows) == {1, 2, 3, 4}
    bench.effects.clear()
    bench.started(5)
    assert bench.windows == {5: lsn(6)}


def test_no_window_is_sent_while_a_rewind_is_due() -> None:
    """W3: the START of the rewind will contain it."""
    bench = Reading(window_lsns=3)
    bench.started(released=1_000)
    bench.lost(5)
    bench.records(1, 1, 2)
    assert bench.windows == {}
    bench.rewind()
    assert bench.start_of(1).window_end == lsn(6)


def test_a_window_of_one_lsn_reads_one_record_at_a_time() -> None:
    bench = reading(window_lsns=1, end=4)
    for position in (1, 2, 3):
        bench.records(1, position)
    assert bench.text == ["n1", "n2", "n3"]


# ---- bytes --------------------------------------------------------------------------------------


def test_the_byte_window_is_split_over_the_read_set() -> None:
    """W5."""
    assert {start.message.window_bytes for start in Reading(nodes=5, window_bytes=1_000).starts} == {200}


def test_consumed_bytes_are_granted_again() -> None:
    """W3, W5: N1 sent 130 of its 200 bytes, and they are consumed."""
    bench = reading(nodes=5, window_bytes=1_000, window_slide_share=0.6)
    bench.records(1, 1)
    assert bench.told(Window) == []
    bench.records(1, 2)
    windows = bench.told(Window)
    assert [(window.node, window.message.window_bytes) for window in windows] == [(1, 200 + 2 * RECORD_BYTES)]


def test_bytes_that_are_not_consumed_are_not_granted_again() -> None:
    """W5."""
    bench = reading(nodes=5, window_bytes=1_000, window_slide_share=0.6, consumes=False)
    bench.records(1, 1, 2, 3)
    assert bench.told(Window) == []


def test_the_bytes_of_second_copies_are_granted_again() -> None:
    """W4: a node that sent only records that others had sent before must not run out of credit."""
    bench = reading(nodes=5, window_bytes=1_000, window_slide_share=0.6, consumes=False)
    bench.records(1, 1, 2)
    bench.records(2, 1, 2)
    assert [(window.node, window.message.window_bytes) for window in bench.told(Window)] == [
        (2, 200 + 2 * RECORD_BYTES)
    ]


def test_bytes_delivered_before_a_rewind_and_not_consumed_are_not_granted_twice() -> None:
    """W5."""
    bench = Reading(nodes=5, window_bytes=1_000, consumes=False)
    bench.started(released=100)
    bench.records(1, 1, 2)
    bench.lost(5)
    bench.rewind()
    assert bench.start_of(1).window_bytes == 200 - 2 * RECORD_BYTES // 5
