"""Where logs end, and the metadata that applies to an epoch."""

from __future__ import annotations

import pytest

from logdevice.protocol.sequencer.epoch_state import metadata_of
from logdevice.types import Epoch, EpochMetadata, LogPoint, Lsn, Record, Replication, nodes

THREE_COPIES = Replication.parse("3")


def test_a_tail_is_after_its_record() -> None:
    record = Record(Lsn.of(1, 4), timestamp_ms=5, copyset=(), entry_end=6, byte_end=7)
    assert LogPoint.after(record) == LogPoint(lsn=Lsn.of(1, 5), timestamp_ms=5, entry_end=6, byte_end=7)


def test_a_joined_tail_is_lower_than_neither_of_the_two() -> None:
    """U6."""
    one = LogPoint(lsn=Lsn.of(1, 9), timestamp_ms=5, entry_end=9, byte_end=1)
    other = LogPoint(lsn=Lsn.of(2, 1), timestamp_ms=4, entry_end=10, byte_end=0)
    expected = LogPoint(lsn=Lsn.of(2, 1), timestamp_ms=5, entry_end=10, byte_end=1)
    assert one.joined(other) == other.joined(one) == expected


@pytest.mark.parametrize(("epoch", "first"), [(1, 3), (3, 3), (4, 3), (5, 5), (9, 5)])
def test_metadata_applies_until_the_next_entry(epoch: int, first: int) -> None:
    """V1: the first entry also applies to all epochs before it."""
    history = tuple(EpochMetadata(Epoch(number), nodes([number]), THREE_COPIES) for number in (3, 5))
    assert metadata_of(history, Epoch(epoch)).first_epoch == first
