"""A record on its way along a chain."""

from __future__ import annotations

from logdevice.protocol.chain.tests.chaining import CHAIN, LOG, LSN, position, record
from logdevice.protocol.chain.walk import Walk, hole_at, record_at
from logdevice.types import Lsn, NodeId, Record, RecordFlags, nodes


def walk(carried: Record) -> Walk:
    return Walk(LOG, position(), carried)


def test_a_record_goes_from_the_head_to_the_tail() -> None:
    # P1, P3
    record_walk = walk(record())
    assert record_walk.is_at_head
    visited = []
    while not record_walk.is_done:
        visited.append(record_walk.node)
        record_walk.advance()
    assert visited == list(CHAIN)
    assert not record_walk.is_at_head


def test_the_copyset_is_the_end_of_the_chain_with_the_tail_first() -> None:
    # P2
    store = walk(record(copyset=())).store()
    assert store.record.copyset == nodes([3, 2])
    assert store.lsn == LSN
    assert (store.good_end, store.sequencer, store.write_once) == (Lsn.of(2, 3), NodeId(9), True)


def test_a_hole_has_the_time_and_counters_of_the_expected_record() -> None:
    # P10
    hole = hole_at(record())
    assert hole.flags == RecordFlags.HOLE | RecordFlags.FILLED
    assert (hole.timestamp_ms, hole.entry_end, hole.byte_end) == (3, 9, 99)
    assert (hole.body, hole.entries) == (b"", 0)


def test_a_record_has_the_time_and_counters_of_its_position() -> None:
    # P8
    written = record_at(position(), b"body", 2)
    assert (written.lsn, written.timestamp_ms, written.entry_end, written.byte_end) == (LSN, 3, 9, 99)
    assert (written.body, written.entries) == (b"body", 2)
