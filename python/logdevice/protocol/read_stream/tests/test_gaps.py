"""What silence proves: the judge over a read set, how far a gap reaches, and its type."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.quorum import Answer
from logdevice.protocol.read_stream.gaps import (
    GapJudge,
    all_passed,
    gap_end,
    gap_type,
    lingers,
    silent_end,
)
from logdevice.protocol.read_stream.senders import Sender
from logdevice.protocol.read_stream.tests.reading import lsn
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    GapType,
    Location,
    Lsn,
    LsnRange,
    NodeId,
    Replication,
    nodes,
)

HEAD = lsn(10)
FULLY = AuthoritativeStatus.FULLY_AUTHORITATIVE


def sender(
    node: int,
    next_lsn: int,
    *,
    thin: tuple[int, int] | None = None,
    status: AuthoritativeStatus = FULLY,
) -> Sender:
    region = [] if thin is None else [LsnRange(lsn(thin[0]), lsn(thin[1]))]
    return Sender(NodeId(node), next=lsn(next_lsn), thin=region, status=status)


def answer(*senders: Sender, copies: int = 3) -> Answer:
    """What exactly these senders prove about the head."""
    metadata = EpochMetadata(Epoch(1), nodes(s.node for s in senders), Replication.parse(str(copies)))
    return GapJudge({s.node: Location() for s in senders}, metadata).answer(senders, HEAD)


def five(*past: Sender) -> list[Sender]:
    """These senders, filled up to five with silent ones."""
    return [*past, *(sender(node, 10) for node in range(len(past) + 1, 6))]


# ---- the judge ----------------------------------------------------------------------------------


def test_three_of_five_past_the_head_are_an_f_majority_of_three_copies() -> None:
    assert answer(*five(sender(1, 11), sender(2, 11))) is Answer.NONE
    assert answer(*five(sender(1, 11), sender(2, 11), sender(3, 12))) is Answer.INCOMPLETE


def test_once_all_nodes_are_past_the_head_the_answer_is_complete() -> None:
    assert answer(*(sender(node, 11) for node in range(1, 6))) is Answer.COMPLETE


def test_a_sender_that_may_have_lost_the_head_does_not_vote() -> None:
    """G5."""
    thin = sender(3, 12, thin=(9, 12))
    assert answer(*five(sender(1, 11), sender(2, 11), thin)) is Answer.NONE


def test_a_sender_that_lost_something_elsewhere_votes() -> None:
    """G5: only its silence about the lost range proves nothing."""
    thin = sender(3, 20, thin=(11, 12))
    assert answer(*five(sender(1, 11), sender(2, 11), thin)) is Answer.INCOMPLETE


def test_all_nodes_voted_and_an_f_majority_cannot_have_lost_the_head() -> None:
    senders = [sender(node, 11) for node in (1, 2, 3)]
    thin = [sender(node, 11, thin=(10, 11)) for node in (4, 5)]
    assert answer(*senders, *thin) is Answer.COMPLETE


def test_all_nodes_voted_and_too_many_may_have_lost_the_head() -> None:
    """Nothing is proven, but waiting cannot bring the head back."""
    senders = [sender(node, 11) for node in (1, 2)]
    thin = [sender(node, 11, thin=(10, 11)) for node in (3, 4, 5)]
    assert answer(*senders, *thin) is Answer.NON_AUTHORITATIVE


def test_a_node_that_lost_its_data_is_not_waited_for() -> None:
    lost = [sender(node, 10, status=AuthoritativeStatus.UNDERREPLICATION) for node in (3, 4, 5)]
    assert answer(sender(1, 11), sender(2, 11), *lost) is Answer.NON_AUTHORITATIVE


def test_a_judge_can_be_asked_again_when_the_head_has_moved() -> None:
    senders = five(sender(1, 11), sender(2, 11), sender(3, 11))
    metadata = EpochMetadata(Epoch(1), nodes(range(1, 6)), Replication.parse("3"))
    judge = GapJudge({s.node: Location() for s in senders}, metadata)
    assert judge.answer(senders, HEAD) is Answer.INCOMPLETE
    assert judge.answer(senders, lsn(11)) is Answer.NONE


# ---- how far ------------------------------------------------------------------------------------


def test_a_gap_ends_at_the_first_record_in_the_buffer() -> None:
    assert gap_end([sender(1, 20), sender(2, 20)], HEAD, lsn(13)) == lsn(13)


def test_a_gap_ends_where_the_first_promise_ends() -> None:
    """G3: a gap is cut where any promise ends."""
    assert gap_end([sender(1, 20), sender(2, 14)], HEAD, None) == lsn(14)


def test_a_sender_that_is_not_past_the_head_does_not_shorten_the_gap() -> None:
    assert gap_end([sender(1, 20), sender(2, 10)], HEAD, None) == lsn(20)


def test_a_gap_ends_where_a_thin_region_begins_or_ends() -> None:
    assert gap_end([sender(1, 20, thin=(12, 15))], HEAD, None) == lsn(12)
    assert gap_end([sender(1, 20, thin=(9, 15))], HEAD, None) == lsn(15)


def test_if_no_node_is_past_the_head_the_gap_has_no_end() -> None:
    assert gap_end([sender(1, 10)], HEAD, None) is None
    assert gap_end([], HEAD, None) is None


POSITIONS = st.integers(1, 30)


@st.composite
def any_sender(draw: st.DrawFn, node: int) -> Sender:
    start, end = sorted((draw(POSITIONS), draw(POSITIONS)))
    thin = (start, end) if start < end and draw(st.booleans()) else None
    status = draw(st.sampled_from(AuthoritativeStatus))
    return sender(node, draw(POSITIONS), thin=thin, status=status)


READ_SETS = st.tuples(*(any_sender(node) for node in range(1, 6)))


@given(READ_SETS, POSITIONS)
def test_every_lsn_of_a_gap_gets_the_votes_that_the_head_got(
    senders: tuple[Sender, ...], position: int
) -> None:
    """G3: what was proven about the head is proven about the whole gap."""
    head = lsn(position)
    end = gap_end(senders, head, None)
    for inside in range(head, head if end is None else end):
        for voter in senders:
            assert voter.is_past(inside) == voter.is_past(head)
            assert voter.is_thin_at(inside) == voter.is_thin_at(head)


@given(READ_SETS, st.integers(1, 5))
def test_a_proof_leaves_no_room_for_a_copyset_that_did_not_vote(
    senders: tuple[Sender, ...], copies: int
) -> None:
    """G2: the nodes that could have the head and did not vote cannot hold a whole copyset."""
    empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
    waiting = [
        s for s in senders if not s.is_past(HEAD) and s.status in (FULLY, AuthoritativeStatus.UNAVAILABLE)
    ]
    lost = AuthoritativeStatus.UNDERREPLICATION
    unsure = [
        s
        for s in senders
        if s.status is lost or (s.status is not empty and (s in waiting or s.is_thin_at(HEAD)))
    ]
    proves = answer(*senders, copies=copies)
    if proves is Answer.INCOMPLETE:
        assert len(unsure) < copies
        assert waiting
    elif proves is Answer.COMPLETE:
        assert len(unsure) < copies
        assert not waiting
    elif proves is Answer.NON_AUTHORITATIVE:
        assert not waiting
    else:
        assert waiting


# ---- no node is left ----------------------------------------------------------------------------


def test_without_nodes_a_gap_ends_where_newer_metadata_begins() -> None:
    """G8: the gap reaches to the first epoch of the newer entry."""
    end = silent_end(head=HEAD, known_until=3, is_bounded=True, released_end=0)
    assert end == Lsn.of(4, 1)


def test_without_nodes_and_newer_metadata_a_gap_ends_at_the_release() -> None:
    """G8: the gap reaches as far as something was released."""
    assert silent_end(head=HEAD, known_until=3, is_bounded=False, released_end=lsn(12)) == lsn(12)
    assert silent_end(head=HEAD, known_until=3, is_bounded=False, released_end=HEAD) is None


# ---- the type of a gap --------------------------------------------------------------------------


def named(*, end: Lsn, trim_end: int = 0, bridges: bool = True) -> GapType:
    metadata = EpochMetadata(Epoch(1), nodes([1]), Replication.parse("1"), bridges)
    return gap_type(head=HEAD, end=end, metadata=metadata, trim_end=trim_end)


def test_a_gap_inside_an_epoch_is_a_loss() -> None:
    assert named(end=lsn(12)) is GapType.DATALOSS


def test_a_gap_below_the_trim_point_is_trimmed() -> None:
    assert named(end=lsn(12), trim_end=lsn(12)) is GapType.TRIM
    assert named(end=lsn(13), trim_end=lsn(12)) is GapType.DATALOSS


def test_an_epoch_that_ends_without_its_bridge_record_has_lost_it() -> None:
    """G6."""
    assert named(end=Lsn.of(2, 1)) is GapType.DATALOSS


def test_in_a_log_without_bridges_silence_ends_an_epoch() -> None:
    """G6."""
    assert named(end=Lsn.of(2, 1), bridges=False) is GapType.BRIDGE
    assert named(end=lsn(12), bridges=False) is GapType.DATALOSS


# ---- patience -----------------------------------------------------------------------------------


def test_a_silent_node_is_worth_waiting_for_until_its_grace_is_used_up() -> None:
    """G4."""
    silent = sender(1, 10)
    assert lingers([silent], HEAD, limit=2)
    silent.grace_counter = 2
    assert lingers([silent], HEAD, limit=2)
    silent.grace_counter = 3
    assert not lingers([silent], HEAD, limit=2)


def test_without_a_limit_a_silent_node_is_always_worth_waiting_for() -> None:
    """G4."""
    silent = sender(1, 10)
    silent.grace_counter = 1_000
    assert lingers([silent], HEAD, limit=-1)


def test_a_node_that_answered_or_has_no_data_is_not_worth_waiting_for() -> None:
    assert not lingers([sender(1, 11)], HEAD, limit=2)
    for status in list(AuthoritativeStatus)[1:]:
        assert not lingers([sender(1, 10, status=status)], HEAD, limit=2)


def test_all_passed_means_past_the_head_or_filtered_out() -> None:
    """R4."""
    senders = [sender(1, 11), sender(2, 10)]
    assert not all_passed(senders, (), HEAD)
    assert all_passed(senders, (NodeId(2),), HEAD)
