"""A record on its way along a chain."""

from __future__ import annotations

from logdevice.protocol.chain.messages import ChainStatus
from logdevice.protocol.chain.walk import Step, Walk, hole_at, record_at
from logdevice.protocol.tests.chaining import CHAIN, HOLE, LOG, LSN, issued, record
from logdevice.types import Lsn, NodeId, Record, RecordFlags, nodes


def walk(carried: Record, *, index: int = 0) -> Walk:
    return Walk(LOG, carried, CHAIN, 2, Lsn.of(2, 3), NodeId(9), index=index)


def test_a_record_goes_from_the_head_to_the_tail() -> None:
    # P1, P3
    record_walk = walk(record())
    assert record_walk.is_at_head
    visited = []
    for step in (Step.ON, Step.ON, Step.DONE):
        visited.append(record_walk.node)
        assert record_walk.answered(ChainStatus.DATA) is step
    assert visited == list(CHAIN)
    assert record_walk.is_done


def test_the_copyset_is_the_end_of_the_chain_with_the_tail_first() -> None:
    # P2
    store = walk(record(copyset=())).store()
    assert store.record.copyset == nodes([3, 2])
    assert store.lsn == LSN
    assert (store.good_end, store.sequencer) == (Lsn.of(2, 3), NodeId(9))


def test_a_node_that_refuses_is_not_passed_over() -> None:
    # P1
    record_walk = walk(record(), index=1)
    assert record_walk.answered(ChainStatus.NO_SPACE) is Step.REFUSED
    assert record_walk.answered(ChainStatus.PREEMPTED) is Step.SEALED
    assert record_walk.node == NodeId(2)


def test_a_hole_does_not_replace_a_record_nor_a_record_a_hole() -> None:
    # P5
    assert walk(record()).answered(ChainStatus.HOLE) is Step.TAKEN
    hole_walk = walk(record(flags=HOLE))
    assert hole_walk.answered(ChainStatus.DATA) is Step.TAKEN
    assert hole_walk.answered(ChainStatus.HOLE) is Step.ON


def test_a_hole_has_the_times_and_counters_of_what_was_expected() -> None:
    # P10
    hole = hole_at(record())
    assert hole.flags == RecordFlags.HOLE | RecordFlags.FILLED
    assert (hole.timestamp_ms, hole.entry_end, hole.byte_end) == (3, 9, 99)
    assert (hole.body, hole.entries) == (b"", 0)


def test_what_is_written_at_a_position_is_what_the_sequencer_said() -> None:
    # P8
    position = issued().position
    assert position is not None
    written = record_at(position, b"body", 2)
    assert (written.lsn, written.timestamp_ms, written.entry_end, written.byte_end) == (LSN, 3, 9, 99)
    assert (written.body, written.entries) == (b"body", 2)
