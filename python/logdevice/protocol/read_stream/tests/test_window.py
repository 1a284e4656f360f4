"""The sliding window alone: order, second copies, positions and bytes, against deliberately naive models."""

from __future__ import annotations

import pytest

from logdevice.protocol.read_stream.senders import Credit, Sender
from logdevice.protocol.read_stream.tests.reading import hole, lsn, record
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.settings import ReadStreamSettings
from logdevice.types import LSN_MAX, Gap, GapType, Lsn, NodeId, Record

SIZE = record(1).size


def window(start: int = 42, end: int = LSN_MAX, **settings: float) -> SlidingWindow:
    return SlidingWindow(lsn(start), lsn(end), ReadStreamSettings(**settings))  # type: ignore[arg-type]


def take(collected: SlidingWindow) -> list[int]:
    """Hand out the records in a row at the head, as plain numbers."""
    return [item.lsn.esn for item in collected.take_run(collected.window_end) if isinstance(item, Record)]


def accept(collected: SlidingWindow, *positions: int, credit: Credit | None = None) -> Credit:
    used = credit or Credit(granted=1_000_000)
    used.received += SIZE * len(positions)
    collected.accept(tuple(record(position) for position in positions), used)
    return used


# ---- positions ----------------------------------------------------------------------------------


def test_the_window_of_the_documentation_slides_after_three_of_five() -> None:
    """W2: 42 to 46 were asked for; with 42 to 44 consumed, 45 to 49 are."""
    collected = window(window_lsns=5)
    assert collected.window_end == lsn(47)
    accept(collected, 42, 43, 44)
    take(collected)
    collected.consume(lsn(44))
    assert not collected.slide()
    collected.consume(lsn(45))
    assert collected.slide()
    assert collected.window_end == lsn(50)


def test_the_window_never_reaches_past_the_end_of_the_stream() -> None:
    """W1."""
    assert window(end=44, window_lsns=5).window_end == lsn(44)


def test_a_range_that_fits_one_window_never_slides() -> None:
    collected = window(end=44, window_lsns=5)
    accept(collected, 42, 43)
    take(collected)
    collected.consume(lsn(44))
    assert not collected.slide()


def test_the_window_ends_at_the_very_top_of_the_lsn_space() -> None:
    collected = SlidingWindow(Lsn(LSN_MAX - 3), LSN_MAX, ReadStreamSettings(window_lsns=5))
    assert collected.window_end == LSN_MAX
    collected.accept((record(Lsn(LSN_MAX - 1)),), Credit())
    assert collected.first_buffered() == LSN_MAX - 1


def test_delivered_but_not_consumed_does_not_move_the_window() -> None:
    collected = window(window_lsns=2)
    accept(collected, 42, 43)
    assert take(collected) == [42, 43]
    assert not collected.slide()


@pytest.mark.parametrize(("share", "slides_after"), [(0.0, 1), (0.5, 3), (1.0, 5)])
def test_the_share_says_how_much_must_be_consumed_before_the_window_slides(
    share: float, slides_after: int
) -> None:
    collected = window(window_lsns=5, window_slide_share=share)
    accept(collected, *range(42, 47))
    take(collected)
    for consumed in range(slides_after):
        collected.consume(lsn(42 + consumed))
        assert not collected.slide()
    collected.consume(lsn(42 + slides_after))
    assert collected.slide()


# ---- order --------------------------------------------------------------------------------------


def test_a_run_ends_at_the_first_missing_record() -> None:
    collected = window()
    accept(collected, 42, 43, 45)
    assert take(collected) == [42, 43]
    assert not collected.has_head
    assert collected.first_buffered() == lsn(45)


def test_a_run_ends_at_the_stop_it_was_given() -> None:
    collected = window()
    accept(collected, 42, 43, 44)
    assert len(collected.take_run(lsn(44))) == 2
    assert collected.head == lsn(44)


def test_a_run_ends_at_a_record_with_flags() -> None:
    collected = window()
    collected.accept((record(42), hole(43), record(44)), Credit())
    assert take(collected) == [42]
    assert collected.peek() == hole(43)


def test_a_run_ends_at_a_filtered_record() -> None:
    collected = window()
    collected.accept_filtered(lsn(42), lsn(43), Credit())
    assert take(collected) == []
    assert collected.has_head
    assert collected.peek() is None


def test_of_a_filtered_range_only_what_is_inside_the_window_is_kept() -> None:
    collected = window(window_lsns=2)
    collected.accept_filtered(lsn(40), lsn(1_000_000_000), Credit())
    batch: list[Record | Gap] = []
    for position in (43, 44):
        collected.hand_out_gap(GapType.FILTERED_OUT, lsn(position), batch)
    assert collected.first_buffered() is None
    assert batch == [Gap(GapType.FILTERED_OUT, lsn(42), lsn(44))]


def test_a_filtered_range_does_not_replace_a_record() -> None:
    collected = window()
    accept(collected, 42)
    collected.accept_filtered(lsn(42), lsn(43), Credit())
    assert take(collected) == [42]


def test_a_record_that_carries_flags_is_handed_out_alone() -> None:
    collected = window()
    accept(collected, 42, 43)
    assert collected.take_one() == [record(42)]
    assert collected.head == lsn(43)


def test_second_copies_and_old_and_future_records_are_dropped_and_counted() -> None:
    """W4: their bytes are given back at once."""
    collected = window(window_lsns=5)
    accept(collected, 42, 44)
    take(collected)
    late = accept(collected, 41, 42, 44, 47)
    assert collected.duplicates == 4
    assert late.outstanding == 0
    assert collected.first_buffered() == lsn(44)


# ---- gaps ---------------------------------------------------------------------------------------


def test_a_gap_takes_what_was_buffered_below_its_end_out_of_the_buffer() -> None:
    """This is quick for a gap of any width: the buffer is small, the LSN space is not."""
    for end in (44, 1_000_000_000):
        collected = window(window_lsns=5)
        credit = accept(collected, 43)
        accept(collected, 45, 46)
        collected.hand_out_gap(GapType.TRIM, lsn(end), [])
        assert credit.outstanding == 0
        assert collected.head == lsn(end)
        assert collected.first_buffered() == (lsn(45) if end == 44 else None)


def test_a_gap_ends_with_the_stream() -> None:
    batch: list[Record | Gap] = []
    window(end=50).hand_out_gap(GapType.TRIM, lsn(60), batch)
    assert batch == [Gap(GapType.TRIM, lsn(42), lsn(50))]


def test_neighbouring_gaps_of_one_type_become_one_and_others_do_not() -> None:
    collected = window()
    batch: list[Record | Gap] = []
    for kind, end in ((GapType.DATALOSS, 43), (GapType.DATALOSS, 44), (GapType.TRIM, 45)):
        collected.hand_out_gap(kind, lsn(end), batch)
    expected = [Gap(GapType.DATALOSS, lsn(42), lsn(44)), Gap(GapType.TRIM, lsn(44), lsn(45))]
    assert batch == expected
    collected.consume(lsn(44))
    assert collected.consumed == lsn(44)


def test_a_gap_that_was_delivered_before_is_not_changed_any_more() -> None:
    collected = window()
    collected.hand_out_gap(GapType.DATALOSS, lsn(43), [])
    collected.hand_out_gap(GapType.DATALOSS, lsn(44), [])
    collected.consume(lsn(43))
    assert collected.consumed == lsn(43)


# ---- what the application consumed --------------------------------------------------------------


def test_half_a_gap_cannot_be_consumed() -> None:
    collected = window()
    collected.hand_out_gap(GapType.TRIM, lsn(50), [])
    collected.consume(lsn(49))
    assert collected.consumed == lsn(42)
    collected.consume(lsn(50))
    assert collected.consumed == lsn(50)
    assert not collected.has_unconsumed


# ---- bytes --------------------------------------------------------------------------------------


def test_the_byte_window_is_split_evenly_over_the_read_set() -> None:
    """W5."""
    collected = window(window_bytes=1_000)
    collected.share_bytes(4)
    assert collected.first_grant == 250
    collected.share_bytes(0)
    assert collected.first_grant == 1_000


def test_every_sender_may_send_something_however_many_there_are() -> None:
    """W5: so the sender that has the head has room for it."""
    collected = window(window_bytes=2)
    collected.share_bytes(5)
    assert collected.first_grant == 1


def test_bytes_count_until_they_are_consumed() -> None:
    """W5."""
    collected = window(window_bytes=1_000)
    collected.share_bytes(1)
    credit = accept(collected, 42, credit=Credit(granted=1_000))
    take(collected)
    assert collected.grant(credit) == 1_000
    collected.consume(lsn(43))
    assert collected.grant(credit) == 1_000 + SIZE


def test_bytes_delivered_before_a_rewind_still_count_after_it() -> None:
    """W5."""
    collected = window(window_bytes=1_000)
    collected.share_bytes(1)
    sender = Sender(NodeId(1), credit=Credit(granted=1_000))
    accept(collected, 42, 44, credit=sender.credit)
    take(collected)
    collected.drop_buffered()
    sender.restart(head=collected.head, granted=collected.first_grant, window_end=collected.window_end)
    assert sender.credit.granted == 1_000 - SIZE
    collected.consume(lsn(43))
    assert collected.grant(sender.credit) == 1_000


def test_bytes_of_one_sender_that_starts_again_still_count() -> None:
    collected = window(window_bytes=1_000)
    collected.share_bytes(2)
    credit = accept(collected, 42, 43)
    collected.retire(credit)
    assert collected.first_grant == 500 - SIZE
    collected.hand_out_gap(GapType.TRIM, lsn(44), [])
    assert collected.first_grant == 500


def test_a_sender_hears_of_a_moved_window_and_of_enough_bytes() -> None:
    """W3."""
    collected = window(window_bytes=1_000, window_slide_share=0.5)
    collected.share_bytes(1)
    sender = Sender(NodeId(1), credit=Credit(granted=1_000), told_window_end=collected.window_end)
    assert not collected.wants_update(sender)
    sender.credit.returned = 499
    assert not collected.wants_update(sender)
    sender.credit.returned = 500
    assert collected.wants_update(sender)
    sender.credit.returned, sender.told_window_end = 0, lsn(43)
    assert collected.wants_update(sender)
