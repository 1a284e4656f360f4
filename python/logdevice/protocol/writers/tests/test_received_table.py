"""The received table: which appends are new, which are not, and which it cannot know."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.messages.write import Appended, AppendStatus
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.protocol.writers.tests.known_writers import find, progress
from logdevice.types import Lsn, WriterTag

W1, W2, W3 = 11, 22, 33
OK, DUPLICATE = AppendStatus.OK, AppendStatus.DUPLICATE


def tag(
    seq: int, *, writer: int = W1, incarnation: int = 1, stable: int | None = None, ordered: bool = True
) -> WriterTag:
    return WriterTag(writer, incarnation, seq, 1, seq if stable is None else stable, ordered)


def lsn(esn: int, epoch: int = 1) -> Lsn:
    return Lsn.of(epoch, esn)


def table(*seqs: int, writers_max: int = 10, window: int = 4) -> ReceivedTable:
    """A table of one writer, whose appends are at e1n1, e1n2, ..."""
    made = ReceivedTable(writers_max=writers_max, window=window)
    for number, seq in enumerate(seqs, start=1):
        made.note(tag(seq, stable=seqs[0]), lsn(number))
    return made


def test_an_append_that_is_sent_again_is_answered_with_its_first_position() -> None:
    """O1."""
    known = table(0, 1)
    expected = Appended(status=DUPLICATE, lsn=lsn(2), incarnation=1, expected=2)
    assert known.judge(tag(1, stable=0)) == expected
    assert known.judge(tag(2, stable=0)).status is OK
    assert find(known, W1, 1) == (True, lsn(2))
    assert find(known, W1, 2) == (False, Lsn(0))
    assert find(known, W2, 0) == (False, Lsn(0))


def test_an_old_duplicate_is_recognised_although_its_position_is_forgotten() -> None:
    """O1, O6."""
    known = ReceivedTable(writers_max=10, window=2)
    for seq in range(40):
        known.note(tag(seq, stable=max(0, seq - 1)), lsn(seq + 1))
    assert known.judge(tag(0)) == Appended(status=DUPLICATE, expected=40)
    assert find(known, W1, 0) == (True, Lsn(0))
    assert known.judge(tag(39, stable=38)).lsn == lsn(40)
    assert known.judge(tag(31, stable=30)).lsn == lsn(32)
    assert len(known.encode()) < 20 * 24 + 60


def test_an_ordered_writer_that_leaves_a_number_out_is_told_which() -> None:
    """O2."""
    known = table(0, 1)
    assert known.judge(tag(3, stable=1)) == Appended(status=AppendStatus.OUT_OF_ORDER, expected=2)
    assert known.judge(tag(3, stable=1, ordered=False)).status is OK
    assert ReceivedTable().judge(tag(2, stable=1)).expected == 1


def test_numbers_that_a_writer_calls_done_are_skipped_for_ever() -> None:
    """O3."""
    known = table(0)
    assert known.judge(tag(7)).status is OK
    known.note(tag(7), lsn(2))
    assert known.judge(tag(3, stable=3)) == Appended(status=DUPLICATE, expected=8)


def test_an_unordered_writer_may_fill_its_gaps_later() -> None:
    """O3."""
    known = ReceivedTable(writers_max=10, window=4)
    for number, seq in enumerate((2, 0), start=1):
        known.note(tag(seq, stable=0, ordered=False), lsn(number))
    assert known.judge(tag(2, stable=0, ordered=False)).lsn == lsn(1)
    assert known.judge(tag(1, stable=0, ordered=False)).status is OK
    assert progress(known, W1) == (1, 1)
    known.note(tag(1, stable=0, ordered=False), lsn(3))
    assert progress(known, W1) == (1, 3)
    assert progress(known, W2) is None


def test_an_earlier_process_of_a_writer_is_fenced_off() -> None:
    """O4: even for appends that are in the log; the newest process is not."""
    known = table(0)
    known.note(tag(1, incarnation=3), lsn(2))
    fenced = Appended(status=AppendStatus.FENCED, incarnation=3, expected=2)
    assert known.judge(tag(0, incarnation=2)) == fenced
    assert known.judge(tag(2, incarnation=2)) == fenced
    assert known.judge(tag(2, incarnation=3)).status is OK
    known.note(tag(2, incarnation=2), lsn(3))
    assert progress(known, W1) == (3, 3)


def test_the_writer_idle_longest_is_forgotten_and_then_only_newer_tags_are_accepted() -> None:
    """O5."""
    known = ReceivedTable(writers_max=2, window=4)
    for number, writer in enumerate((W1, W2, W1, W3), start=1):
        known.note(tag(number, writer=writer), lsn(number))
    assert (len(known), known.horizon) == (2, lsn(3))
    unknown = Appended(status=AppendStatus.UNKNOWN_WRITER, horizon=lsn(3))
    assert known.judge(tag(2, writer=W2), since=lsn(2)) == unknown
    assert known.judge(tag(2, writer=W2), since=lsn(3)).status is OK
    assert known.judge(tag(9)).status is OK


def test_a_writer_that_is_too_far_ahead_is_refused() -> None:
    """O6."""
    known = table(0)
    assert known.judge(tag(4, stable=1, ordered=False)).status is OK
    assert known.judge(tag(5, stable=1, ordered=False)).status is AppendStatus.OVERLOADED
    assert known.judge(tag(4, stable=0)).status is AppendStatus.OVERLOADED


def test_recovery_gives_up_records_after_a_gap() -> None:
    """O7: those of an ordered writer."""
    known = table(0)
    assert not known.replay(tag(2, stable=0), lsn(3))
    assert known.replay(tag(2, stable=0, ordered=False), lsn(3))
    assert known.replay(tag(1, stable=0), lsn(4))
    assert progress(known, W1) == (1, 3)
    assert not known.replay(tag(1, writer=W2, stable=0), lsn(5))
    assert known.replay(tag(1, writer=W2), lsn(6))


def test_a_record_of_a_forgotten_writer_after_a_gap_leaves_it_forgotten() -> None:
    """O8: it is not known whether the missing appends were ever in the log."""
    known = table(0)
    known.forget_all(lsn(5))
    assert (len(known), known.horizon) == (0, lsn(5))
    assert known.replay(tag(7, stable=6), lsn(8))
    assert (progress(known, W1), known.horizon) == (None, lsn(9))
    assert known.replay(tag(7), lsn(10))
    assert progress(known, W1) == (1, 8)


def test_a_number_that_a_later_process_used_again_shows_that_the_writer_was_forgotten() -> None:
    """O20: the older table with which a recovery begins still knows its earlier numbers."""
    known = table(0, 1, 2, 3)
    assert known.replay(tag(0, incarnation=2), lsn(9))
    assert (progress(known, W1), known.horizon) == ((2, 1), lsn(5))
    assert known.judge(tag(1, incarnation=2)).status is OK
    # A process that goes on with the numbers was not forgotten; neither was one whose records are known.
    assert known.replay(tag(1, incarnation=3), lsn(10))
    assert known.replay(tag(0, incarnation=2), lsn(9))
    assert progress(known, W1) == (3, 2)


def test_a_table_survives_its_encoding() -> None:
    """O11: a table that never knew anything is encoded as nothing."""
    assert ReceivedTable().encode() == b""
    assert ReceivedTable.decode(b"").is_blank
    known = table(0, 1)
    known.note(tag(5, writer=W2, incarnation=9), lsn(3))
    read = ReceivedTable.decode(known.encode(), writers_max=10, window=4)
    assert read.encode() == known.encode() == known.copy().encode()
    assert read.judge(tag(1)) == known.judge(tag(1))
    forgetful = ReceivedTable.decode(known.encode(), writers_max=1, window=4)
    assert (len(forgetful), forgetful.horizon) == (1, lsn(3))


def test_a_copy_of_a_table_is_independent() -> None:
    known = table(0)
    other = known.copy()
    other.note(tag(1), lsn(2))
    assert known.judge(tag(1)).status is OK


@given(st.integers(0, 10_000))
def test_no_append_is_called_new_twice(seed: int) -> None:
    """O1 to O6, compared with a plain set of everything that was ever taken."""
    rng = random.Random(seed)
    known = ReceivedTable(writers_max=rng.choice([1, 2, 10]), window=rng.choice([1, 3, 8]))
    taken: set[tuple[int, int]] = set()
    stable = dict.fromkeys((W1, W2, W3), 0)
    for number in range(1, 60):
        writer = rng.choice((W1, W2, W3))
        seq = stable[writer] + rng.randint(0, 4)
        made = tag(seq, writer=writer, stable=stable[writer], ordered=rng.random() < 0.5)
        if known.judge(made).status is OK:
            assert (writer, seq) not in taken
            taken.add((writer, seq))
            known.note(made, lsn(number))
            while (writer, stable[writer]) in taken and rng.random() < 0.7:
                stable[writer] += 1
        if rng.random() < 0.1:
            known = ReceivedTable.decode(known.encode(), writers_max=10, window=8)


def test_a_table_of_another_format_is_refused() -> None:
    data = bytearray(table(0).encode())
    data[0] = 9
    with pytest.raises(AssertionError, match="format 9"):
        ReceivedTable.decode(bytes(data))
