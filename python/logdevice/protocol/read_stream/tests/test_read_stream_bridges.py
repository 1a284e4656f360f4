"""From one epoch to the next: bridge records, lost bridges, and epochs without a bridge."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.read import GapReason, ReadMode
from logdevice.protocol.read_stream.tests.reading import Reading, bridge
from logdevice.types import ESN_MAX, Epoch, Lsn

ALL = (1, 2, 3, 4, 5)


def two(esn: int) -> Lsn:
    """An LSN of epoch 2."""
    return Lsn.of(2, esn)


def reading(*, scd: bool = False, last_epoch: int = 9, **arguments: object) -> Reading:
    """A reader that knows the nodes of all epochs up to `last_epoch`, with a lot released."""
    bench = Reading(scd=scd, answers_metadata=False, **arguments)  # type: ignore[arg-type]
    bench.answer_metadata(1, last_epoch=last_epoch)
    bench.started(released=Lsn.of(9, 1))
    return bench


def twice(bench: Reading, *nodes: int, start: int, end: int) -> None:
    """G7: nodes must repeat after a rewind what proves a gap."""
    bench.gap(nodes, start, end)
    bench.rewind()
    bench.started(released=Lsn.of(9, 1))
    bench.gap(nodes, start, end)


# ---- a bridge record ----------------------------------------------------------------------------


def test_a_bridge_covers_the_rest_of_its_epoch_and_the_unused_start_of_the_next() -> None:
    """B1."""
    bench = reading()
    bench.records(1, 1, bridge(2))
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]


def test_a_bridge_is_enough_from_one_node_and_keeps_single_copy_delivery() -> None:
    """B1: every node that has it sends it."""
    bench = reading(scd=True)
    bench.records(1, 1)
    bench.records(3, bridge(2))
    bench.records(2, two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1", "e2n1"]
    assert bench.mode is ReadMode.SCD
    assert bench.health.rewinds == 0


def test_a_bridge_may_stand_at_the_first_and_at_the_last_number_of_an_epoch() -> None:
    """B1."""
    bench = reading()
    bench.records(1, bridge(1))
    assert bench.text == ["BRIDGE n1-e2n1"]
    bench = reading(start=ESN_MAX)
    bench.records(1, bridge(ESN_MAX))
    assert bench.text == [f"BRIDGE n{ESN_MAX}-e2n1"]


def test_a_bridge_ends_with_the_stream() -> None:
    """B1."""
    bench = reading(end=10)
    bench.records(1, 1, bridge(2))
    assert bench.text == ["n1", "BRIDGE n2-n10"]
    assert bench.has_ended


def test_what_was_buffered_after_a_bridge_is_dropped() -> None:
    """B1: an aborted attempt at recovery may have left something there."""
    bench = reading()
    bench.records(1, 3)
    bench.records(2, 1, bridge(2))
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]


def test_empty_epochs_are_passed_from_bridge_to_bridge() -> None:
    bench = reading()
    bench.records(1, bridge(1))
    bench.records(1, bridge(two(1)))
    bench.records(1, Lsn.of(3, 1))
    assert bench.text == ["BRIDGE n1-e2n1", "BRIDGE e2n1-e3n1", "e3n1"]


def test_a_bridge_waits_for_the_lsns_before_it() -> None:
    bench = reading()
    bench.records(1, bridge(3))
    bench.records(2, 1)
    assert bench.text == ["n1"]
    bench.records(2, 2)
    assert bench.text == ["n1", "n2", "BRIDGE n3-e2n1"]


def test_a_loss_before_a_bridge_is_a_loss() -> None:
    bench = reading()
    for _ in range(2):
        for node in ALL:
            bench.records(node, bridge(3))
        if not bench.text:
            bench.rewind()
            bench.started(released=Lsn.of(9, 1))
    assert bench.text == ["DATALOSS n1-n3", "BRIDGE n3-e2n1"]


# ---- a bridge that lies below the start ---------------------------------------------------------


def test_a_reader_that_starts_after_the_bridge_is_told_so_by_one_node() -> None:
    bench = reading(scd=True, start=40)
    bench.gap(2, 40, two(1), GapReason.BRIDGE)
    bench.records(1, two(1))
    assert bench.text == ["BRIDGE n40-e2n1", "e2n1"]
    assert bench.health.rewinds == 0


def test_nothing_below_the_reported_bridge_is_hidden_by_it() -> None:
    """N2 says that the bridge is below 40; the LSNs between the head and 40 must be explained first."""
    bench = reading(start=38)
    bench.gap(2, 40, two(1), GapReason.BRIDGE)
    assert bench.text == []
    bench.records(1, 38, 39)
    assert bench.text == ["n38", "n39", "BRIDGE n40-e2n1"]


# ---- an epoch that ends without a bridge --------------------------------------------------------


def test_the_rest_of_an_epoch_whose_bridge_no_node_has_is_lost() -> None:
    """G6."""
    bench = reading()
    bench.records(1, 1)
    twice(bench, *ALL, start=2, end=two(5))
    assert bench.text[:2] == ["n1", "DATALOSS n2-e2n1"]


def test_in_a_log_without_bridges_silence_ends_an_epoch() -> None:
    """G6."""
    bench = reading(bridges=False)
    bench.records(1, 1)
    twice(bench, *ALL, start=2, end=two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]


def test_silence_over_several_epochs_is_judged_epoch_by_epoch() -> None:
    """G3: each only as far as the metadata is known."""
    bench = reading(bridges=False, last_epoch=3)
    twice(bench, *ALL, start=1, end=Lsn.of(5, 1))
    assert bench.text == ["BRIDGE n1-e2n1", "BRIDGE e2n1-e3n1", "BRIDGE e3n1-e4n1"]


def test_silence_of_one_nodeset_says_nothing_about_the_next_epoch() -> None:
    """G3, M1: epoch 2 is on N4 and N5, and there is a record."""
    bench = reading(bridges=False, last_epoch=1)
    twice(bench, *ALL, start=1, end=Lsn.of(3, 1))
    assert bench.text == ["BRIDGE n1-e2n1"]
    newer = replace(bench.metadata, first_epoch=Epoch(2), nodeset=bench.metadata.nodeset[3:])
    bench.answer_metadata(2, metadata=newer, last_epoch=2)
    assert bench.stops == [1, 2, 3]


def test_an_epoch_without_a_bridge_leaves_single_copy_delivery_for_a_while() -> None:
    """G1: silence about the rest of the epoch proves something only in all-send-all."""
    bench = reading(scd=True, bridges=False)
    bench.records(1, 1)
    bench.gap(ALL, 2, two(1))
    bench.rewind()
    assert bench.mode is ReadMode.ALL_SEND_ALL
    bench.started(released=Lsn.of(9, 1))
    twice(bench, *ALL, start=2, end=two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]


def test_nodes_that_hold_records_of_different_epochs_are_put_in_order() -> None:
    bench = reading(window_lsns=10)
    bench.records(1, 1)
    bench.records(2, bridge(2))
    bench.records(3, two(2))
    bench.records(4, two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1", "e2n1", "e2n2"]
