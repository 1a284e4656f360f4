"""When the sequencer of a chain log changes to other chains, and what it does with too few nodes."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.chain.tests.chain_sequencing import THREE, active, stored
from logdevice.protocol.io import Answered
from logdevice.protocol.messages.chain import Fate
from logdevice.protocol.messages.write import AppendStatus, StoreStatus
from logdevice.protocol.sequencer.epoch_state import (
    ReadEpochStore,
)
from logdevice.protocol.sequencer.events import (
    ChainConfig,
    NodeConnected,
    RecoveryCompleted,
    SequencerConfigChanged,
)
from logdevice.protocol.sequencer.tests.sequencing import state
from logdevice.types import Epoch, Lsn, NodeId, nodes


def test_a_chain_has_all_the_copies_and_the_epoch_counts_on_fewer() -> None:
    # P14, P15
    chaining = active()
    position = chaining.position(1)
    assert sorted(position.chain) == list(nodes([0, 1, 2]))
    assert position.copies == 2
    assert chaining.chain_epoch.copies == 3


def test_a_node_that_does_not_answer_is_left_out_of_the_next_chains() -> None:
    # P12, P13
    chaining = active()
    position = chaining.position(1)
    head = position.chain[0]
    request = chaining.settle(position.lsn)
    chaining.lose(head, position.lsn)
    chaining.begin_next_epoch()
    assert chaining.settled[request].fate is Fate.READ  # recovery decides
    assert head not in chaining.chain_epoch.chains[0]
    assert len(chaining.chain_epoch.chains[0]) == 2
    assert chaining.chain_epoch.copies == 2


def test_answers_about_an_epoch_that_was_left_are_dropped() -> None:
    # P13
    chaining = active()
    position = chaining.position(1)
    chaining.lose(position.chain[0], Lsn.of(2, 9))
    chaining.settle(position.lsn)
    chaining.lose(position.chain[0], position.lsn)
    chaining.begin_next_epoch()
    chaining.feed(Answered(position.chain[0], stored(position.lsn)))
    chaining.lose(position.chain[0], position.lsn)
    chaining.feed(Answered(position.chain[0], stored(Lsn.of(3, 9))))
    assert chaining.sent() == []


def test_a_node_that_the_cluster_calls_dead_is_left_out() -> None:
    # P12
    chaining = active()
    chaining.feed(SequencerConfigChanged(replace(THREE, away=frozenset(nodes([1])))))
    chaining.begin_next_epoch()
    assert NodeId(1) not in chaining.chain_epoch.chains[0]


def test_a_chain_grows_again_when_a_node_is_back() -> None:
    # P17
    chaining = active()
    position = chaining.position(1)
    chaining.settle(position.lsn)
    chaining.lose(position.chain[0], position.lsn)
    chaining.begin_next_epoch()
    chaining.feed(RecoveryCompleted(Epoch(3)))
    chaining.wait(100)
    assert not chaining.wanted(ReadEpochStore)  # it is still suspected
    chaining.feed(NodeConnected(position.chain[0]))
    chaining.begin_next_epoch(3)
    assert chaining.chain_epoch.copies == 3


def test_a_chain_grows_again_when_the_cluster_sees_a_node_again() -> None:
    # P17
    away = replace(THREE, away=frozenset(nodes([1])))
    chaining = active(away)
    assert chaining.chain_epoch.copies == 2
    chaining.feed(SequencerConfigChanged(THREE))
    chaining.begin_next_epoch()
    assert chaining.chain_epoch.copies == 3


def test_new_positions_wait_for_the_next_chains() -> None:
    # P12
    chaining = active()
    chaining.feed(SequencerConfigChanged(replace(THREE, away=frozenset(nodes([1])))))
    request = chaining.next(1)
    assert request not in chaining.issued
    chaining.take_epoch(state(2, 1, owner=0))
    issued = chaining.issued[request].position
    assert issued is not None
    assert NodeId(1) not in issued.chain


def test_a_suspicion_ends_after_a_while() -> None:
    # P17
    chaining = active()
    position = chaining.position(1)
    chaining.settle(position.lsn)
    chaining.lose(position.chain[0], position.lsn)
    chaining.begin_next_epoch()
    chaining.wait(600)
    chaining.begin_next_epoch(3)
    assert chaining.chain_epoch.copies == 3


def test_two_of_three_gone_leave_a_chain_of_one_if_the_log_allows_it() -> None:
    # P16
    chaining = active()
    chaining.feed(SequencerConfigChanged(replace(THREE, away=frozenset(nodes([1, 2])))))
    chaining.begin_next_epoch()
    assert chaining.chain_epoch.chains == ((NodeId(0),),)
    assert chaining.position(1).copies == 1


def test_a_log_may_forbid_chains_that_are_too_short() -> None:
    # P16
    config = replace(THREE, chain=ChainConfig(min_copies=2))
    chaining = active(config)
    chaining.feed(SequencerConfigChanged(replace(config, away=frozenset(nodes([1, 2])))))
    assert not chaining.wanted(ReadEpochStore)
    assert chaining.issued[chaining.next(1)].status is AppendStatus.TOO_FEW_NODES
    chaining = active(replace(config, away=frozenset(nodes([1, 2]))))
    assert chaining.issued[chaining.next(1)].status is AppendStatus.TOO_FEW_NODES
    assert chaining.status(chaining.append()) is AppendStatus.TOO_FEW_NODES
    assert chaining.chain_epoch.copies == 0
    chaining.feed(SequencerConfigChanged(config))
    chaining.begin_next_epoch()
    assert chaining.chain_epoch.copies == 3


def test_a_sealed_chain_makes_the_sequencer_step_down() -> None:
    # U11, P13
    chaining = active()
    request = chaining.append()
    waiting = chaining.settle(Lsn.of(2, 1))
    chaining.feed(Answered(chaining.chain_epoch.chains[0][0], stored(Lsn.of(2, 1), StoreStatus.PREEMPTED)))
    assert chaining.machine.current is None
    assert chaining.status(request) is AppendStatus.UNKNOWN
    assert chaining.settled[waiting].fate is Fate.READ
    refused = chaining.issued[chaining.next(2)]
    assert (refused.status, refused.node) == (AppendStatus.REDIRECTED, NodeId(4))
    assert chaining.settled[chaining.settle(Lsn.of(2, 1))].status is AppendStatus.REDIRECTED


def test_nothing_is_changed_while_an_epoch_is_being_taken() -> None:
    # P12
    chaining = active()
    chaining.feed(SequencerConfigChanged(replace(THREE, away=frozenset(nodes([1])))))
    assert chaining.wanted(ReadEpochStore)
    chaining.next(1)
    assert not chaining.wanted(ReadEpochStore)
