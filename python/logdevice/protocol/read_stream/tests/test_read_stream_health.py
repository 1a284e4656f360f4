"""What a stream reports about itself: how it reads, what it waits for and since when, and its counts.

Rules H1 and H2 of read_path.md. Every value of `Waiting` has its cause here.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import ReadMode, StartedStatus
from logdevice.protocol.read_stream.health import Waiting
from logdevice.protocol.read_stream.tests.reading import RELEASED, Reading, lsn, reading, record
from logdevice.types import (
    RECORD_HEADER_BYTES,
    AuthoritativeStatus,
    MetadataSource,
    NodeId,
    Replication,
    Scope,
)

GRACE_MS = 30_000


def waiting(bench: Reading) -> tuple[Waiting, str]:
    return bench.health.waiting, bench.health.waiting_for


# ---- what it waits for --------------------------------------------------------------------------


def test_at_first_it_waits_for_the_metadata_of_its_epoch() -> None:
    """H2"""
    bench = Reading(answers_metadata=False)
    assert waiting(bench) == (Waiting.METADATA, "of epoch 1")


def test_metadata_that_is_asked_for_again_is_waited_for() -> None:
    """H2: the newest entry was not final; now something is released and it is asked for once more."""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=MetadataSource.LAST)
    bench.started(released=5)
    assert waiting(bench) == (Waiting.METADATA, "of epoch 1")


def test_a_reader_that_has_caught_up_waits_for_a_release() -> None:
    """H2"""
    bench = Reading()
    bench.started(released=3)
    bench.records(1, 1, 2)
    assert waiting(bench) == (Waiting.RELEASE, "of e1n3")


def test_a_reader_whose_metadata_cannot_be_final_yet_waits_for_a_release() -> None:
    """H2"""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=MetadataSource.LAST)
    bench.started()
    assert waiting(bench) == (Waiting.RELEASE, "of e1n1")


def test_it_waits_for_the_nodes_that_are_not_past_the_head() -> None:
    """H2"""
    bench = reading()
    bench.gap([2, 4], 1, 5)
    assert waiting(bench) == (Waiting.NODES, "N1, N3, N5")


def test_without_nodes_it_waits_for_nodes_and_knows_none() -> None:
    """H2, M4"""
    bench = Reading(answers_metadata=False)
    bench.shrink(1, 2, 3, 4, 5)
    bench.answer_metadata(1, source=MetadataSource.LAST)
    assert waiting(bench) == (Waiting.NODES, "no node is known")


def test_it_waits_for_a_rewind_that_is_due() -> None:
    """H2"""
    bench = reading()
    bench.lost(2)
    bench.started(3, status=StartedStatus.REBUILDING)
    assert waiting(bench) == (Waiting.REWIND, "CONNECTION_LOST, REBUILDING")


def test_it_waits_for_the_last_nodes_to_answer() -> None:
    """H2, G4"""
    bench = reading(scd=False)
    bench.gap([1, 2, 3], 1, 2)
    assert waiting(bench) == (Waiting.GRACE, "N4, N5")


def test_it_waits_for_an_application_that_does_not_consume() -> None:
    """H2"""
    bench = reading(consumes=False, window_lsns=2)
    bench.records(1, 1, 2)
    assert waiting(bench) == (Waiting.APPLICATION, "it has consumed only up to e1n1")


def test_at_its_end_it_waits_for_the_application_to_consume_the_rest() -> None:
    """H2"""
    bench = reading(end=2, consumes=False)
    bench.records(1, 1)
    assert waiting(bench) == (Waiting.APPLICATION, "it has consumed only up to e1n1")


def test_at_its_end_it_waits_for_nothing() -> None:
    """H2"""
    bench = reading(end=2)
    bench.records(1, 1)
    assert waiting(bench) == (Waiting.ENDED, "")


# ---- since when ---------------------------------------------------------------------------------


def test_it_waits_since_the_head_last_moved() -> None:
    """H2"""
    bench = reading()
    bench.wait(70)
    bench.records(1, 1)
    bench.wait(30)
    bench.records(2, 3)
    assert bench.health.waiting_since_ms == 70


def test_it_waits_for_nodes_only_since_there_is_something_to_wait_for() -> None:
    """H2: it had caught up; then something was released."""
    bench = Reading()
    bench.started(released=1)
    bench.wait(90)
    bench.gap(2, 1, 2)
    bench.wait(10)
    assert (bench.health.waiting, bench.health.waiting_since_ms) == (Waiting.NODES, 90)


def test_a_rewind_is_no_progress() -> None:
    """H2"""
    bench = reading()
    bench.wait(50)
    bench.lost(1)
    bench.rewind()
    assert bench.health.waiting_since_ms == 0


# ---- is it healthy ------------------------------------------------------------------------------


def test_a_stream_may_take_a_while_to_connect() -> None:
    """H1"""
    bench = Reading(stall_grace_ms=GRACE_MS)
    bench.wait(GRACE_MS)
    assert bench.health.is_healthy
    bench.wait(1)
    assert not bench.health.is_healthy


def test_an_f_majority_of_reading_nodes_is_healthy() -> None:
    """H1: three of five meet every copyset of three, two do not."""
    bench = Reading(scd=False)
    bench.started(1, 2)
    bench.wait(GRACE_MS + 1)
    assert not bench.health.is_healthy
    bench.started(3)
    assert bench.health.is_healthy


def test_a_stream_that_loses_its_nodes_is_unhealthy_after_a_grace_period() -> None:
    """H1"""
    bench = Reading(scd=False)
    bench.started(released=1)
    bench.wait(50_000)
    bench.lost(1, 2, 3)
    bench.wait(GRACE_MS)
    assert bench.health.is_healthy
    bench.wait(1)
    assert not bench.health.is_healthy


def test_health_follows_the_failure_domains_of_the_log() -> None:
    """H1: three racks of two, two racks needed: a whole rack may be away, but not parts of two racks."""
    places = {node: f"r.d.c.w.k{(node + 1) // 2}" for node in range(1, 7)}
    replication = Replication.of({Scope.NODE: 3, Scope.RACK: 2})
    for answering, is_healthy in (((1, 2, 3, 4), True), ((1, 3, 5), False)):
        bench = Reading(nodes=6, locations=places, replication=replication, scd=False)
        bench.started(*answering)
        bench.wait(GRACE_MS + 1)
        assert bench.health.is_healthy is is_healthy


def test_nodes_that_lost_their_data_for_good_are_not_missed() -> None:
    """H1: they cannot answer for any record."""
    bench = Reading(scd=False)
    bench.started(1, 2)
    bench.wait(GRACE_MS + 1)
    assert not bench.health.is_healthy
    lost = AuthoritativeStatus.UNDERREPLICATION
    bench.status(1, N3=lost, N4=lost, N5=lost)
    assert bench.health.is_healthy


def test_nodes_that_hang_after_a_rewind_make_the_stream_unhealthy_after_the_grace() -> None:
    """H1: no connection is closed, and no node answers."""
    bench = reading(started_timeout_ms=5_000)
    bench.lost(1)
    bench.rewind()
    bench.wait(5_000 + GRACE_MS)
    bench.wait(1)
    assert not bench.health.is_healthy


def test_health_is_judged_anew_when_nodes_leave_the_read_set() -> None:
    """H1: the dead nodes are taken out of the configuration; those left are all connected."""
    bench = Reading(scd=False, copies=2)
    bench.started(1, 2, 3)
    bench.wait(GRACE_MS + 1)
    assert not bench.health.is_healthy
    bench.shrink(4, 5)
    assert bench.health.is_healthy


# ---- the rest -----------------------------------------------------------------------------------


def test_it_reports_mode_list_and_rewinds() -> None:
    bench = reading()
    bench.lost(4)
    bench.started(2, status=StartedStatus.AGAIN)
    bench.rewind()
    health = bench.health
    assert (health.mode, health.known_down, health.slow) == (ReadMode.SCD, (2, 4), ())
    assert (health.rewinds, health.rewind_reasons) == (1, {"CONNECTION_LOST": 1, "STARTED_FAILED": 1})
    assert (health.head, health.released_end) == (lsn(1), lsn(RELEASED))


def test_it_counts_what_each_node_has_sent_over_rewinds() -> None:
    bench = reading(nodes=3)
    bench.records(1, record(1, body=b"four"), record(2, body=b""))
    bench.lost(3)
    bench.rewind()
    bench.started()
    bench.records(1, record(3, body=b"x"))
    bench.records(2, record(3, body=b"x"))
    health, header = bench.health, RECORD_HEADER_BYTES
    assert health.records_by_node == {NodeId(1): 3, NodeId(2): 1, NodeId(3): 0}
    assert health.bytes_by_node == {NodeId(1): 3 * header + 5, NodeId(2): header + 1, NodeId(3): 0}
    assert health.duplicates == 1


def test_asking_changes_nothing() -> None:
    bench = reading(scd=False)
    bench.gap([1, 2, 3], 1, 2)
    assert bench.health == bench.health


def test_the_line_for_a_person_says_what_matters() -> None:
    bench = reading()
    bench.records(1, 1)
    bench.lost(2, 5)
    bench.wait(1)
    bench.started(1, 3, 4)
    assert str(bench.health) == (
        "SCD at e1n2, waiting for NODES (N1, N2, N3, N4, N5) since 0 ms, known down N2 N5, 1 rewinds"
    )


def test_the_line_leaves_out_empty_lists() -> None:
    bench = reading(end=2)
    bench.records(1, 1)
    assert str(bench.health) == "SCD at e1n2, waiting for ENDED since 0 ms, 0 rewinds"
