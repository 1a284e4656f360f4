"""The sequencer of a chain log: positions, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.chain.tests.chain_sequencing import THREE, Chaining, active, stored
from logdevice.protocol.io import Answered
from logdevice.protocol.messages.chain import (
    ChainCopy,
    ChainRead,
    Fate,
)
from logdevice.protocol.messages.write import AppendStatus
from logdevice.protocol.sequencer.epoch_state import (
    EpochStoreRead,
    ReadEpochStore,
)
from logdevice.protocol.sequencer.events import (
    ChainConfig,
    OwnerChanged,
    RecoveryCompleted,
    SequencerConfigChanged,
)
from logdevice.protocol.sequencer.tests.sequencing import CONFIG, ME, state
from logdevice.protocol.timers import WakeAt
from logdevice.settings import WriteSettings
from logdevice.types import ESN_MAX, Epoch, Lsn, NodeId, WriterTag


def test_positions_are_given_out_with_times_and_counters() -> None:
    # P8
    chaining = active()
    first, second = chaining.position(1), chaining.position(2)
    assert (first.lsn, second.lsn) == (Lsn.of(2, 1), Lsn.of(2, 2))
    assert (first.entry_end, first.byte_end) == (102, 1010)
    assert (second.entry_end, second.byte_end) == (104, 1020)
    assert first.timestamp_ms == 1000
    assert (first.sequencer, first.good_end) == (ME, Lsn.of(2, 1))
    assert chaining.tail().end.lsn == Lsn.of(2, 3)  # asking for the tail gives out no position


def test_the_same_token_gets_the_same_position_until_it_is_decided() -> None:
    # P8
    chaining = active()
    lsn = chaining.position(1).lsn
    assert chaining.position(1).lsn == lsn
    chaining.complete(lsn)
    assert chaining.position(1).lsn == lsn.next


def test_positions_take_the_chains_in_turn() -> None:
    # P14
    chaining = active(replace(THREE, chain=ChainConfig(chains=3)))
    chains = [chaining.position(token).chain for token in (1, 2, 3, 4)]
    assert len(set(chains)) == 3
    assert chains[0] == chains[3]


def test_positions_that_the_tails_report_are_released_in_order() -> None:
    # P7, U7
    chaining = active()
    first, second = chaining.position(1).lsn, chaining.position(2).lsn
    chaining.complete(second)
    assert chaining.chain_epoch.numbering.good_end == first
    chaining.complete(second, Lsn.of(2, 77), first)
    assert chaining.chain_epoch.numbering.good_end == second.next
    assert chaining.released()[NodeId(1)] == second.next


def test_a_position_is_settled_when_it_is_decided() -> None:
    # P11
    chaining = active()
    lsn = chaining.position(1).lsn
    request = chaining.settle(lsn)
    assert chaining.sent() == [(chaining.chain_epoch.chains[0][0], "ChainRead")]
    assert request not in chaining.settled
    chaining.complete(lsn, is_hole=True)
    assert chaining.settled[request].fate is Fate.HOLE
    other = chaining.position(2).lsn
    third = chaining.position(3).lsn
    chaining.complete(third)
    assert chaining.settled[chaining.settle(third)].fate is Fate.READ  # it is decided
    request = chaining.settle(other)
    chaining.complete(other)
    assert chaining.settled[request].fate is Fate.DATA


def test_the_fate_of_a_record_of_an_ordered_writer_is_read_from_the_log() -> None:
    # P11, O7: recovery gives it up if the first one is missing
    chaining = active()
    tag = WriterTag(writer=5, incarnation=1, first_seq=1, count=1, stable_upto=1)
    for seq in (1, 2):
        chaining.append(tag=replace(tag, first_seq=seq))
    second = Lsn.of(2, 2)
    waiting = chaining.settle(second)
    chaining.complete(second)
    assert chaining.settled[waiting].fate is Fate.READ
    assert chaining.settled[chaining.settle(second)].fate is Fate.READ
    chaining.append(tag=replace(tag, writer=6, is_ordered=False))
    waiting = chaining.settle(second.next)
    chaining.complete(second.next)
    assert chaining.settled[waiting].fate is Fate.DATA


def test_the_number_of_requests_that_wait_for_one_position_is_limited() -> None:
    # P11
    chaining = active()
    lsn = chaining.position(1).lsn
    for _ in range(64):
        chaining.settle(lsn)
    assert not chaining.settled
    assert chaining.settled[chaining.settle(lsn)].status is AppendStatus.OVERLOADED


def test_an_old_position_is_read_from_the_log_and_one_not_given_out_is_unissued() -> None:
    # P11
    chaining = active()
    lsn = chaining.position(1).lsn
    chaining.complete(lsn)
    assert chaining.settled[chaining.settle(lsn)].fate is Fate.READ
    assert chaining.settled[chaining.settle(lsn.next)].fate is Fate.UNISSUED
    assert chaining.settled[chaining.settle(Lsn.of(1, 5))].fate is Fate.READ
    assert chaining.settled[chaining.settle(Lsn.of(9, 5))].fate is Fate.UNISSUED


def test_a_client_that_gives_up_has_its_position_filled_at_once() -> None:
    # P10
    chaining = active()
    position = chaining.position(1)
    head = position.chain[0]
    chaining.settle(position.lsn, token=1)
    assert chaining.sent() == [(head, "ChainRead")]
    chaining.feed(Answered(head, ChainCopy(lsn=position.lsn)))
    assert chaining.sent() == [(head, "Store")]


def test_the_head_of_an_open_position_is_asked_after_a_while() -> None:
    # P9
    chaining = active()
    position = chaining.position(1)
    chaining.wait(10)
    assert chaining.sent() == [(position.chain[0], "ChainRead")]


def test_a_record_that_comes_with_its_body_is_written_along_the_chain() -> None:
    # P18
    chaining = active()
    request = chaining.append(b"body")
    chain = chaining.chain_epoch.chains[0]
    for node in chain:
        assert chaining.sent() == [(node, "Store")]
        chaining.feed(Answered(node, stored(Lsn.of(2, 1))))
    assert chaining.status(request) is AppendStatus.OK
    assert chaining.answers[request].lsn == Lsn.of(2, 1)


def test_a_tagged_record_is_taken_once() -> None:
    # O1, P18
    chaining = active()
    tag = WriterTag(writer=5, incarnation=1, first_seq=1, count=1, stable_upto=1)
    first, second = chaining.append(tag=tag), chaining.append(tag=tag)
    chaining.complete(Lsn.of(2, 1))
    assert chaining.status(first) is AppendStatus.OK
    assert chaining.status(second) is AppendStatus.DUPLICATE
    third = chaining.append(tag=replace(tag, first_seq=2, stable_upto=2))
    chaining.lose(chaining.chain_epoch.chains[0][0], Lsn.of(2, 2))
    chaining.begin_next_epoch()
    assert chaining.status(third) is AppendStatus.UNKNOWN


def test_an_append_whose_position_was_filled_by_another_process_is_unknown() -> None:
    # P18
    chaining = active()
    request = chaining.append()
    chaining.complete(Lsn.of(2, 1), is_hole=True)
    assert chaining.status(request) is AppendStatus.UNKNOWN


def test_a_log_without_chains_gives_out_no_positions() -> None:
    # P18
    chaining = active(CONFIG)
    assert chaining.issued[chaining.next(1)].status is AppendStatus.UNCHAINED
    chaining.complete(Lsn.of(2, 1))
    assert chaining.settled[chaining.settle(Lsn.of(2, 1))].fate is Fate.UNISSUED
    chaining.append_and_store()
    assert chaining.settled[chaining.settle(Lsn.of(2, 1))].fate is Fate.READ


def test_a_log_may_change_from_copysets_to_chains() -> None:
    # P18: with a new epoch
    chaining = active(CONFIG)
    chaining.feed(SequencerConfigChanged(replace(CONFIG, chain=ChainConfig())))
    chaining.begin_next_epoch()
    chaining.feed(RecoveryCompleted(Epoch(3)))
    assert chaining.position(1).lsn == Lsn.of(3, 1)


def test_a_log_that_is_not_needed_changes_later() -> None:
    chaining = Chaining(CONFIG)
    chaining.feed(SequencerConfigChanged(THREE))
    assert not chaining.wanted(ReadEpochStore)


def test_another_node_redirects_to_the_sequencer() -> None:
    # U1
    chaining = Chaining()
    chaining.feed(OwnerChanged(NodeId(3)))
    refused = chaining.issued[chaining.next(1)]
    assert (refused.status, refused.node) == (AppendStatus.REDIRECTED, NodeId(3))


def test_a_request_for_a_position_activates_the_owner() -> None:
    # U1
    chaining = Chaining()
    chaining.feed(OwnerChanged(ME))
    request = chaining.next(1)
    assert chaining.wanted(ReadEpochStore)
    chaining.feed(EpochStoreRead(-1, None))
    assert chaining.issued[request].status is AppendStatus.NO_SEQUENCER


def test_a_client_that_saw_a_higher_epoch_is_believed() -> None:
    # U4
    chaining = active()
    assert chaining.issued[chaining.next(1, seen=7)].status is AppendStatus.NO_SEQUENCER
    assert chaining.wanted(ReadEpochStore)


def test_the_time_of_a_position_is_not_lower_than_what_its_writer_has_seen() -> None:
    """T11, and T15: a time too far ahead is refused."""
    chaining = active()
    position = chaining.issued[chaining.next(1, clock_ms=5000)].position
    assert position is not None
    assert position.timestamp_ms == 5000
    assert chaining.issued[chaining.next(2, clock_ms=10_000_000)].status is AppendStatus.CLOCK_AHEAD


def test_a_record_that_is_too_big_or_exceeds_the_window_is_refused() -> None:
    # U8
    chaining = active()
    assert chaining.issued[chaining.next(1, size=1 << 30)].status is AppendStatus.TOO_BIG
    small = Chaining(settings=WriteSettings(window_records_max=1, release_interval_ms=0))
    small.feed(OwnerChanged(ME))
    waiting = small.next(1)
    assert small.issued[small.next(2)].status is AppendStatus.OVERLOADED
    small.take_epoch(state(1))
    assert small.issued[waiting].position is not None
    assert small.issued[small.next(3)].status is AppendStatus.OVERLOADED


def test_an_epoch_that_runs_out_of_numbers_is_followed_by_the_next() -> None:
    # U9
    chaining = active()
    chaining.chain_epoch.numbering.next_lsn = Lsn.of(2, ESN_MAX)
    chaining.chain_epoch.numbering.good_end = Lsn.of(2, ESN_MAX)
    request = chaining.next(1)
    assert request not in chaining.issued
    chaining.begin_next_epoch()
    assert chaining.issued[request].position is not None


@pytest.mark.parametrize("chains", [1, 3])
def test_a_chain_epoch_wakes_up_for_its_positions(chains: int) -> None:
    # P9
    chaining = active(replace(THREE, chain=ChainConfig(chains=chains)))
    chaining.position(1)
    assert [effect.time_ms for effect in chaining.wanted(WakeAt)] == [1010]
    chaining.wait(10)
    assert [request for _, request in chaining.sent()] == [ChainRead.__name__]
