"""The sequencer between activation and its first release: metadata log and recovery."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.epoch_state import (
    MetadataLogRead,
    MetadataLogWritten,
    ReadMetadataLog,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer_events import (
    ActivationAsked,
    Event,
    RecoveryCompleted,
    StartRecovery,
)
from logdevice.protocol.tests.sequencing import LOG, METADATA, NODESET, Sequencing, state
from logdevice.protocol.timers import Woken
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, Lsn, nodes

OK, NO_SEQUENCER = AppendStatus.OK, AppendStatus.NO_SEQUENCER
REDIRECTED, OVERLOADED = AppendStatus.REDIRECTED, AppendStatus.OVERLOADED


# The metadata log, recovery.


def test_recovery_starts_when_the_history_is_known() -> None:
    """U13."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(5, 3))
    assert sequencing.wanted(ReadMetadataLog) == [ReadMetadataLog(LOG)]
    sequencing.feed(MetadataLogRead((METADATA,)))
    start = StartRecovery(log=LOG, epoch=Epoch(6), last_clean=Epoch(3), history=(METADATA,))
    assert sequencing.wanted(StartRecovery) == [start]
    assert sequencing.feed(MetadataLogRead((METADATA,))) == []


def test_a_metadata_log_that_fails_or_is_silent_is_asked_again() -> None:
    """U12."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    assert sequencing.wait(5000) == [ReadMetadataLog(LOG)]
    assert sequencing.feed(MetadataLogRead(None)) == []
    assert sequencing.wait(10_000) == [ReadMetadataLog(LOG)]
    sequencing.feed(MetadataLogRead(()))
    assert sequencing.wanted(WriteMetadataLog) == [WriteMetadataLog(LOG, METADATA)]
    assert sequencing.feed(MetadataLogWritten(METADATA, False)) == []
    assert sequencing.wait(10_000) == [WriteMetadataLog(LOG, METADATA)]


def test_nothing_is_released_before_the_metadata_is_written_and_recovery_is_complete() -> None:
    """U12, U13: in either order; then all nodes hear of it."""
    for metadata_first in (True, False):
        sequencing = Sequencing()
        sequencing.feed(ActivationAsked())
        sequencing.take_epoch(state(1))
        sequencing.feed(MetadataLogRead(()))
        sequencing.append_and_store()
        events: list[Event] = [MetadataLogWritten(METADATA, True), RecoveryCompleted(Epoch(2))]
        first, second = events if metadata_first else reversed(events)
        sequencing.feed(first)
        assert sequencing.released() == {}
        sequencing.feed(second)
        assert sequencing.released() == dict.fromkeys(NODESET, Lsn.of(2, 2))


def test_events_of_the_metadata_log_and_of_recovery_without_an_epoch_are_dropped() -> None:
    sequencing = Sequencing()
    assert sequencing.feed(MetadataLogRead((METADATA,))) == []
    assert sequencing.feed(RecoveryCompleted(Epoch(2))) == []
    assert sequencing.feed(Woken()) == []


def test_metadata_of_another_epoch_that_was_written_is_not_taken_for_this_one() -> None:
    """U12."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    sequencing.feed(MetadataLogRead(()))
    sequencing.feed(MetadataLogWritten(replace(METADATA, nodeset=nodes([5, 6, 7])), True))
    assert sequencing.wanted(WriteMetadataLog) == [WriteMetadataLog(LOG, METADATA)]
