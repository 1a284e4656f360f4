"""What recovery makes of positions that were filled."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.chain.tests.chaining import record
from logdevice.protocol.chain.walk import hole_at
from logdevice.protocol.recovery.digest import Decisions, Digest
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import LogPoint, Lsn, NodeId, Record, RecordFlags, epoch_start

BRIDGE, FILLED = RecordFlags.BRIDGE, RecordFlags.FILLED


def at(esn: int) -> Lsn:
    return Lsn.of(2, esn)


def decide(*copies: Record) -> Decisions:
    digest = Digest()
    for copy in copies:
        digest.add(NodeId(1), copy)
    return digest.decide(epoch_start(2), LogPoint(), ReceivedTable(), is_authoritative=True)


def bridge_of(decisions: Decisions) -> Lsn:
    (bridge,) = [each.record.lsn for each in decisions.decisions if each.record.flags & BRIDGE]
    return bridge


def test_the_bridge_comes_after_positions_that_were_filled() -> None:
    # P19
    decisions = decide(record(at(1)), hole_at(record(at(2))))
    assert bridge_of(decisions) == at(3)
    assert decisions.decisions[1].record.flags & FILLED


def test_another_recovery_decides_the_same() -> None:
    # P19, V6: although the records that it finds were stored by the first one
    first = decide(record(at(1)), hole_at(record(at(2))))
    again = decide(*(replace(each.record, wave=7) for each in first.decisions))
    assert bridge_of(again) == bridge_of(first)


def test_a_hole_that_recovery_put_does_not_move_the_bridge() -> None:
    # V9
    first = decide(record(at(1)), record(at(3)))
    plugged = next(each.record for each in first.decisions if each.record.lsn == at(2))
    assert not plugged.flags & FILLED
    assert bridge_of(decide(record(at(1)), replace(plugged, wave=7))) == at(2)
