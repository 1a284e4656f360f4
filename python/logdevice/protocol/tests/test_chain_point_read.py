"""What is at one position, from the answers of a sequencer and a tail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.chain.events import AnswerLocate, ChainConfig, LocateReceived
from logdevice.protocol.chain.messages import ChainCopy, Locate, Located, Place
from logdevice.protocol.chain.point_read import AskTail, PointIs, PointStatus, ReadLog, copied, located
from logdevice.protocol.chain.sequencer import ChainSequencer
from logdevice.protocol.epoch_state import ReadEpochStore
from logdevice.protocol.sequencer_events import OwnerChanged
from logdevice.protocol.tests.chain_sequencing import THREE, Chaining, active
from logdevice.protocol.tests.chaining import HOLE, LSN, copy, record
from logdevice.protocol.tests.sequencing import CONFIG, LOG, ME
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, Lsn, NodeId, RecordFlags


def locate(chaining: Chaining, lsn: Lsn, seen: int = 0) -> Located:
    effects = chaining.feed(LocateReceived(99, Locate(log=LOG, lsn=lsn, seen_epoch=Epoch(seen))))
    (answer,) = [effect for effect in effects if isinstance(effect, AnswerLocate)]
    assert answer.request_id == 99
    return answer.located


def place(chaining: Chaining, lsn: Lsn) -> tuple[Place, NodeId | None]:
    answer = locate(chaining, lsn)
    assert (answer.status, answer.lsn) == (AppendStatus.OK, lsn)
    return answer.place, answer.node


def test_the_tail_of_its_chain_knows_what_is_at_an_open_position() -> None:
    # P26
    chaining = active(replace(THREE, chain=ChainConfig(chains=3)))
    positions = [chaining.position(token) for token in (1, 2, 3)]
    assert len({position.chain[-1] for position in positions}) == 3
    for position in positions:
        assert place(chaining, position.lsn) == (Place.TAIL, position.chain[-1])


def test_the_log_tells_what_is_released_or_of_an_earlier_epoch() -> None:
    # P26
    chaining = active()
    first, second = chaining.position(1), chaining.position(2)
    chaining.complete(first.lsn)
    assert place(chaining, first.lsn) == (Place.LOG, None)
    assert place(chaining, Lsn.of(1, 7)) == (Place.LOG, None)
    assert place(chaining, second.lsn) == (Place.TAIL, second.chain[-1])


def test_nobody_can_tell_of_a_position_that_nobody_was_given() -> None:
    # P26
    chaining = active()
    lsn = chaining.position(1).lsn
    assert place(chaining, lsn.next) == (Place.NOWHERE, None)
    assert place(chaining, Lsn.of(9, 1)) == (Place.NOWHERE, None)


def test_a_log_without_chains_tells_by_itself() -> None:
    # P26
    chaining = active(CONFIG)
    chaining.append(b"body")
    assert place(chaining, Lsn.of(2, 1)) == (Place.LOG, None)
    assert place(chaining, Lsn.of(2, 2)) == (Place.NOWHERE, None)


def test_a_sequencer_that_is_outdated_does_not_answer() -> None:
    # P26, U4
    chaining = active()
    lsn = chaining.position(1).lsn
    assert locate(chaining, lsn, seen=2).status is AppendStatus.OK
    assert locate(chaining, lsn, seen=3).status is AppendStatus.NO_SEQUENCER
    assert chaining.wanted(ReadEpochStore)


def test_another_node_says_who_to_ask() -> None:
    # P26
    chaining = Chaining()
    assert isinstance(chaining.machine, ChainSequencer)
    chaining.feed(OwnerChanged(NodeId(4)))
    answer = locate(chaining, LSN)
    assert (answer.status, answer.node) == (AppendStatus.REDIRECTED, NodeId(4))
    chaining.feed(OwnerChanged(ME))
    assert locate(chaining, LSN).status is AppendStatus.NO_SEQUENCER
    assert chaining.wanted(ReadEpochStore)  # and becomes the sequencer (U1)


@pytest.mark.parametrize(
    ("at", "node", "step"),
    [
        (Place.NOWHERE, None, PointIs(PointStatus.BEYOND_TAIL)),
        (Place.LOG, None, ReadLog()),
        (Place.TAIL, NodeId(3), AskTail(NodeId(3))),
    ],
)
def test_the_sequencer_says_who_knows(at: Place, node: NodeId | None, step: object) -> None:
    # P26
    assert located(Located(log=LOG, lsn=LSN, status=AppendStatus.OK, place=at, node=node)) == step


def test_what_the_tail_has_is_final() -> None:
    # P27
    filled = record(flags=HOLE | int(RecordFlags.FILLED))
    assert copied(copy(record())) == PointIs(PointStatus.WRITTEN, record())
    assert copied(copy(filled)) == PointIs(PointStatus.HOLE)
    assert copied(copy()) == PointIs(PointStatus.UNWRITTEN)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        copy(failed=True),
        replace(copy(record()), is_sealed=True),
        replace(copy(), is_sealed=True),
        copy(record(flags=int(RecordFlags.CORRUPT))),
        copy(record(flags=int(RecordFlags.BY_RECOVERY))),
    ],
)
def test_a_tail_that_may_be_wrong_is_not_believed(answer: ChainCopy | None) -> None:
    # P27
    assert copied(answer) == ReadLog()
