"""Trimmed records: one gap once any node reports the trim, or a gap only where no node has a record."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.read import GapReason, GetEpochMetadata, ReadMode
from logdevice.protocol.read_stream.events import Consumed
from logdevice.protocol.read_stream.tests.reading import Reading, bridge, lsn
from logdevice.types import AuthoritativeStatus, Lsn, MetadataSource

ALL = (1, 2, 3, 4, 5)
TRIM = GapReason.TRIM


def reading(*, scd: bool = False, **arguments: object) -> Reading:
    bench = Reading(scd=scd, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


# ---- skipping -----------------------------------------------------------------------------------


def test_the_first_report_of_a_trim_passes_the_whole_range() -> None:
    """T1."""
    bench = reading()
    bench.gap(1, 1, 100, TRIM)
    assert bench.text == ["TRIM n1-n100"]


def test_records_below_the_trim_point_that_wait_in_the_buffer_are_dropped() -> None:
    """T1."""
    bench = reading()
    bench.records(1, 3, 5)
    bench.gap(2, 1, 5, TRIM)
    assert bench.text == ["TRIM n1-n5", "n5"]


def test_records_below_the_trim_point_that_come_later_are_dropped() -> None:
    """T1."""
    bench = reading()
    bench.gap(1, 1, 5, TRIM)
    bench.records(2, 3, 5)
    assert bench.text == ["TRIM n1-n5", "n5"]


def test_a_trim_is_passed_in_single_copy_delivery_without_a_rewind() -> None:
    """T1."""
    bench = reading(scd=True)
    bench.gap(1, 1, 100, TRIM)
    bench.records(2, 100)
    assert bench.text == ["TRIM n1-n100", "n100"]
    assert bench.health.rewinds == 0
    assert bench.mode is ReadMode.SCD


def test_a_trim_point_far_beyond_the_window_moves_the_window_there() -> None:
    """T1."""
    bench = reading(scd=True, window_lsns=10)
    bench.gap(1, 1, 500, TRIM)
    assert bench.text == ["TRIM n1-n500"]
    assert bench.windows == dict.fromkeys(bench.nodes, lsn(510))
    bench.records(2, 500)
    assert bench.text == ["TRIM n1-n500", "n500"]


def test_a_trim_beyond_the_window_waits_for_the_application_like_everything_else() -> None:
    bench = reading(window_lsns=10, consumes=False)
    bench.gap(1, 1, 500, TRIM)
    assert bench.windows == {}
    bench.feed(Consumed(lsn(500)))
    assert bench.windows[1] == lsn(510)


def test_a_trim_into_an_unknown_epoch_asks_which_nodes_store_it() -> None:
    """T1, M1."""
    bench = reading(scd=True)
    bench.answers_metadata = False
    bench.gap(1, 1, Lsn.of(3, 7), TRIM)
    assert bench.text == ["TRIM n1-e3n7"]
    assert [fetch.epoch for fetch in bench.sent(GetEpochMetadata)] == [3]


def test_a_trim_across_a_change_of_the_nodeset_goes_on_with_the_new_nodes() -> None:
    bench = reading()
    bench.answers_metadata = False
    bench.gap(1, 1, Lsn.of(2, 7), TRIM)
    newer = replace(bench.metadata, nodeset=bench.metadata.nodeset[3:])
    bench.answer_metadata(2, metadata=newer, last_epoch=2, source=MetadataSource.BOUNDED)
    assert bench.stops == [1, 2, 3]
    bench.records(4, Lsn.of(2, 7))
    assert bench.text == ["TRIM n1-e2n7", "e2n7"]


def test_a_trim_ends_with_the_stream() -> None:
    bench = reading(end=50)
    bench.gap(1, 1, 500, TRIM)
    assert bench.text == ["TRIM n1-n50"]
    assert bench.has_ended


def test_a_trim_below_the_head_changes_nothing() -> None:
    bench = reading()
    bench.records(1, 1, 2, 3)
    bench.gap(2, 1, 3, TRIM)
    assert bench.text == ["n1", "n2", "n3"]


def test_the_highest_trim_point_counts() -> None:
    """T1."""
    bench = reading(consumes=False)
    bench.gap(1, 1, 10, TRIM)
    bench.gap(2, 1, 5, TRIM)
    bench.gap(3, 1, 12, TRIM)
    assert bench.text == ["TRIM n1-n10", "TRIM n10-n12"]


def test_a_bridge_after_a_trim_that_reached_past_the_window() -> None:
    bench = reading(window_lsns=10)
    bench.gap(1, 1, 500, TRIM)
    bench.records(2, bridge(500))
    assert bench.text == ["TRIM n1-n500", "BRIDGE n500-e2n1"]


# ---- not skipping -------------------------------------------------------------------------------


def keeping(*, scd: bool = False, **arguments: object) -> Reading:
    return reading(scd=scd, skip_partially_trimmed=False, **arguments)


def test_without_skipping_what_survived_is_still_delivered() -> None:
    """T2: four nodes have trimmed up to 5, N2 has not."""
    bench = keeping()
    bench.gap((1, 3), 1, 5, TRIM)
    bench.records(2, 2)
    bench.gap((4, 5), 1, 5, TRIM)
    assert bench.text == ["TRIM n1-n2", "n2", "TRIM n3-n5"]


def test_without_skipping_a_trim_is_believed_from_an_f_majority() -> None:
    """T2: no grace and no second look: that one node trimmed it explains the gap."""
    bench = keeping()
    bench.gap((1, 2), 1, 5, TRIM)
    assert bench.text == []
    bench.gap(3, 1, 5, TRIM)
    assert bench.text == ["TRIM n1-n5"]
    assert bench.version == 1


def test_without_skipping_a_gap_is_split_at_the_trim_point() -> None:
    """T2, G6: below it was trimmed, above it is lost."""
    bench = keeping()
    bench.gap(1, 1, 5, TRIM)
    bench.gap(ALL, 1, 9)
    assert bench.text == ["TRIM n1-n5"]
    bench.rewind()
    bench.started(released=1_000)
    bench.gap(ALL, 5, 9)
    assert bench.text == ["TRIM n1-n5", "DATALOSS n5-n9"]


def test_without_skipping_a_trim_past_the_window_is_one_gap() -> None:
    bench = keeping(window_lsns=10)
    bench.gap((1, 2, 3), 1, 500, TRIM)
    assert bench.text == ["TRIM n1-n500"]
    assert bench.windows[1] == lsn(510)


def test_without_skipping_the_rest_of_a_trim_is_seen_after_the_window_slid() -> None:
    bench = keeping(window_lsns=4)
    bench.gap((1, 3), 1, 20, TRIM)
    bench.records(2, 4)
    bench.gap(4, 1, 20, TRIM)
    assert bench.text == ["TRIM n1-n4", "n4", "TRIM n5-n20"]


def test_without_skipping_a_trim_ends_with_the_stream() -> None:
    bench = keeping(end=5)
    bench.gap(ALL, 1, 500, TRIM)
    assert bench.text == ["TRIM n1-n5"]
    assert bench.has_ended


def test_without_skipping_single_copy_delivery_first_goes_to_all_send_all() -> None:
    """T2, G1: the node that should send a record may be the one that trimmed it."""
    bench = keeping(scd=True)
    bench.gap(ALL, 1, 5, TRIM)
    assert bench.text == []
    bench.rewind()
    assert bench.mode is ReadMode.ALL_SEND_ALL
    bench.started(released=1_000)
    bench.records(2, 3)
    bench.gap((1, 3, 4, 5), 1, 5, TRIM)
    assert bench.text[:2] == ["TRIM n1-n3", "n3"]


def test_when_all_nodes_are_empty_a_trimmed_range_is_still_called_trimmed() -> None:
    """G6, G8."""
    bench = keeping(nodes=2, copies=2)
    bench.gap(1, 1, 5, TRIM)
    assert bench.text == ["TRIM n1-n5"]
    bench.lost(1, 2)
    empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
    bench.status(1, N1=empty, N2=empty)
    bench.wait(10)
    assert bench.text == ["TRIM n1-n5", "DATALOSS n5-e2n1"]
