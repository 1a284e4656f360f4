"""The sequencer: activation, numbering, window, answers, tail."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.messages.write import AppendStatus, Stored, StoreStatus
from logdevice.protocol.sequencer.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    ReadEpochStore,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    OwnerChanged,
    SequencerConfigChanged,
    TailFound,
)
from logdevice.protocol.sequencer.tests.sequencing import CONFIG, LOG, ME, METADATA, Sequencing, state
from logdevice.protocol.timers import WakeAt
from logdevice.settings import WriteSettings
from logdevice.types import (
    ESN_MAX,
    Epoch,
    EpochMetadata,
    LogPoint,
    Lsn,
    NodeId,
    Replication,
    WriterTag,
    nodes,
)

OK, NO_SEQUENCER = AppendStatus.OK, AppendStatus.NO_SEQUENCER
REDIRECTED, OVERLOADED = AppendStatus.REDIRECTED, AppendStatus.OVERLOADED


# Activation.


def test_an_append_activates_the_node_that_should_own_the_log() -> None:
    """U1: and waits until there is an epoch for it."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    request = sequencing.append()
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
    sequencing.take_epoch(state(1))
    assert [store.request.record.lsn for store in sequencing.stores()] == [Lsn.of(2, 1)] * 3
    sequencing.store(sequencing.stores())
    assert sequencing.status(request) is OK


def test_an_append_to_another_nodes_log_is_redirected() -> None:
    """U1."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(NodeId(3)))
    request = sequencing.append()
    assert (sequencing.status(request), sequencing.answers[request].node) == (REDIRECTED, NodeId(3))


def test_an_append_to_a_log_that_no_node_can_own_has_no_sequencer() -> None:
    """U1."""
    sequencing = Sequencing()
    assert sequencing.status(sequencing.append()) is NO_SEQUENCER


def test_the_next_epoch_is_taken_by_compare_and_set() -> None:
    """U2."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    sequencing.feed(EpochStoreRead(3, state(6, 4, owner=2)))
    wanted = replace(state(6, 4), epoch=Epoch(7), owner=ME)
    assert sequencing.wanted(WriteEpochStore) == [WriteEpochStore(LOG, 3, wanted)]


def test_a_node_that_loses_the_race_for_an_epoch_pauses_longer_each_time() -> None:
    """U2, U3."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    for pause_ms in (100, 200, 400):
        request = sequencing.append()
        sequencing.feed(EpochStoreRead(3, state(6)))
        sequencing.feed(EpochStoreWritten(False))
        assert sequencing.status(request) is NO_SEQUENCER
        sequencing.wait(pause_ms - 1)
        assert sequencing.status(sequencing.append()) is NO_SEQUENCER
        assert sequencing.wanted(ReadEpochStore) == []
        sequencing.wait(1)


def test_a_log_that_was_never_provisioned_has_no_sequencer() -> None:
    """U2."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    request = sequencing.append()
    sequencing.feed(EpochStoreRead(0, None))
    assert sequencing.status(request) is NO_SEQUENCER


def test_an_activation_ends_when_the_epoch_store_does_not_answer() -> None:
    """U3: and a later answer is ignored."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    request = sequencing.append()
    sequencing.wait(5000)
    assert sequencing.status(request) is NO_SEQUENCER
    assert sequencing.feed(EpochStoreRead(3, state(1))) == []
    assert sequencing.feed(EpochStoreWritten(True)) == []


def test_only_one_activation_runs_at_a_time() -> None:
    """U3."""
    sequencing = Sequencing()
    sequencing.feed(ActivationAsked())
    assert sequencing.feed(ActivationAsked()) == []


def test_a_successful_activation_ends_the_pauses() -> None:
    """U3: the next failure begins with the shortest pause again."""
    sequencing = Sequencing()
    for pause_ms in (100, 200):
        sequencing.feed(ActivationAsked())
        sequencing.feed(EpochStoreRead(0, None))
        sequencing.wait(pause_ms)
    sequencing.activate()
    sequencing.feed(ActivationAsked())
    sequencing.feed(EpochStoreRead(0, None))
    sequencing.wait(100)
    sequencing.feed(ActivationAsked())
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]


def test_appends_that_wait_for_an_epoch_are_limited() -> None:
    """U8."""
    sequencing = Sequencing(WriteSettings(window_records_max=2))
    sequencing.feed(OwnerChanged(ME))
    requests = [sequencing.append() for _ in range(3)]
    assert [sequencing.status(request) for request in requests] == [None, None, OVERLOADED]


def test_a_client_that_saw_a_higher_epoch_makes_the_sequencer_ask_the_epoch_store() -> None:
    """U4: it steps down when the epoch store says so."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    request = sequencing.append(seen=3)
    assert sequencing.status(request) is NO_SEQUENCER
    sequencing.feed(EpochStoreRead(9, state(3, owner=4)))
    request = sequencing.append()
    assert (sequencing.status(request), sequencing.answers[request].node) == (REDIRECTED, NodeId(4))


def test_a_new_nodeset_needs_a_new_epoch() -> None:
    """U5: the configuration wants other nodes; the epoch's metadata says so from then on."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    assert sequencing.feed(SequencerConfigChanged(CONFIG)) == []
    wanted = replace(CONFIG, nodeset=nodes([5, 6, 7]))
    assert sequencing.feed(SequencerConfigChanged(wanted)) == [ReadEpochStore(LOG)]
    sequencing.take_epoch(state(2))
    metadata = EpochMetadata(Epoch(3), nodes([5, 6, 7]), METADATA.replication)
    sequencing.append()
    assert sorted(store.node for store in sequencing.stores()) == [5, 6, 7]
    sequencing.feed(MetadataLogRead((METADATA,)))
    assert sequencing.wanted(WriteMetadataLog) == [WriteMetadataLog(LOG, metadata)]


def test_a_changed_configuration_waits_while_the_sequencer_is_not_needed() -> None:
    """U5."""
    sequencing = Sequencing()
    assert sequencing.feed(SequencerConfigChanged(replace(CONFIG, replication=Replication.parse("2")))) == []


def test_a_node_that_left_the_configuration_gets_no_new_records() -> None:
    """U5."""
    sequencing = Sequencing(config=replace(CONFIG, nodeset=nodes([0, 1, 2, 9])))
    sequencing.feed(OwnerChanged(ME))
    sequencing.append()
    sequencing.take_epoch(state(1))
    assert sorted(store.node for store in sequencing.stores()) == [0, 1, 2]


def test_nodes_that_are_away_get_no_new_records_while_others_are_enough() -> None:
    """K9: those that are away when the epoch begins, and those that go later."""
    sequencing = Sequencing(config=replace(CONFIG, away=frozenset([CONFIG.nodeset[0]])))
    sequencing.activate(state(1))
    sequencing.append()
    first = sorted(store.node for store in sequencing.stores())
    assert CONFIG.nodeset[0] not in first
    assert sequencing.feed(SequencerConfigChanged(replace(CONFIG, away=frozenset([first[0]])))) == []
    sequencing.append()
    assert first[0] not in {store.node for store in sequencing.stores()}


# Numbers, times, counters.


def test_records_are_numbered_from_one_with_growing_times_and_counters() -> None:
    """U6: counters go on where the log stood; times never go back, even if the node's clock does."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    tag = WriterTag(writer=1, incarnation=2, first_seq=3, count=1, stable_upto=3)
    sequencing.append(b"body", entries=2, tag=tag)
    first = sequencing.stores()[0].request.record
    sequencing.now_ms = 900
    sequencing.append(b"more body", entries=3)
    second = sequencing.stores()[0].request.record
    assert (first.lsn, second.lsn) == (Lsn.of(2, 1), Lsn.of(2, 2))
    assert (first.timestamp_ms, second.timestamp_ms) == (1000, 1000)
    assert (first.entries, first.entry_end, first.byte_end, first.tag) == (2, 102, 1004, tag)
    assert (second.entry_end, second.byte_end, second.tag) == (105, 1013, None)


def test_the_first_appends_wait_for_the_tail_of_an_epoch_of_another_node() -> None:
    """U6: until an f-majority is sealed, the last record of that epoch is not known."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    request = sequencing.append()
    sequencing.take_epoch(state(3, 2))
    assert sequencing.stores() == []
    assert sequencing.tail().status is NO_SEQUENCER
    tail = LogPoint(lsn=Lsn.of(3, 20), timestamp_ms=2000, entry_end=300, byte_end=7000)
    assert sequencing.feed(TailFound(Epoch(3), tail)) == []
    sequencing.feed(TailFound(Epoch(4), tail))
    record = sequencing.stores()[0].request.record
    assert (record.timestamp_ms, record.entry_end, record.byte_end) == (2000, 302, 7004)
    sequencing.store(sequencing.stores())
    assert sequencing.status(request) is OK


def test_appends_do_not_wait_for_a_tail_that_does_not_come() -> None:
    """U6: availability comes first. A tail that comes later raises the counters from then on."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    sequencing.append()
    sequencing.take_epoch(state(3, 2))
    sequencing.wait(999)
    assert sequencing.stores() == []
    sequencing.wait(1)
    assert sequencing.stores()[0].request.record.entry_end == 102
    sequencing.feed(TailFound(Epoch(4), LogPoint(entry_end=500)))
    sequencing.append()
    assert sequencing.stores()[0].request.record.entry_end == 502


# Window, answers.


def test_answers_come_in_any_order_and_the_window_moves_in_order() -> None:
    """U7."""
    sequencing = Sequencing()
    sequencing.activate()
    requests, stores = [], []
    for _ in range(3):
        requests.append(sequencing.append())
        stores.append(sequencing.stores())
    sequencing.store(stores[2])
    sequencing.store(stores[1])
    assert [sequencing.status(request) for request in requests] == [None, OK, OK]
    current = sequencing.machine.current
    assert current is not None
    assert current.numbering.good_end == Lsn.of(2, 1)
    sequencing.store(stores[0])
    assert current.numbering.good_end == Lsn.of(2, 4)


def test_a_full_window_refuses_appends() -> None:
    """U8: in records, and in bytes; records that were stored make room."""
    for settings in (WriteSettings(window_records_max=2), WriteSettings(window_bytes_max=100)):
        sequencing = Sequencing(settings)
        sequencing.activate()
        sequencing.append()
        stores = sequencing.stores()
        sequencing.append()
        request = sequencing.append()
        assert sequencing.status(request) is OVERLOADED
        sequencing.store(stores)
        assert sequencing.status(sequencing.append()) is None


def test_a_body_that_is_too_big_is_refused() -> None:
    """U8."""
    sequencing = Sequencing(WriteSettings(body_bytes_max=3))
    assert sequencing.status(sequencing.append(b"body")) is AppendStatus.TOO_BIG


def test_appends_are_refused_while_disks_are_full() -> None:
    """K8: before they get a number; records that have one are tried again."""
    sequencing = Sequencing(config=replace(CONFIG, nodeset=nodes([0, 1, 2])))
    sequencing.activate()
    request = sequencing.append()
    sequencing.store(sequencing.stores()[:1], StoreStatus.NO_SPACE)
    assert sequencing.status(request) is None
    assert sequencing.status(sequencing.append()) is AppendStatus.NO_SPACE


def test_a_record_is_sent_again_at_its_time_out() -> None:
    """E2, through the sequencer's single deadline."""
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.append()
    assert WakeAt(1200) in sequencing.effects
    assert sequencing.wait(199) == []
    sequencing.wait(1)
    assert [store.request.record.wave for store in sequencing.stores()] == [2, 2, 2]


def test_a_store_that_got_lost_is_replaced_at_once() -> None:
    """E3, through the sequencer."""
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.append()
    store = sequencing.stores()[0]
    sequencing.feed(Lost(store.node, store.request))
    assert [effect.request.record.wave for effect in sequencing.stores()] == [2, 2, 2]
    assert store.node not in [effect.node for effect in sequencing.stores()]


def test_answers_about_records_of_other_epochs_or_done_ones_are_dropped() -> None:
    """E4."""
    sequencing = Sequencing()
    sequencing.activate()
    sequencing.append()
    stores = sequencing.stores()
    lsn = stores[0].request.lsn
    sequencing.store(stores)
    assert sequencing.feed(Lost(NodeId(1), stores[0].request)) == []
    assert Sequencing().feed(Lost(NodeId(1), stores[0].request)) == []
    for late in (lsn, Lsn.of(1, 1)):
        stored = Stored(lsn=late, wave=1, status=StoreStatus.OK)
        assert sequencing.feed(Answered(NodeId(1), stored)) == []


def test_an_epoch_that_runs_out_of_numbers_is_followed_by_the_next() -> None:
    """U9: the appends that no longer fit wait; the last number stays free for the bridge."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    current = sequencing.machine.current
    assert current is not None
    current.numbering.next_lsn = current.numbering.good_end = Lsn.of(2, ESN_MAX - 1)
    request = sequencing.append()
    assert sequencing.stores()[0].request.record.lsn == Lsn.of(2, ESN_MAX - 1)
    sequencing.store(sequencing.stores())
    assert sequencing.status(request) is OK
    request = sequencing.append()
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
    sequencing.take_epoch(state(2))
    assert sequencing.stores()[0].request.record.lsn == Lsn.of(3, 1)
    sequencing.store(sequencing.stores())
    assert sequencing.status(request) is OK


# The tail.


def test_the_tail_says_how_far_the_log_has_come() -> None:
    """U16."""
    sequencing = Sequencing()
    sequencing.activate(state(1))
    sequencing.append_and_store()
    sequencing.append()
    tail = sequencing.tail()
    assert (tail.status, tail.end.lsn, tail.released_end) == (OK, Lsn.of(2, 3), Lsn.of(2, 2))
    assert (tail.end.timestamp_ms, tail.end.entry_end, tail.end.byte_end) == (1000, 104, 1008)


def test_a_question_for_the_tail_is_redirected_or_activates_the_owner() -> None:
    """U16, U1."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(NodeId(3)))
    tail = sequencing.tail()
    assert (tail.status, tail.node) == (REDIRECTED, NodeId(3))
    sequencing.feed(OwnerChanged(ME))
    assert sequencing.tail().status is NO_SEQUENCER
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG)]
