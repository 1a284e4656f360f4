"""The configuration changes while a stream reads: modes are turned on and off, nodes come and go.

Rules R8, R4 and M3 of read_path.md.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.events import SendStart
from logdevice.protocol.read_stream.tests.reading import Reading, bridge, reading, rewound
from logdevice.types import Epoch, EpochMetadata, Replication, Scope

SCD, LOCAL_SCD, ALL_SEND_ALL = ReadMode.SCD, ReadMode.LOCAL_SCD, ReadMode.ALL_SEND_ALL


def fallen_back(**arguments: object) -> Reading:
    """A reader that fell back from SCD to all-send-all."""
    bench = reading(**arguments)
    bench.gap(bench.nodes, 1, 2)
    rewound(bench)
    assert bench.mode is ALL_SEND_ALL
    return bench


# ---- the configuration flips --------------------------------------------------------------------


def test_single_copy_delivery_can_be_turned_off() -> None:
    """R8"""
    bench = reading()
    bench.configure(scd=False)
    bench.rewind()
    assert (bench.mode, bench.known_down) == (ALL_SEND_ALL, ())
    assert bench.health.rewind_reasons == {"CONFIG_CHANGED": 1}


def test_turning_it_off_empties_the_list() -> None:
    """R8"""
    bench = reading()
    bench.lost(1)
    rewound(bench)
    bench.configure(scd=False)
    bench.rewind()
    assert bench.known_down == ()


def test_single_copy_delivery_can_be_turned_on() -> None:
    """R8: nodes that are down start on the list."""
    bench = reading(scd=False)
    bench.lost(4)
    bench.configure(scd=True)
    bench.rewind()
    assert (bench.mode, bench.known_down) == (SCD, (4,))


def test_silence_counts_from_the_moment_single_copy_delivery_is_turned_on() -> None:
    """R8, D4"""
    bench = reading(scd=False, scd_timeout_ms=10_000)
    bench.configure(scd=True)
    rewound(bench)
    bench.gap([2, 3, 4, 5], 1, 50)
    bench.wait(10_001)
    assert bench.known_down == (1,)


def test_turning_it_off_in_all_send_all_changes_nothing() -> None:
    """R8: single-copy delivery just does not come back."""
    bench = fallen_back(window_lsns=4)
    bench.configure(scd=False)
    bench.records(1, 1, 2, 3, 4)
    bench.wait(60_000)
    assert (bench.mode, bench.version) == (ALL_SEND_ALL, 2)


def test_an_unchanged_configuration_causes_no_rewind() -> None:
    """R8"""
    bench = reading()
    bench.configure(scd=True)
    bench.wait(1_000)
    assert bench.version == 1


def test_nodes_near_the_reader_can_be_preferred_later() -> None:
    """R8"""
    bench = reading()
    bench.configure(local_scd=True)
    bench.rewind()
    assert bench.mode is LOCAL_SCD


def test_single_copy_delivery_turned_off_on_its_way_back_stays_off() -> None:
    """R8: the pending rewind was asked for under the old configuration."""
    bench = fallen_back(window_lsns=4)
    bench.records(1, 1, 2, 3, 4)
    bench.configure(scd=False)
    bench.wait(100)
    assert bench.mode is ALL_SEND_ALL


def test_single_copy_delivery_turned_off_and_on_again_before_the_rewind_stays_on() -> None:
    """R8"""
    bench = reading()
    bench.configure(scd=False)
    bench.configure(scd=True)
    bench.wait(100)
    assert bench.mode is SCD


def test_a_mode_that_is_preferred_while_metadata_is_awaited_counts_from_the_first_start() -> None:
    """R8"""
    bench = Reading(answers_metadata=False)
    bench.configure(scd=False)
    bench.answer_metadata(1)
    bench.wait(100)
    assert bench.mode is ALL_SEND_ALL


def next_epoch(bench: Reading, *, copies: int) -> None:
    """N1 closes epoch 1; epoch 2 is on the same nodes."""
    bench.metadata = EpochMetadata(Epoch(2), bench.metadata.nodeset, Replication.of({Scope.NODE: copies}))
    bench.last_epoch = Epoch(2)
    bench.records(1, bridge(1))


def test_an_epoch_with_another_replication_causes_a_rewind() -> None:
    """R8: nodes must agree on R, or two of them would send a record, or none."""
    bench = reading(copies=3)
    next_epoch(bench, copies=2)
    bench.rewind()
    assert {start.message.replication for start in bench.sent(SendStart)} == {2}
    assert bench.health.rewind_reasons == {"CONFIG_CHANGED": 1}


def test_a_node_that_reconnects_before_the_rewind_gets_the_same_replication_as_the_others() -> None:
    """R8"""
    bench = reading(
        copies=3,
        reconnect_delay_ms_min=1,
        reconnect_delay_ms_max=1,
        rewind_delay_ms_min=50,
        rewind_delay_ms_max=50,
    )
    next_epoch(bench, copies=2)
    bench.lost(5)
    bench.wait(10)
    assert [(start.node, start.message.replication) for start in bench.sent(SendStart)] == [(5, 3)]
    bench.rewind()
    assert {start.message.replication for start in bench.sent(SendStart)} == {2}


def test_an_epoch_with_the_same_replication_causes_no_rewind() -> None:
    """R8"""
    bench = reading(copies=3)
    next_epoch(bench, copies=3)
    bench.wait(1_000)
    assert (bench.text, bench.version) == (["BRIDGE n1-e2n1"], 1)


def test_in_all_send_all_another_replication_causes_no_rewind() -> None:
    """R8: no node leaves a copy to another node."""
    bench = reading(copies=3, scd=False)
    next_epoch(bench, copies=2)
    bench.wait(1_000)
    assert bench.version == 1


# ---- nodes come and go --------------------------------------------------------------------------


def test_a_listed_node_that_leaves_the_configuration_leaves_the_list() -> None:
    """M3, R2"""
    bench = reading()
    bench.lost(5)
    rewound(bench)
    bench.shrink(5)
    assert bench.stops == [5]
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((), SCD)


def test_a_node_that_leaves_causes_no_rewind_if_it_was_not_listed() -> None:
    """M3"""
    bench = reading()
    bench.shrink(5)
    assert bench.stops == [5]
    bench.wait(1_000)
    assert bench.version == 1


def test_when_the_last_node_that_is_not_past_the_head_leaves_all_are_past_it() -> None:
    """R4"""
    bench = reading()
    bench.gap([1, 2, 3, 4], 1, 5)
    bench.shrink(5)
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL
    assert {start.node for start in bench.sent(SendStart)} == {1, 2, 3, 4}


def test_a_new_node_is_started_with_the_list_in_force() -> None:
    """M3"""
    bench = reading()
    bench.shrink(5)
    bench.lost(2)
    rewound(bench)
    bench.expand(5)
    (start,) = bench.sent(SendStart)
    assert (start.node, start.message.known_down, start.message.filter_version) == (5, (2,), 2)


def test_a_new_node_waits_for_a_rewind_that_is_pending() -> None:
    """R2: otherwise it would be started twice."""
    bench = reading()
    bench.shrink(5)
    bench.lost(2)
    bench.expand(5)
    assert bench.sent(SendStart) == []
    bench.rewind()
    assert {start.node for start in bench.sent(SendStart)} == {1, 2, 3, 4, 5}


def test_a_node_that_leaves_before_it_was_started_is_told_nothing() -> None:
    bench = reading()
    bench.shrink(5)
    bench.lost(2)
    bench.expand(5)
    bench.shrink(5)
    assert bench.stops == []
