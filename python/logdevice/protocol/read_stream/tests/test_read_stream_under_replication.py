"""Nodes that have lost records or cannot read them: there, their silence proves nothing.

Rules D1, D5 and G5 of read_path.md; for the loss itself, G2, G6 and G7.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import GapReason, ReadMode, Window
from logdevice.protocol.read_stream.tests.reading import Reading, reading, record, rewound
from logdevice.types import Record, RecordFlags

SCD, ALL_SEND_ALL = ReadMode.SCD, ReadMode.ALL_SEND_ALL
THIN = GapReason.UNDER_REPLICATED


def corrupt(position: int) -> Record:
    return record(position, flags=RecordFlags.CORRUPT)


# ---- single-copy delivery -----------------------------------------------------------------------


def test_a_node_that_may_have_lost_the_head_is_left_alone_while_others_may_send_it() -> None:
    """D5: this alone causes no rewind."""
    bench = reading()
    bench.gap(1, 1, 5, THIN)
    bench.gap([2, 3, 4], 1, 5)
    bench.wait(5_000)
    assert (bench.version, bench.mode) == (1, SCD)
    bench.records(5, 1)
    assert bench.text == ["n1"]


def test_once_all_nodes_are_past_the_head_one_that_may_have_lost_it_is_listed() -> None:
    """D5: the next node of the copyset must send it; single-copy delivery goes on."""
    bench = reading()
    bench.gap(1, 1, 5, THIN)
    bench.gap([2, 3, 4, 5], 1, 5)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((1,), SCD)
    assert bench.health.rewind_reasons == {"UNDER_REPLICATED": 1}


def test_all_nodes_that_may_have_lost_the_head_are_listed_together() -> None:
    """D5"""
    bench = reading()
    bench.gap([1, 2], 1, 5, THIN)
    bench.gap([3, 4, 5], 1, 5)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((1, 2), SCD)


def test_if_listing_them_does_not_help_the_reader_goes_to_all_send_all() -> None:
    """D5, then R4"""
    bench = reading()
    for _ in range(2):
        bench.gap(1, 1, 5, THIN)
        bench.gap([2, 3, 4, 5], 1, 5)
        rewound(bench)
    assert (bench.mode, bench.version) == (ALL_SEND_ALL, 3)


def test_a_clean_gap_before_a_lost_region_still_excludes_the_node() -> None:
    """D5: N1 certainly has nothing at 1, but it may have lost 2."""
    bench = reading()
    bench.gap(1, 1, 2)
    bench.gap(1, 2, 5, THIN)
    bench.records(2, 1)
    bench.gap([2, 3, 4, 5], 2, 5)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((1,), SCD)


def test_a_lost_region_after_the_head_excludes_no_node() -> None:
    """D5: all nodes can answer for 1, so none is listed."""
    bench = reading()
    bench.gap(1, 1, 2)
    bench.gap(1, 2, 5, THIN)
    bench.gap([2, 3, 4, 5], 1, 5)
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL


def test_a_record_marked_under_replicated_casts_doubt_on_the_lsns_before_it() -> None:
    """D5: the node may have lost 1 and 2."""
    bench = reading()
    bench.records(1, 3, under_replicated=True)
    bench.gap([2, 3, 4, 5], 1, 4)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((1,), SCD)


def test_a_record_marked_under_replicated_is_delivered_like_any_other() -> None:
    bench = reading()
    bench.records(1, 1, under_replicated=True)
    assert bench.text == ["n1"]


def test_what_a_node_lost_is_forgotten_once_the_head_is_past_it() -> None:
    """G5: N1 lost something up to 2; for 3 its vote counts again."""
    bench = reading()
    bench.records(1, 2, under_replicated=True)
    bench.records(2, 1)
    bench.gap([1, 2, 3, 4, 5], 3, 4)
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL


def test_a_node_leaves_the_list_at_a_slide_once_it_sends_clean_records() -> None:
    """D5, D7"""
    bench = reading(window_lsns=4)
    bench.gap(1, 1, 2, THIN)
    bench.gap([2, 3, 4, 5], 1, 2)
    rewound(bench)
    bench.gap(1, 1, 2, THIN)
    bench.records(2, 1)
    bench.records(1, 2, 3, 4)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((), SCD)


def test_a_lost_region_that_reaches_past_the_window_keeps_the_node_on_the_list() -> None:
    """D5, D7"""
    bench = reading(window_lsns=4)
    bench.gap(1, 1, 2, THIN)
    bench.gap([2, 3, 4, 5], 1, 2)
    rewound(bench)
    bench.records(1, 2)
    bench.gap(1, 3, 200, THIN)
    bench.records(2, 1, 3, 4)
    bench.wait(1_000)
    assert (bench.version, bench.known_down) == (2, (1,))


# ---- all-send-all -------------------------------------------------------------------------------


def lose(bench: Reading, *, thin: list[int], clean: list[int], end: int = 2) -> None:
    """The nodes of `thin` may have lost 1, those of `clean` know that they do not have it."""
    bench.gap(thin, 1, end, THIN)
    bench.gap(clean, 1, end)


def test_a_node_that_may_have_lost_the_head_does_not_count_for_the_majority() -> None:
    """G5: N1 to N3 would be enough of five with three copies; N1 proves nothing."""
    bench = reading(scd=False)
    lose(bench, thin=[1], clean=[2, 3])
    bench.wait(60_000)
    assert (bench.delivered, bench.version) == ([], 1)


def test_enough_others_prove_the_loss_without_it() -> None:
    """G2, G5"""
    bench = reading(scd=False)
    lose(bench, thin=[1], clean=[2, 3, 4])
    bench.wait(100)
    rewound(bench)
    lose(bench, thin=[1], clean=[2, 3, 4])
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n2"]


def test_once_all_have_answered_there_is_no_wait_though_many_may_have_lost_it() -> None:
    """G5: three of five cannot know. Waiting brings nothing back, so the loss is reported at once."""
    bench = reading(scd=False)
    lose(bench, thin=[1, 2, 3], clean=[4, 5])
    rewound(bench)
    lose(bench, thin=[1, 2, 3], clean=[4, 5])
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_majority_with_the_rest_in_doubt_needs_no_grace_period() -> None:
    """G5: all nodes have answered."""
    bench = reading(scd=False)
    lose(bench, thin=[1], clean=[2, 3, 4, 5])
    rewound(bench)
    lose(bench, thin=[1], clean=[2, 3, 4, 5])
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_record_marked_under_replicated_proves_nothing_about_the_lsns_before_it() -> None:
    """G5"""
    bench = reading(scd=False)
    bench.records(1, 2, under_replicated=True)
    bench.gap([2, 3], 1, 3)
    bench.wait(15_000)
    assert bench.delivered == []
    bench.records(4, 1)
    assert bench.text == ["n1", "n2"]


def test_a_gap_ends_where_a_node_may_have_lost_records() -> None:
    """G3: N1 can answer for 1 like the others; it may have lost 2 and 3."""
    bench = reading(scd=False)

    def answer() -> None:
        bench.gap(1, 1, 2)
        bench.gap(1, 2, 4, THIN)
        bench.gap([2, 3], 1, 4)
        bench.wait(100)

    answer()
    rewound(bench)
    answer()
    assert bench.text == ["DATALOSS n1-n2"]


# ---- checksums ----------------------------------------------------------------------------------


def test_another_copy_takes_the_place_of_one_with_a_bad_checksum() -> None:
    """D1"""
    bench = reading()
    bench.records(1, corrupt(1))
    rewound(bench)
    assert bench.known_down == (1,)
    bench.records(2, 1)
    assert bench.text == ["n1"]


def test_good_records_of_the_same_batch_are_kept_in_all_send_all() -> None:
    """D1"""
    bench = reading(scd=False)
    bench.records(1, corrupt(1), 2)
    bench.records(2, 1)
    assert bench.text == ["n1", "n2"]
    assert bench.version == 1


def test_a_second_copy_with_a_bad_checksum_is_no_reason_to_doubt_the_first() -> None:
    """D1, W4"""
    bench = reading(scd=False)
    bench.records(1, 1)
    bench.records(2, corrupt(1))
    assert bench.text == ["n1"]


def test_in_all_send_all_a_bad_copy_causes_no_rewind() -> None:
    """D1: all send what they have anyway."""
    bench = reading(scd=False)
    bench.records(1, corrupt(1))
    bench.wait(1_000)
    assert bench.version == 1


def test_if_every_copy_is_bad_the_record_is_lost_and_reading_goes_on() -> None:
    """D1, G5, G6: an LSN that no node can read is data loss, never a hole."""
    bench = reading(scd=False, nodes=3)
    for node in (1, 2, 3):
        bench.records(node, corrupt(1), 2)
    rewound(bench)
    for node in (1, 2, 3):
        bench.records(node, corrupt(1), 2)
    assert bench.text == ["DATALOSS n1-n2", "n2"]


def test_if_every_copy_is_bad_single_copy_delivery_asks_one_after_the_other() -> None:
    """D1: each bad copy lists its holder; when all are listed, all-send-all decides."""
    bench = reading(nodes=3)
    listed = []
    for node in (1, 2, 3):
        bench.records(node, corrupt(1))
        rewound(bench)
        listed.append((bench.mode, bench.known_down))
    assert listed == [(SCD, (1,)), (SCD, (1, 2)), (ALL_SEND_ALL, ())]
    for node in (1, 2, 3):
        bench.records(node, corrupt(1))
    rewound(bench)
    for node in (1, 2, 3):
        bench.records(node, corrupt(1))
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_listed_node_that_goes_on_sending_bad_copies_causes_no_further_rewinds() -> None:
    """D1"""
    bench = reading()
    bench.records(1, corrupt(1))
    rewound(bench)
    bench.records(1, corrupt(1), corrupt(2), corrupt(3))
    bench.wait(1_000)
    assert bench.version == 2


def test_the_bytes_of_a_bad_copy_are_given_back() -> None:
    """W4: what is thrown away must not use up the byte window for good."""
    bench = reading(scd=False, window_bytes=5 * 65)
    bench.records(1, corrupt(1))
    (window,) = bench.told(Window)
    assert (window.node, window.message.window_bytes) == (1, 2 * 65)
