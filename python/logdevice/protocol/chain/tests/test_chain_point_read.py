"""What is at one position, from the answers of a sequencer and a tail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.chain.point_read import AskTail, PointIs, PointStatus, ReadLog, copied, located
from logdevice.protocol.chain.tests.chain_sequencing import THREE, Chaining, active
from logdevice.protocol.chain.tests.chaining import HOLE, LSN, copy, record
from logdevice.protocol.messages.chain import ChainCopy, Fate, Settle, Settled
from logdevice.protocol.messages.write import AppendStatus
from logdevice.protocol.sequencer.epoch_state import ReadEpochStore
from logdevice.protocol.sequencer.events import ChainConfig, OwnerChanged
from logdevice.protocol.sequencer.tests.sequencing import CONFIG, LOG, ME
from logdevice.types import Epoch, Lsn, NodeId, RecordFlags, WriterTag

TAG = WriterTag(writer=5, incarnation=1, first_seq=3, count=1, stable_upto=1, is_ordered=True)


def locate(chaining: Chaining, lsn: Lsn, seen: int = 0) -> Settled:
    chaining.ask(99, Settle(log=LOG, lsn=lsn, decide=False, seen_epoch=Epoch(seen)))
    return chaining.replies(Settled)[99]


def place(chaining: Chaining, lsn: Lsn) -> tuple[Fate, NodeId | None]:
    answer = locate(chaining, lsn)
    assert (answer.status, answer.lsn) == (AppendStatus.OK, lsn)
    return answer.fate, answer.node


def test_the_tail_of_its_chain_knows_what_is_at_an_open_position() -> None:
    # P26
    chaining = active(replace(THREE, chain=ChainConfig(chains=3)))
    positions = [chaining.position(token) for token in (1, 2, 3)]
    assert len({position.chain[-1] for position in positions}) == 3
    for position in positions:
        assert place(chaining, position.lsn) == (Fate.TAIL, position.chain[-1])


def test_positions_released_or_of_an_earlier_epoch_are_read_from_the_log() -> None:
    # P26
    chaining = active()
    first, second = chaining.position(1), chaining.position(2)
    chaining.complete(first.lsn)
    assert place(chaining, first.lsn) == (Fate.READ, None)
    assert place(chaining, Lsn.of(1, 7)) == (Fate.READ, None)
    assert place(chaining, second.lsn) == (Fate.TAIL, second.chain[-1])


def test_a_position_that_was_not_given_out_is_unissued() -> None:
    # P26
    chaining = active()
    lsn = chaining.position(1).lsn
    assert place(chaining, lsn.next) == (Fate.UNISSUED, None)
    assert place(chaining, Lsn.of(9, 1)) == (Fate.UNISSUED, None)


def test_positions_of_a_log_without_chains_are_read_from_the_log() -> None:
    # P26
    chaining = active(CONFIG)
    chaining.append(b"body")
    assert place(chaining, Lsn.of(2, 1)) == (Fate.READ, None)
    assert place(chaining, Lsn.of(2, 2)) == (Fate.UNISSUED, None)


def test_a_sequencer_that_is_outdated_does_not_answer() -> None:
    # P26, U4
    chaining = active()
    lsn = chaining.position(1).lsn
    assert locate(chaining, lsn, seen=2).status is AppendStatus.OK
    assert locate(chaining, lsn, seen=3).status is AppendStatus.NO_SEQUENCER
    assert chaining.wanted(ReadEpochStore)


def test_another_node_names_the_sequencer() -> None:
    # P26
    chaining = Chaining()
    chaining.feed(OwnerChanged(NodeId(4)))
    answer = locate(chaining, LSN)
    assert (answer.status, answer.node) == (AppendStatus.REDIRECTED, NodeId(4))
    chaining.feed(OwnerChanged(ME))
    assert locate(chaining, LSN).status is AppendStatus.NO_SEQUENCER
    assert chaining.wanted(ReadEpochStore)  # and becomes the sequencer (U1)


@pytest.mark.parametrize(
    ("at", "node", "step"),
    [
        (Fate.UNISSUED, None, PointIs(PointStatus.BEYOND_TAIL)),
        (Fate.READ, None, ReadLog()),
        (Fate.TAIL, NodeId(3), AskTail(NodeId(3))),
    ],
)
def test_the_answer_of_the_sequencer_decides_the_next_step(
    at: Fate, node: NodeId | None, step: object
) -> None:
    # P26
    assert located(Settled(lsn=LSN, status=AppendStatus.OK, fate=at, node=node)) == step


def test_a_record_or_hole_at_the_tail_is_final() -> None:
    # P27
    filled = record(flags=HOLE | int(RecordFlags.FILLED))
    assert copied(copy(record())) == PointIs(PointStatus.WRITTEN, record())
    assert copied(copy(filled)) == PointIs(PointStatus.HOLE)
    assert copied(copy()) == PointIs(PointStatus.UNWRITTEN)
    unordered = replace(record(), tag=replace(TAG, is_ordered=False))
    assert copied(copy(unordered)) == PointIs(PointStatus.WRITTEN, unordered)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        copy(failed=True),
        replace(copy(record()), is_sealed=True),
        replace(copy(), is_sealed=True),
        copy(record(flags=int(RecordFlags.CORRUPT))),
        copy(record(flags=int(RecordFlags.BY_RECOVERY))),
        copy(replace(record(), tag=TAG)),  # O7: recovery may give it up
    ],
)
def test_a_tail_that_may_be_wrong_is_not_believed(answer: ChainCopy | None) -> None:
    # P27
    assert copied(answer) == ReadLog()
