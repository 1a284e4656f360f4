"""The sequencer and its successor: preemption, draining, releases over epochs."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.io import Tell
from logdevice.protocol.messages.write import AppendStatus, Release, StoreStatus
from logdevice.protocol.sequencer.copyset_epoch import CopysetEpoch
from logdevice.protocol.sequencer.copysets import Cause
from logdevice.protocol.sequencer.epoch_state import EpochStoreRead, MetadataLogRead, ReadEpochStore
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    NodeConnected,
    OwnerChanged,
    RecoveryCompleted,
    RecoveryPreempted,
    StartRecovery,
    StopRecovery,
)
from logdevice.protocol.sequencer.tests.sequencing import (
    CONFIG,
    LOG,
    ME,
    METADATA,
    NODESET,
    Sequencing,
    state,
)
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, EpochMetadata, Lsn, NodeId, nodes

PREEMPTED, UNKNOWN = AppendStatus.PREEMPTED, AppendStatus.UNKNOWN
CONFIG_WITH_EXTRA = replace(CONFIG, extras=1)


def test_a_seal_makes_the_sequencer_step_down_and_redirect() -> None:
    """U11: appends that no node stored may be sent elsewhere; recovery decides about the others."""
    sequencing = Sequencing()
    sequencing.activate()
    unknown = sequencing.append()
    refused = sequencing.append()
    sequencing.store(sequencing.stores(), StoreStatus.PREEMPTED)
    assert StopRecovery(LOG) in sequencing.effects
    assert sequencing.status(refused) is PREEMPTED
    assert sequencing.status(unknown) is UNKNOWN
    assert sequencing.answers[refused].node == NodeId(4)
    later = sequencing.append()
    assert (sequencing.status(later), sequencing.answers[later].node) == (
        AppendStatus.REDIRECTED,
        NodeId(4),
    )
    assert sequencing.wait(100_000) == []


def test_a_record_that_was_acknowledged_is_not_answered_twice() -> None:
    """U11: its leader still has no copy when the seal comes."""
    sequencing = Sequencing(config=CONFIG_WITH_EXTRA)
    sequencing.activate()
    request = sequencing.append()
    stores = sequencing.stores()
    sequencing.store(stores[1:])
    assert sequencing.status(request) is AppendStatus.OK
    sequencing.store(stores[:1], StoreStatus.PREEMPTED)
    assert StopRecovery(LOG) in sequencing.effects


def test_a_preempted_node_that_should_own_the_log_takes_it_back_after_a_pause() -> None:
    """U3, U11: the node that preempted it may be dead."""
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.feed(RecoveryPreempted(Epoch(2), Epoch(8), NodeId(4)))
    sequencing.append()
    assert sequencing.wanted(ReadEpochStore) == []
    sequencing.wait(100)
    sequencing.append()
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]


def test_recovery_that_is_preempted_makes_the_sequencer_step_down() -> None:
    """U11: a recovery of another epoch does not."""
    sequencing = Sequencing()
    sequencing.activate()
    assert sequencing.feed(RecoveryPreempted(Epoch(1), Epoch(8), NodeId(4))) == []
    assert sequencing.feed(RecoveryPreempted(Epoch(2), Epoch(8), None)) == [StopRecovery(LOG)]


def test_preemption_during_an_activation_ends_both() -> None:
    """U11: the appends that wait are answered, too."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    waiting = sequencing.append()
    sequencing.take_epoch(state(3, 2))
    sequencing.feed(ActivationAsked())
    sequencing.feed(RecoveryPreempted(Epoch(4), Epoch(8), NodeId(4)))
    assert sequencing.status(waiting) is AppendStatus.REDIRECTED
    assert sequencing.feed(EpochStoreRead(1, state(8))) == []


# Draining.


def reactivate(sequencing: Sequencing) -> None:
    """Goes from epoch 2 to epoch 3 by itself, without preemption."""
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(2, 1))
    sequencing.feed(MetadataLogRead((METADATA,)))


def test_an_epoch_that_its_sequencer_leaves_drains_before_it_is_recovered() -> None:
    """U10: the new epoch takes appends at once, with the counters of the old one."""
    sequencing = Sequencing()
    sequencing.activate()
    old = sequencing.append()
    stores = sequencing.stores()
    reactivate(sequencing)
    assert sequencing.wanted(StartRecovery) == []
    sequencing.append()
    record = sequencing.stores()[0].request.record
    assert (record.lsn, record.entry_end) == (Lsn.of(3, 1), 104)
    sequencing.store(stores)
    assert sequencing.status(old) is AppendStatus.OK
    assert [start.epoch for start in sequencing.wanted(StartRecovery)] == [3]


def test_stores_of_a_draining_epoch_are_marked_as_draining() -> None:
    """U10, E12: a store of the new epoch came first; this does not preempt the draining one."""
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.append()
    stores = sequencing.stores()
    reactivate(sequencing)
    sequencing.store(stores[:1], StoreStatus.PREEMPTED, soft=True)
    assert all(store.request.is_draining for store in sequencing.stores())
    assert len(sequencing.stores()) == 3


def test_an_epoch_that_does_not_drain_in_time_is_left_to_recovery() -> None:
    """U10."""
    sequencing = Sequencing()
    sequencing.activate()
    old = sequencing.append()
    reactivate(sequencing)
    sequencing.wait(1999)
    assert sequencing.status(old) is None
    sequencing.wait(1)
    assert sequencing.status(old) is UNKNOWN
    assert len(sequencing.wanted(StartRecovery)) == 1


def test_the_deadline_of_an_epoch_that_has_drained_does_nothing() -> None:
    """U10."""
    sequencing = Sequencing()
    sequencing.activate()
    reactivate(sequencing)
    assert len(sequencing.wanted(StartRecovery)) == 1
    sequencing.wait(2000)
    assert sequencing.wanted(StartRecovery) == []


def test_only_one_epoch_drains_at_a_time() -> None:
    """U10."""
    sequencing = Sequencing()
    sequencing.activate()
    oldest = sequencing.append()
    reactivate(sequencing)
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(3, 1))
    assert sequencing.status(oldest) is UNKNOWN


def test_an_epoch_that_drains_is_released_until_the_new_one_is() -> None:
    """U13: recovery moves the release into the new epoch."""
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.append()
    stores = sequencing.stores()
    sequencing.append()
    reactivate(sequencing)
    sequencing.store(stores)
    assert set(sequencing.released().values()) == {Lsn.of(2, 2)}
    sequencing.wait(2000)
    sequencing.feed(RecoveryCompleted(Epoch(3)))
    assert set(sequencing.released().values()) == {Lsn.of(3, 1)}


def test_an_epoch_that_was_never_released_is_not_released_while_it_drains() -> None:
    """U13: an earlier epoch is still unclean."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    sequencing.append()
    stores = sequencing.stores()
    reactivate(sequencing)
    sequencing.store(stores)
    assert sequencing.released() == {}


def test_a_seal_while_draining_preempts_both_epochs() -> None:
    """U11."""
    sequencing = Sequencing()
    sequencing.activate()
    old = sequencing.append()
    stores = sequencing.stores()
    reactivate(sequencing)
    new = sequencing.append()
    sequencing.store(stores, StoreStatus.PREEMPTED)
    assert sequencing.status(old) is PREEMPTED
    assert sequencing.status(new) is UNKNOWN


# Releases.


def test_all_nodes_of_all_nodesets_get_a_release() -> None:
    """U14."""
    sequencing = Sequencing()
    older = EpochMetadata(Epoch(1), nodes([6, 7]), METADATA.replication)
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    sequencing.feed(MetadataLogRead((older, METADATA)))
    sequencing.feed(RecoveryCompleted(Epoch(2)))
    assert sequencing.released() == dict.fromkeys((*NODESET, *nodes([6, 7])), Lsn.of(2, 1))


def test_releases_that_follow_each_other_are_put_together() -> None:
    """U14."""
    sequencing = Sequencing(WriteSettings(release_interval_ms=5))
    sequencing.activate()
    sequencing.append_and_store()
    sequencing.append_and_store()
    assert sequencing.released() == {}
    assert sequencing.wait(4) == []
    sequencing.wait(1)
    assert sequencing.released() == dict.fromkeys(NODESET, Lsn.of(2, 3))


def test_the_last_release_is_repeated() -> None:
    """U15."""
    sequencing = Sequencing()
    sequencing.activate()
    assert sequencing.wait(1999) == []
    sequencing.wait(1)
    assert len(sequencing.released()) == 5


def test_a_node_that_connects_gets_the_release_at_once_and_is_forgiven() -> None:
    """U15, K5."""
    sequencing = Sequencing()
    assert sequencing.feed(NodeConnected(NodeId(3))) == []
    sequencing.activate()
    current = sequencing.machine.current
    assert isinstance(current, CopysetEpoch)
    current.health.penalise(NodeId(3), Cause.UNREACHABLE, sequencing.now_ms)
    release = Release(LOG, Lsn.of(2, 1), ME)
    assert sequencing.feed(NodeConnected(NodeId(3))) == [Tell(NodeId(3), release)]
    assert current.health.avoided(sequencing.now_ms) == []
    assert sequencing.feed(NodeConnected(NodeId(7))) == []
