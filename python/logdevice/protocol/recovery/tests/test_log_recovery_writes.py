"""Recovery: writing decisions, noting that epochs are clean, and what may go wrong."""

from __future__ import annotations

from logdevice.protocol.io import Ask
from logdevice.protocol.messages.write import (
    Clean,
    DigestRequest,
    Seal,
    SealStatus,
    Store,
    StoreStatus,
)
from logdevice.protocol.recovery.context import StatusesChanged
from logdevice.protocol.recovery.stages import Cleaning, Mutating, Stage
from logdevice.protocol.recovery.tests.recovering import ALL, LOG, METADATA, Recovering, copy, tail
from logdevice.protocol.sequencer.epoch_state import EpochStoreRead, EpochStoreWritten, ReadEpochStore
from logdevice.protocol.sequencer.events import RecoveryCompleted, RecoveryPreempted, TailFound
from logdevice.protocol.timers import Woken
from logdevice.settings import RecoverySettings
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    LogPoint,
    Lsn,
    NodeId,
    RecordFlags,
    nodes,
)

E2N1 = Lsn.of(2, 1)
LOST = AuthoritativeStatus.UNDERREPLICATION
BRIDGE = int(RecordFlags.BRIDGE)
HOLE = int(RecordFlags.HOLE)


def stage(recovering: Recovering) -> type[Stage] | None:
    epoch = recovering.machine._recovering
    return None if epoch is None else type(epoch.stage)


# Mutation and clean.


def test_every_decided_lsn_is_written_to_its_nodes() -> None:
    """V13: only then do the nodes that took part note that the epoch is clean."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest([0], copy(2, 2))
    recovering.digest([1, 2, 3, 4])
    by_lsn: dict[Lsn, list[NodeId]] = {}
    for effect in recovering.all:
        if isinstance(effect, Ask) and isinstance(effect.request, Store):
            by_lsn.setdefault(effect.request.record.lsn, []).append(effect.node)
    assert {lsn.esn: len(members) for lsn, members in by_lsn.items()} == {1: 3, 2: 3, 3: 3}
    for lsn in list(by_lsn)[:2]:
        recovering.store(lsn, by_lsn[lsn])
        assert recovering.sent(Clean) == {}
    recovering.store(Lsn.of(2, 3), by_lsn[Lsn.of(2, 3)])
    clean = Clean(
        log=LOG,
        epoch=Epoch(2),
        seal_epoch=Epoch(2),
        good_end=E2N1,
        end=Lsn.of(2, 4),
        attempt=1,
    )
    assert recovering.sent(Clean) == dict.fromkeys(nodes(ALL), clean)


def test_the_number_of_lsns_written_at_a_time_is_limited() -> None:
    """V13."""
    recovering = Recovering(settings=RecoverySettings(mutations_max=2))
    recovering.seal(ALL)
    recovering.digest(ALL, *(copy(2, esn) for esn in range(1, 6)))
    first = {
        effect.request.record.lsn.esn
        for effect in recovering.all
        if isinstance(effect, Ask) and isinstance(effect.request, Store)
    }
    assert first == {1, 2}
    recovering.store(E2N1, ALL)
    assert {store.record.lsn.esn for store in recovering.sent(Store).values()} == {3}


def test_answers_about_other_lsns_waves_and_attempts_are_dropped() -> None:
    """V15."""
    recovering = Recovering()
    recovering.store(E2N1, [0])
    recovering.seal(ALL)
    recovering.digest(ALL, copy(2, 1))
    recovering.store(Lsn.of(2, 9), [0])
    recovering.store(Lsn.of(1, 9), [0])
    recovering.store(E2N1, ALL, attempt=7)
    recovering.clean(ALL, attempt=7)
    recovering.clean(ALL, epoch=7)
    recovering._seal = Epoch(1)
    recovering.store(E2N1, ALL)
    assert stage(recovering) is Mutating


def test_answers_to_an_earlier_attempt_do_not_count() -> None:
    """V15: there is one LSN to write, the bridge. Another attempt may have stored another one."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL)
    recovering.store(E2N1, ALL, attempt=7)
    assert stage(recovering) is Mutating
    recovering.store(E2N1, ALL)
    assert stage(recovering) is Cleaning
    recovering.clean(ALL, attempt=7)
    assert stage(recovering) is Cleaning
    recovering.clean(ALL)
    assert recovering.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]


def test_nodes_that_do_not_answer_a_store_or_clean_are_asked_again() -> None:
    """V18."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL)
    members = list(recovering.sent(Store))
    recovering.store(E2N1, members[:1])
    recovering.wait(500)
    assert sorted(recovering.sent(Store)) == sorted(members[1:])
    recovering.store(E2N1, members[1:])
    recovering.clean([0, 1, 2])
    recovering.wait(1000)
    assert sorted(recovering.sent(Clean)) == [3, 4]


def test_all_nodes_that_took_part_must_note_that_an_epoch_is_clean() -> None:
    """V14, V17: then the epoch store does, with the tail."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.recover(2, ALL, copy(2, 1))
    assert recovering.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
    write = recovering.note_clean()
    assert write.version == 3
    assert write.state.last_clean == 2
    assert write.state.tail == LogPoint(lsn=Lsn.of(2, 2), timestamp_ms=1, entry_end=10, byte_end=100)
    assert recovering.wanted(RecoveryCompleted) == [RecoveryCompleted(Epoch(3))]
    assert recovering.feed(Woken()) == []


def test_epochs_are_recovered_in_order() -> None:
    """V17: nodes are sealed once; each epoch begins with the counters of the one before it."""
    recovering = Recovering(seal=3)
    recovering.seal(ALL, tail(2, 1, 5))
    recovering.recover(2, ALL, copy(2, 1))
    recovering.note_clean()
    assert {request.epoch for request in recovering.sent(DigestRequest).values()} == {3}
    recovering.digest(ALL, epoch=3)
    bridge = next(iter(recovering.sent(Store).values())).record
    assert (bridge.lsn, bridge.entry_end) == (Lsn.of(3, 1), 10)


def test_a_node_that_was_lost_in_one_epoch_is_missing_in_the_next_until_it_is_sealed() -> None:
    """V15."""
    recovering = Recovering(seal=3)
    recovering.seal(ALL)
    recovering.recover(2)
    recovering.lose(4)
    recovering.note_clean()
    assert sorted(recovering.sent(DigestRequest)) == [0, 1, 2, 3]


# Failures.


def test_without_a_node_that_took_part_the_epoch_begins_again() -> None:
    """V15: with a new attempt, so that late answers are recognised."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL, copy(2, 1))
    recovering.lose(3)
    requests = recovering.sent(DigestRequest)
    assert {request.attempt for request in requests.values()} == {2}
    assert sorted(requests) == [0, 1, 2, 4]
    recovering.wait(500)
    assert sorted(recovering.sent(Seal)) == [3]
    recovering.recover(2, [0, 1, 2, 4], copy(2, 1), attempt=2)
    recovering.wait(100)


def test_a_node_that_was_sealed_too_late_takes_part_when_the_epoch_begins_again() -> None:
    """V15: otherwise only two nodes would be left, and the epoch would never end."""
    recovering = Recovering()
    recovering.seal([0, 1, 2])
    recovering.digest([0, 1, 2], copy(2, 1))
    recovering.wait(100)
    recovering.seal([3])
    assert stage(recovering) is Mutating
    recovering.lose(0)
    assert sorted(recovering.sent(DigestRequest)) == [1, 2, 3]
    recovering.digest([1, 2, 3], copy(2, 1), attempt=2)
    recovering.wait(100)
    assert stage(recovering) is Mutating


def test_a_node_that_refuses_a_store_or_clean_is_lost() -> None:
    """V15: its disk is full, or broken."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL)
    recovering.store(E2N1, [0], StoreStatus.NO_SPACE)
    assert sorted(recovering.sent(DigestRequest)) == [1, 2, 3, 4]
    recovering.digest([1, 2, 3, 4], attempt=2)
    recovering.wait(100)
    members = recovering.sent(Store)
    recovering.store(E2N1, members, attempt=2)
    recovering.clean([1], SealStatus.FAILED, attempt=2)
    assert sorted(recovering.sent(DigestRequest)) == [2, 3, 4]


def test_a_node_that_never_took_part_may_be_lost() -> None:
    """V15."""
    recovering = Recovering()
    recovering.seal([0, 1, 2, 3])
    recovering.digest([0, 1, 2, 3], copy(2, 1))
    recovering.wait(100)
    assert recovering.lose(4) == []
    assert stage(recovering) is Mutating


def test_a_changed_status_begins_the_epoch_again() -> None:
    """V15: what the votes prove has changed; the same statuses again change nothing."""
    recovering = Recovering()
    recovering.seal([0, 1])
    assert recovering.feed(StatusesChanged({})) == []
    recovering.feed(StatusesChanged({NodeId(node): LOST for node in (2, 3, 4)}))
    assert sorted(recovering.sent(DigestRequest)) == [0, 1]
    assert len(recovering.wanted(TailFound)) == 1


def test_a_status_that_changes_after_the_last_answer_changes_nothing() -> None:
    """V17: the epoch store is being asked."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.recover(2)
    assert recovering.feed(StatusesChanged({NodeId(4): LOST})) == []
    recovering.note_clean()
    assert recovering.machine.is_over


def test_recovery_begins_again_with_the_nodes_that_answer() -> None:
    """V18: after a long time without progress."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL)
    members = sorted(recovering.sent(Store))
    recovering.store(E2N1, members[1:])
    recovering.wait(29_999)
    assert stage(recovering) is Mutating
    recovering.wait(1)
    assert members[0] not in recovering.sent(DigestRequest)
    assert len(recovering.sent(DigestRequest)) == 4


def test_a_higher_seal_preempts_at_every_step() -> None:
    """V16: nothing more is written then."""
    preempted = RecoveryPreempted(Epoch(3), Epoch(8), NodeId(4))
    sealing = Recovering()
    sealing.seal([0], status=SealStatus.PREEMPTED)
    storing = Recovering()
    storing.seal(ALL)
    storing.digest(ALL)
    storing.store(E2N1, [0], StoreStatus.PREEMPTED)
    cleaning = Recovering()
    cleaning.seal(ALL)
    cleaning.digest(ALL)
    cleaning.store(E2N1, ALL)
    cleaning.clean([0], SealStatus.PREEMPTED)
    for recovering in (sealing, storing, cleaning):
        assert recovering.wanted(RecoveryPreempted) == [preempted]
        assert recovering.machine.is_over
        assert recovering.wait(100_000) == []


def test_a_higher_epoch_in_the_epoch_store_preempts() -> None:
    """V16: its sequencer has not sealed the nodes yet."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.recover(2)
    state = recovering.state.__class__(
        epoch=Epoch(7), last_clean=Epoch(1), metadata=METADATA, owner=NodeId(6)
    )
    assert recovering.feed(EpochStoreRead(3, state)) == [RecoveryPreempted(Epoch(3), Epoch(7), NodeId(6))]


def test_an_epoch_that_another_recovery_noted_as_clean_is_done() -> None:
    """V17."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.recover(2)
    state = recovering.state.__class__(
        epoch=Epoch(3), last_clean=Epoch(2), metadata=METADATA, owner=NodeId(9)
    )
    assert recovering.feed(EpochStoreRead(3, state)) == [RecoveryCompleted(Epoch(3))]


def test_an_epoch_store_that_fails_or_is_silent_is_asked_again() -> None:
    """V17."""
    recovering = Recovering()
    assert recovering.feed(EpochStoreRead(3, recovering.state)) == []
    assert recovering.feed(EpochStoreWritten(True)) == []
    recovering.seal(ALL)
    recovering.recover(2)
    assert recovering.feed(EpochStoreRead(-1, None)) == []
    recovering.wait(5000)
    assert recovering.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
    recovering.feed(EpochStoreRead(3, recovering.state))
    assert recovering.feed(EpochStoreWritten(False)) == [ReadEpochStore(LOG)]
    recovering.note_clean()
    assert recovering.machine.is_over


def test_a_log_whose_nodes_all_lost_their_data_is_declared_clean() -> None:
    """V19: no node is left to ask; readers are told of the loss."""
    recovering = Recovering(statuses=dict.fromkeys(nodes(ALL), LOST))
    assert ReadEpochStore(LOG) in recovering.start
    assert recovering.wanted(TailFound) == [TailFound(Epoch(3), LogPoint())]


def test_recovery_writes_to_no_node_if_all_data_of_the_nodeset_was_moved_elsewhere() -> None:
    """V12: all nodes of the nodeset count as if they were not in it."""
    empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
    recovering = Recovering(statuses=dict.fromkeys(nodes(ALL), empty))
    assert recovering.sent(Store) == {}
    assert ReadEpochStore(LOG) in recovering.start


def test_records_below_what_is_good_are_not_touched() -> None:
    """V5, V11: the last good record is only read."""
    recovering = Recovering()
    recovering.seal(ALL, tail(2, 4, 9))
    recovering.digest(ALL, copy(2, 3), start=3)
    stores = recovering.sent(Store)
    assert {store.record.lsn for store in stores.values()} == {Lsn.of(2, 4)}
    assert {store.record.flags & HOLE for store in stores.values()} == {HOLE}
    assert {store.record.entry_end for store in stores.values()} == {30}


def test_if_the_last_record_was_trimmed_the_counters_come_from_the_seals() -> None:
    """V11."""
    recovering = Recovering()
    recovering.seal(ALL, tail(2, 5, 5), trim=Lsn.of(2, 5))
    recovering.digest(ALL, start=4)
    assert {store.record.entry_end for store in recovering.sent(Store).values()} == {50}
