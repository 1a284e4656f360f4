"""The digest: what each LSN at the end of an epoch becomes."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import zip_longest

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.recovery.digest import Decision, Decisions, Digest
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.protocol.writers.tests.known_writers import find, progress
from logdevice.types import LogPoint, Lsn, NodeId, Record, RecordFlags, WriterTag, epoch_start

HOLE = int(RecordFlags.HOLE)
BRIDGE = int(RecordFlags.BRIDGE)
BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
CORRUPT = int(RecordFlags.CORRUPT)
START = epoch_start(5)


def copy(esn: int, *, wave: int = 1, flags: int = 0) -> Record:
    is_hole = bool(flags & HOLE)
    return Record(
        Lsn.of(5, esn),
        timestamp_ms=0 if is_hole else esn * 10,
        copyset=(),
        body=b"" if is_hole else b"%d" % esn,
        flags=flags,
        wave=wave,
        entry_end=esn * 100,
        byte_end=esn * 1000,
    )


def plug(esn: int, seal: int) -> Record:
    return copy(esn, wave=seal, flags=HOLE | BY_RECOVERY)


def bridge(esn: int, seal: int) -> Record:
    return copy(esn, wave=seal, flags=HOLE | BRIDGE | BY_RECOVERY)


def kept(esn: int, seal: int) -> Record:
    return copy(esn, wave=seal, flags=BY_RECOVERY)


def decide(
    *copies: tuple[int, Record],
    start: int = 1,
    authoritative: bool = True,
    before: LogPoint | None = None,
    writers: ReceivedTable | None = None,
) -> Decisions:
    digest = Digest()
    for node, record in copies:
        digest.add(NodeId(node), record)
    return digest.decide(
        Lsn.of(5, start),
        before or LogPoint(),
        ReceivedTable() if writers is None else writers,
        is_authoritative=authoritative,
    )


def tagged(esn: int, seq: int, *, stable: int = 0, ordered: bool = True, flags: int = 0) -> Record:
    return replace(copy(esn, flags=flags), tag=WriterTag(5, 1, seq, 1, stable, ordered))


def writers(*seqs: int) -> ReceivedTable:
    table = ReceivedTable()
    for seq in seqs:
        table.note(WriterTag(5, 1, seq, 1, 0), Lsn.of(4, seq + 1))
    return table


def drawn(decisions: Decisions) -> str:
    """One letter per decided LSN: r record, h hole, b bridge; dots where nothing was decided."""
    letters = {}
    for decision in decisions.decisions:
        flags = decision.record.flags
        assert flags & BY_RECOVERY
        letters[decision.record.lsn.esn] = "b" if flags & BRIDGE else "h" if flags & HOLE else "r"
    return "".join(letters.get(esn, ".") for esn in range(1, max(letters, default=0) + 1))


def test_an_empty_epoch_gets_a_bridge_at_its_first_number() -> None:
    """V9."""
    decisions = decide()
    assert drawn(decisions) == "b"
    assert decisions.end == Lsn.of(5, 2)


def test_the_bridge_follows_the_last_record() -> None:
    """V9: or what is known to be good, if there is nothing above."""
    assert drawn(decide((1, copy(1)), (2, copy(2)))) == "rrb"
    assert drawn(decide(start=4)) == "...b"


def test_a_record_on_a_single_node_is_kept() -> None:
    """V6: it may have been acknowledged by nodes that are away."""
    decisions = decide((3, copy(1)))
    assert decisions.decisions[0] == Decision(
        Record(
            Lsn.of(5, 1),
            timestamp_ms=10,
            copyset=(),
            body=b"1",
            flags=BY_RECOVERY,
            wave=1,
            entry_end=100,
            byte_end=1000,
        ),
        (NodeId(3),),
        (),
    )


def test_an_empty_lsn_becomes_a_hole() -> None:
    """V7."""
    assert drawn(decide((1, copy(2)), (2, copy(4)))) == "hrhrb"


def test_good_records_are_left_as_they_are() -> None:
    """V5."""
    assert drawn(decide((1, copy(2)), (2, copy(4)), start=4)) == "...rb"


def test_recovery_takes_precedence_then_the_higher_seal_or_wave() -> None:
    """V6: in whatever order the copies come."""
    order = [copy(1, wave=1), copy(1, wave=7), plug(1, 5), kept(1, 6), plug(1, 8)]
    for lower in range(5):
        for higher in range(lower + 1, 5):
            expected = "b" if order[higher].flags & HOLE else "rb"
            for pair in ((lower, higher), (higher, lower)):
                decisions = decide(*((index, order[index]) for index in pair))
                assert drawn(decisions) == expected


def test_nodes_that_hold_something_else_are_named() -> None:
    """V13: their copies must be overwritten."""
    decisions = decide((1, copy(1)), (2, plug(1, 5)), (3, plug(1, 4)), (4, copy(2)))
    assert decisions.decisions[0].holders == (NodeId(2), NodeId(3))
    assert decisions.decisions[0].conflicting == (NodeId(1),)
    assert drawn(decisions) == "hrb"


def test_a_bridge_ends_the_epoch_for_all_records_of_lower_precedence() -> None:
    """V8: records that the bridge's recovery did not see were never acknowledged."""
    assert drawn(decide((1, copy(1)), (1, bridge(2, 6)), (2, copy(3)), (2, kept(4, 5)))) == "rbhh"


def test_a_bridge_gives_way_to_records_of_a_later_recovery() -> None:
    """V8: that recovery did not see the bridge, because it was not stored well enough."""
    assert drawn(decide((1, bridge(2, 6)), (2, kept(1, 7)), (2, kept(3, 7)))) == "rhrb"


def test_a_bridge_that_was_cut_off_by_a_stronger_one_cuts_nothing() -> None:
    """V8: the recovery of the weaker bridge did not see everything."""
    assert drawn(decide((1, bridge(1, 6)), (2, bridge(2, 5)), (3, kept(3, 6)))) == "hhrb"


def test_two_bridges_of_attempts_that_failed_become_one() -> None:
    """V8, V9."""
    assert drawn(decide((1, copy(1)), (1, bridge(2, 6)), (2, bridge(4, 5)))) == "rb.h"


def test_without_authority_nothing_is_plugged_and_no_bridge_is_put() -> None:
    """V19: readers must see that something may be lost."""
    decisions = decide((1, copy(2)), (2, copy(4)), authoritative=False)
    assert drawn(decisions) == ".r.r"
    assert decide(authoritative=False).end == START


def test_without_authority_earlier_decisions_are_kept() -> None:
    """V19, V8: holes and bridges of an earlier recovery; a bridge before records becomes a hole."""
    assert drawn(decide((1, plug(1, 6)), (1, bridge(3, 6)), authoritative=False)) == "h.b"
    assert drawn(decide((1, bridge(1, 6)), (2, kept(2, 7)), authoritative=False)) == "hr"


def test_a_copy_that_cannot_be_read_is_never_plugged() -> None:
    """V10: a record was there; the bridge comes after it."""
    damaged = copy(2, flags=CORRUPT)
    assert drawn(decide((1, copy(1)), (2, damaged))) == "r.b"
    assert drawn(decide((1, damaged))) == "h.b"
    assert drawn(decide((1, damaged), start=3)) == "..b"


def test_a_copy_that_cannot_be_read_does_not_matter_if_another_one_can() -> None:
    """V10."""
    assert drawn(decide((1, copy(1, flags=CORRUPT)), (2, copy(1)))) == "rb"


def test_times_and_counters_do_not_change_over_holes() -> None:
    """V11."""
    decisions = decide((1, copy(2)), (2, copy(4)))
    positions = [
        (decision.record.timestamp_ms, decision.record.entry_end) for decision in decisions.decisions
    ]
    assert positions == [(0, 0), (20, 200), (20, 200), (40, 400), (40, 400)]
    assert decisions.tail == LogPoint(lsn=Lsn.of(5, 5), timestamp_ms=40, entry_end=400, byte_end=4000)


def test_without_later_records_the_counters_come_from_the_last_good_record() -> None:
    """V11: or what is known from before the epoch."""
    decisions = decide((1, copy(3)), start=4)
    assert decisions.decisions[0].record.entry_end == 300
    before = LogPoint(lsn=Lsn.of(4, 9), timestamp_ms=5, entry_end=50, byte_end=500)
    decisions = decide(before=before)
    assert decisions.decisions[0].record.entry_end == 50
    assert decisions.tail == before


def again(
    decided: Decisions, *copies: tuple[int, Record], seal: int = 7, authoritative: bool = True
) -> Decisions:
    """Another attempt under the same seal."""
    digest = Digest(decided, seal)
    for node, record in copies:
        digest.add(NodeId(node), record)
    return digest.decide(START, LogPoint(), ReceivedTable(), is_authoritative=authoritative)


def test_another_attempt_keeps_decisions_that_no_node_reports() -> None:
    """V20: and writes them like records that no node has."""
    first = decide((1, copy(1)), (1, copy(3)))
    second = again(first)
    assert drawn(second) == drawn(first) == "rhrb"
    assert bytes(second.decisions[2].record.body) == b"3"
    assert all(each.holders == each.conflicting == () for each in second.decisions)
    assert again(first, (2, copy(1))).decisions[0].holders == (NodeId(2),)
    assert drawn(again(second)) == drawn(first)


def test_another_attempt_adds_nothing_to_earlier_decisions() -> None:
    """V20: records that the first attempt did not see were not acknowledged."""
    first = decide((1, copy(2)))
    assert drawn(again(first, (2, copy(1)), (2, copy(4)))) == "hrbh"


def test_another_attempt_decides_lsns_that_were_left_open() -> None:
    """V20, V19, V10: left open without authority, or because a copy could not be read."""
    without = decide((1, copy(2)), authoritative=False)
    assert drawn(again(without, (2, copy(3)))) == "hrrb"
    assert drawn(again(without, authoritative=False)) == ".r"
    damaged = decide((1, copy(1)), (2, copy(2, flags=CORRUPT)))
    assert drawn(again(damaged)) == drawn(damaged) == "r.b"
    assert drawn(again(damaged, (3, copy(2)))) == "rrb"


COPIES = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.one_of(
            st.builds(copy, st.integers(1, 6), wave=st.integers(1, 3)),
            st.builds(plug, st.integers(1, 6), st.integers(5, 7)),
            st.builds(bridge, st.integers(1, 6), st.integers(5, 7)),
            st.builds(kept, st.integers(1, 6), st.integers(5, 7)),
        ),
    ),
    max_size=12,
)


@given(COPIES, st.integers(0, 99), st.booleans())
def test_the_order_in_which_copies_come_does_not_matter(
    copies: list[tuple[int, Record]], seed: int, authoritative: bool
) -> None:
    """V6: so that recoveries that see the same copies decide the same."""
    unique = list({(node, record.lsn): (node, record) for node, record in copies}.values())
    shuffled = unique.copy()
    random.Random(seed).shuffle(shuffled)
    first = decide(*unique, authoritative=authoritative)
    second = decide(*shuffled, authoritative=authoritative)
    assert drawn(first) == drawn(second)


@given(COPIES)
def test_a_recovery_that_follows_a_complete_one_decides_the_same(copies: list[tuple[int, Record]]) -> None:
    """V6 to V9: decisions that were written to all nodes that took part are found again."""
    unique = list({(node, record.lsn): (node, record) for node, record in copies}.values())
    first = decide(*unique)
    written = [
        (node, Record(d.record.lsn, 0, (), d.record.body, d.record.flags, wave=9))
        for d in first.decisions
        for node in range(3)
    ]
    assert drawn(decide(*written)) == drawn(first)


@given(COPIES, COPIES)
def test_every_attempt_under_a_seal_decides_the_same(
    copies: list[tuple[int, Record]], others: list[tuple[int, Record]]
) -> None:
    """V20: whatever other copies are reported, as long as no other recovery has the same seal."""
    first = drawn(decide(*copies))
    second = drawn(again(decide(*copies), *others, seal=9))
    for before, after in zip_longest(first, second, fillvalue="."):
        assert after == before or (before, after) == (".", "h"), (first, second)


def test_a_record_after_a_gap_of_its_writer_becomes_a_hole() -> None:
    """O7: it cannot have been acknowledged, and its writer will send it again in order."""
    known = writers(0)
    assert drawn(decide((1, tagged(1, 1)), (1, tagged(2, 2)), writers=known)) == "rrb"
    decisions = decide((1, tagged(1, 1)), (1, tagged(2, 3)), (2, copy(3)), (1, tagged(4, 2)), writers=known)
    assert drawn(decisions) == "rhrrb"
    assert decisions.decisions[1].conflicting == (NodeId(1),)
    assert drawn(decide((1, tagged(1, 3)), writers=known)) == "b"
    assert progress(known, 5) == (1, 1)  # a second call decides the same


def test_records_of_an_unordered_writer_stay_after_a_gap() -> None:
    """O7."""
    decisions = decide((1, tagged(1, 3, ordered=False)), writers=writers(0))
    assert drawn(decisions) == "rb"
    assert find(decisions.writers, 5, 3) == (True, Lsn.of(5, 1))
    assert progress(decisions.writers, 5) == (1, 1)


def test_the_bridge_carries_the_received_table_of_all_records_that_stay() -> None:
    """O11: also of good records; not of records that became holes."""
    copies = [(1, tagged(1, 1)), (1, tagged(2, 2)), (1, tagged(3, 3)), (2, plug(3, 4)), (1, tagged(4, 4))]
    decisions = decide(*copies, start=3, writers=writers(0))
    assert drawn(decisions) == "..bh"
    body = decisions.decisions[0].record.body
    assert bytes(body) == decisions.writers.encode()
    assert progress(ReceivedTable.decode(body), 5) == (1, 3)
    assert decide((1, copy(1))).decisions[-1].record.body == b""


def test_a_bridge_with_another_table_is_replaced() -> None:
    """O11: a bridge with another table conflicts."""
    other = replace(bridge(2, 4), body=b"other table")
    same = replace(bridge(2, 4), body=decide((1, tagged(1, 1)), writers=writers(0)).writers.encode())
    decisions = decide((1, tagged(1, 1)), (1, other), (2, same), writers=writers(0))
    assert drawn(decisions) == "rb"
    assert (decisions.decisions[1].holders, decisions.decisions[1].conflicting) == (
        (NodeId(2),),
        (NodeId(1),),
    )


def test_the_tag_of_a_copy_whose_body_cannot_be_read_still_counts() -> None:
    """O11, V10: headers have a checksum of their own."""
    unreadable = tagged(1, 1, flags=CORRUPT)
    decisions = decide((1, unreadable), (1, tagged(2, 2)), writers=writers(0))
    assert drawn(decisions) == ".rb"
    assert progress(decisions.writers, 5) == (1, 3)


def test_without_authority_every_writer_is_forgotten_and_nothing_is_given_up() -> None:
    """O8."""
    decisions = decide((1, tagged(1, 3)), writers=writers(0), authoritative=False)
    assert drawn(decisions) == "r"
    assert (len(decisions.writers), decisions.writers.horizon) == (0, Lsn.of(5, 2))
    nothing = decide(start=4, writers=writers(0), authoritative=False)
    assert nothing.writers.horizon == Lsn.of(5, 4)
