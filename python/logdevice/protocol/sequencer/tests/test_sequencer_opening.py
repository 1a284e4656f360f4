"""The sequencer between activation and its first release: metadata log and recovery."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.write import AppendStatus
from logdevice.protocol.sequencer.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    Event,
    RecoveryCompleted,
    SequencerConfigChanged,
    StartRecovery,
)
from logdevice.protocol.sequencer.tests.sequencing import CONFIG, LOG, METADATA, NODESET, Sequencing, state
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import Epoch, EpochMetadata, Lsn, nodes

OK, NO_SEQUENCER = AppendStatus.OK, AppendStatus.NO_SEQUENCER
REDIRECTED, OVERLOADED = AppendStatus.REDIRECTED, AppendStatus.OVERLOADED


# The metadata log, recovery.


def test_recovery_starts_when_the_history_is_known() -> None:
    """U13."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(5, 3))
    assert sequencing.wanted(ReadMetadataLog) == [ReadMetadataLog(LOG, epoch=Epoch(6))]
    sequencing.feed(MetadataLogRead((METADATA,)))
    start = StartRecovery(
        log=LOG, epoch=Epoch(6), last_clean=Epoch(3), history=(METADATA,), tail_end=Lsn.of(5, 9)
    )
    assert sequencing.wanted(StartRecovery) == [start]
    assert sequencing.feed(MetadataLogRead((METADATA,))) == []


def test_an_answer_of_the_metadata_log_to_an_earlier_epoch_is_ignored() -> None:
    """U20: seed 179 of a chain log: recovery looked for acknowledged records on nodes that never had them."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(5, 3))
    assert sequencing.feed(MetadataLogRead((METADATA,), epoch=Epoch(5))) == []
    sequencing.feed(MetadataLogRead((METADATA,), epoch=Epoch(6)))
    assert len(sequencing.wanted(StartRecovery)) == 1


def test_a_metadata_log_that_fails_or_is_silent_is_asked_again() -> None:
    """U12."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    assert sequencing.wait(5000) == [ReadMetadataLog(LOG, epoch=Epoch(2))]
    assert sequencing.feed(MetadataLogRead(None)) == []
    assert sequencing.wait(10_000) == [ReadMetadataLog(LOG, epoch=Epoch(2))]
    sequencing.feed(MetadataLogRead(()))
    assert sequencing.wanted(WriteMetadataLog) == [WriteMetadataLog(LOG, METADATA)]
    assert sequencing.feed(MetadataLogWritten(METADATA, False)) == []
    assert sequencing.wait(10_000) == [WriteMetadataLog(LOG, METADATA)]


def test_nothing_is_released_before_the_metadata_is_written_and_recovery_is_complete() -> None:
    """U12, U13: in either order; then all nodes get the release."""
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


def test_writing_the_metadata_of_another_epoch_does_not_count_for_this_one() -> None:
    """U12."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    sequencing.feed(MetadataLogRead(()))
    sequencing.feed(MetadataLogWritten(replace(METADATA, nodeset=nodes([5, 6, 7])), True))
    assert sequencing.wanted(WriteMetadataLog) == [WriteMetadataLog(LOG, METADATA)]


# A nodeset that is replaced.


def moving(epoch: int) -> Sequencing:
    """A sequencer that has read the epoch store and wants another nodeset than the one there."""
    sequencing = Sequencing(config=replace(CONFIG, nodeset=nodes([5, 6, 7])))
    sequencing.feed(ActivationAsked())
    sequencing.feed(EpochStoreRead(3, state(epoch)))
    return sequencing


def test_a_nodeset_is_in_the_metadata_log_before_it_is_replaced() -> None:
    """U17: the epoch store forgets it, and recovery must find the nodes that stored the epoch."""
    sequencing = moving(1)
    assert sequencing.wanted(WriteMetadataLog) == [WriteMetadataLog(LOG, METADATA)]
    assert sequencing.wanted(WriteEpochStore) == []
    sequencing.feed(MetadataLogWritten(METADATA, True))
    assert [write.state.metadata.nodeset for write in sequencing.wanted(WriteEpochStore)] == [(5, 6, 7)]


def test_a_nodeset_that_could_not_be_recorded_is_not_replaced() -> None:
    """U17, U3."""
    sequencing = moving(1)
    sequencing.feed(MetadataLogRead((METADATA,)))
    assert sequencing.wanted(WriteEpochStore) == []
    sequencing.feed(MetadataLogWritten(replace(METADATA, nodeset=nodes([5, 6, 7])), True))
    assert sequencing.wanted(WriteEpochStore) == []
    sequencing.feed(MetadataLogWritten(METADATA, False))
    assert sequencing.wanted(WriteEpochStore) == []
    sequencing.wait(sequencing.settings.activation_timeout_ms)
    sequencing.feed(MetadataLogWritten(METADATA, True))
    assert sequencing.wanted(WriteEpochStore) == []


def test_a_nodeset_that_changes_while_an_epoch_is_taken_gets_the_one_after_it() -> None:
    """U5: the change is not reported a second time."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    sequencing.feed(SequencerConfigChanged(replace(CONFIG, nodeset=nodes([5, 6, 7]))))
    sequencing.feed(EpochStoreRead(3, state(2)))
    sequencing.feed(MetadataLogWritten(METADATA, True))
    assert sequencing.feed(SequencerConfigChanged(replace(CONFIG, nodeset=nodes([4, 5, 6])))) == []
    sequencing.feed(EpochStoreWritten(True, 4))
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
    read = replace(state(3), metadata=EpochMetadata(Epoch(3), nodes([5, 6, 7]), METADATA.replication))
    sequencing.take_epoch(read)
    sequencing.append()
    assert sorted(store.node for store in sequencing.stores()) == [4, 5, 6]
    assert sequencing.wanted(ReadEpochStore) == []


def test_a_new_nodeset_is_tried_for_again_after_a_pause() -> None:
    """U3, U5: recovery writes to the epoch store, too, so the compare-and-set may fail."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    sequencing.feed(SequencerConfigChanged(replace(CONFIG, nodeset=nodes([5, 6, 7]))))
    sequencing.feed(EpochStoreRead(3, state(2)))
    sequencing.feed(MetadataLogWritten(METADATA, True))
    sequencing.feed(EpochStoreWritten(False))
    assert WakeAt(sequencing.now_ms + 100) in sequencing.effects
    sequencing.wait(99)
    assert sequencing.wanted(ReadEpochStore) == []
    sequencing.wait(1)
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
    sequencing.take_epoch(state(2))
    sequencing.append()
    assert sorted(store.node for store in sequencing.stores()) == [5, 6, 7]


def test_the_nodeset_of_a_log_without_epochs_may_be_replaced_at_once() -> None:
    """U17: no node has stored anything."""
    sequencing = moving(0)
    assert sequencing.wanted(WriteMetadataLog) == []
    assert [write.state.epoch for write in sequencing.wanted(WriteEpochStore)] == [1]


def test_an_early_wake_up_does_not_ask_for_another() -> None:
    # Otherwise a shell that wakes the machine too often would do so more and more often.
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.append()
    assert sequencing.wanted(WakeAt) != []
    sequencing.feed(Woken())
    assert sequencing.wanted(WakeAt) == []
