"""Which nodes store an epoch: metadata before delivery, changes of the nodeset, and bridges."""

from __future__ import annotations

from logdevice.protocol.messages.read import GetEpochMetadata
from logdevice.protocol.read_stream.events import MetadataUnavailable, ReadConfigChanged, SendStart
from logdevice.protocol.read_stream.health import Waiting
from logdevice.protocol.read_stream.tests.reading import LOG, Reading, bridge, lsn
from logdevice.types import Epoch, EpochMetadata, Location, Lsn, MetadataSource, NodeId, Replication, nodes

ALL = (1, 2, 3, 4, 5)
LAST, SOFT = MetadataSource.LAST, MetadataSource.SOFT


def two(esn: int) -> Lsn:
    """An LSN of epoch 2."""
    return Lsn.of(2, esn)


def stored_on(*ids: int, copies: int = 2) -> EpochMetadata:
    return EpochMetadata(Epoch(2), nodes(ids), Replication.parse(str(copies)))


def asked(bench: Reading) -> list[int]:
    """The epochs whose metadata the last event made the stream ask for."""
    return [fetch.epoch for fetch in bench.sent(GetEpochMetadata)]


def started_to(bench: Reading) -> list[int]:
    return [start.node for start in bench.sent(SendStart)]


def at_the_end_of_epoch_1(**arguments: object) -> Reading:
    """A reader that has just passed the bridge of epoch 1 and asks which nodes store epoch 2."""
    bench = Reading(**arguments)  # type: ignore[arg-type]
    bench.started(released=two(100))
    bench.answers_metadata = False
    bench.records(1, 1, bridge(2))
    return bench


# ---- the first metadata -------------------------------------------------------------------------


def test_no_node_is_started_before_the_metadata_is_known() -> None:
    """M1."""
    bench = Reading(answers_metadata=False)
    assert bench.effects == [GetEpochMetadata(LOG, Epoch(1))]
    bench.answer_metadata(1)
    assert started_to(bench) == list(ALL)


def test_metadata_that_cannot_be_read_is_asked_for_again_after_a_growing_pause() -> None:
    bench = Reading(answers_metadata=False)
    pauses = []
    for _ in range(7):
        bench.feed(MetadataUnavailable(Epoch(1)))
        pauses.append(bench.wait_until(lambda: asked(bench), step_ms=1_000) // 1_000)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_an_answer_makes_the_next_pause_short_again() -> None:
    bench = Reading(answers_metadata=False)
    for _ in range(3):
        bench.feed(MetadataUnavailable(Epoch(1)))
        bench.wait(30_000)
    bench.answer_metadata(1)
    bench.started(released=two(9))
    bench.records(1, bridge(1))
    bench.feed(MetadataUnavailable(Epoch(2)))
    bench.wait(999)
    assert asked(bench) == []
    bench.wait(1)
    assert asked(bench) == [2]


def test_an_answer_that_is_not_waited_for_changes_nothing() -> None:
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1)
    before = len(bench.starts)
    bench.answer_metadata(1, metadata=stored_on(8, 9))
    bench.feed(MetadataUnavailable(Epoch(1)))
    bench.wait(5_000 - 1)
    assert len(bench.starts) == before
    assert bench.stops == []


# ---- when metadata is final ---------------------------------------------------------------------


def test_the_newest_entry_starts_nodes_but_delivers_nothing_until_it_is_confirmed() -> None:
    """M1, M2: nothing was released when the question was asked."""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=LAST)
    assert started_to(bench) == list(ALL)
    bench.started(1)
    bench.records(1, 1)
    assert bench.text == []
    assert asked(bench) == [1]
    bench.answer_metadata(1, source=LAST)
    assert bench.text == ["n1"]


def test_as_long_as_nothing_is_released_the_newest_entry_is_not_asked_for_again() -> None:
    """M2."""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=LAST)
    bench.effects.clear()
    bench.started(released=1)
    bench.wait(600_000)
    assert asked(bench) == []
    assert bench.health.waiting is Waiting.RELEASE


def test_after_a_release_the_metadata_is_asked_for_again() -> None:
    """M2."""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=LAST)
    bench.effects.clear()
    bench.started(1, released=2)
    assert asked(bench) == [1]
    assert bench.health.waiting is Waiting.METADATA


def test_an_entry_from_a_cache_is_never_final() -> None:
    """M2: the reader asks for the metadata log itself, and pauses if it gets a cached entry again."""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=SOFT)
    bench.started(1, released=10)
    assert bench.sent(GetEpochMetadata)[-1] == GetEpochMetadata(LOG, Epoch(1), confirm=True)
    bench.records(1, 1)
    bench.answer_metadata(1, source=SOFT)
    assert bench.text == []
    assert asked(bench) == []
    bench.wait(1_000)
    assert bench.sent(GetEpochMetadata) == [GetEpochMetadata(LOG, Epoch(1), confirm=True)]
    bench.answer_metadata(1, source=LAST)
    assert bench.text == ["n1"]


def test_the_second_answer_may_name_other_nodes() -> None:
    """M2, M3: the first one was out of date."""
    bench = Reading(nodes=6, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(1, 2, 3), source=SOFT)
    bench.started(1, 2, 3, released=10)
    bench.effects.clear()
    bench.answer_metadata(1, metadata=stored_on(3, 4, 5))
    assert bench.stops == [1, 2]
    assert started_to(bench) == [4, 5]


def test_one_answer_covers_all_epochs_in_which_something_was_released() -> None:
    """M2: a log with many empty epochs is not asked about each of them."""
    bench = Reading(answers_metadata=False)
    bench.answer_metadata(1, source=LAST)
    bench.started(released=Lsn.of(50, 2))
    bench.answer_metadata(1, source=LAST)
    for epoch in range(1, 50):
        bench.records(1, bridge(Lsn.of(epoch, 1)))
        assert asked(bench) == []
    bench.records(1, Lsn.of(50, 1))
    assert len(bench.delivered) == 50


# ---- the read set -------------------------------------------------------------------------------


def test_only_nodes_that_the_configuration_knows_are_read_from() -> None:
    """M3."""
    bench = Reading(nodes=3, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(2, 3, 9))
    assert started_to(bench) == [2, 3]


def test_a_node_of_the_nodeset_that_joins_the_configuration_is_started() -> None:
    """M3."""
    bench = Reading(nodes=3, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(1, 2, 9))
    bench.started(1, 2, released=10)
    bench.records(1, 1)
    bench.locations[NodeId(9)] = Location()
    bench.feed(ReadConfigChanged(bench.config()))
    assert started_to(bench) == [9]
    assert bench.start_of(9).start == lsn(2)


def test_a_node_that_is_not_in_the_nodeset_may_join_unnoticed() -> None:
    """M3."""
    bench = Reading(nodes=3)
    bench.locations[NodeId(9)] = Location()
    bench.feed(ReadConfigChanged(bench.config()))
    assert bench.effects == []


def test_a_node_that_leaves_the_configuration_is_told_to_stop() -> None:
    """M3."""
    bench = Reading()
    bench.started(released=10)
    del bench.locations[NodeId(5)]
    bench.feed(ReadConfigChanged(bench.config()))
    assert bench.stops == [5]
    bench.records(5, 1)
    assert bench.text == []


def test_a_configuration_that_comes_before_the_metadata_is_kept_for_it() -> None:
    bench = Reading(nodes=3, answers_metadata=False)
    del bench.locations[NodeId(3)]
    bench.feed(ReadConfigChanged(bench.config()))
    bench.answer_metadata(1)
    assert started_to(bench) == [1, 2]


def test_the_next_epoch_may_be_on_other_nodes() -> None:
    """M3."""
    bench = at_the_end_of_epoch_1(nodes=6)
    assert asked(bench) == [2]
    bench.answer_metadata(2, metadata=stored_on(4, 5, 6, copies=3), last_epoch=2)
    assert bench.stops == [1, 2, 3]
    bench.records(4, two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1", "e2n1"]


def test_nodes_that_are_new_in_an_epoch_start_at_its_first_lsn() -> None:
    bench = at_the_end_of_epoch_1(nodes=[1, 2, 3])
    bench.locations[NodeId(9)] = Location()
    bench.feed(ReadConfigChanged(bench.config()))
    bench.answer_metadata(2, metadata=stored_on(1, 2, 9, copies=3), last_epoch=2)
    assert bench.stops == [3]
    assert bench.start_of(9).start == two(1)


def test_another_number_of_copies_is_told_to_every_node() -> None:
    """A node that counts with a wrong R would send records that another node must send."""
    bench = at_the_end_of_epoch_1()
    bench.answer_metadata(2, metadata=stored_on(*ALL, copies=2), last_epoch=2)
    bench.rewind()
    assert {bench.start_of(node).replication for node in ALL} == {2}


def test_what_was_buffered_from_the_next_epoch_waits_for_its_metadata() -> None:
    """M1."""
    bench = Reading(scd=False)
    bench.started(released=two(100))
    bench.answers_metadata = False
    bench.records(1, 1, bridge(2))
    bench.gap(1, two(0), two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]
    bench.records(1, two(1))
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]
    bench.answer_metadata(2, last_epoch=2)
    assert bench.text == ["n1", "BRIDGE n2-e2n1", "e2n1"]


# ---- no node of the nodeset is there ------------------------------------------------------------


def test_an_empty_read_set_without_newer_metadata_asks_again_after_a_while() -> None:
    """M4."""
    bench = Reading(nodes=2, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(8, 9), source=LAST)
    assert bench.starts == []
    bench.wait(999)
    assert asked(bench) == []
    bench.wait(1)
    assert asked(bench) == [1]
    bench.answer_metadata(1, metadata=stored_on(1, 2), source=LAST)
    assert started_to(bench) == [1, 2]


def test_once_nodes_are_back_the_metadata_is_not_asked_for_again() -> None:
    """M4."""
    bench = Reading(nodes=2, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(8, 9), source=LAST)
    bench.locations[NodeId(8)] = Location()
    bench.feed(ReadConfigChanged(bench.config()))
    bench.wait(1_000)
    assert asked(bench) == []
    assert bench.start_of(8).start == lsn(1)


def test_an_empty_read_set_with_newer_metadata_loses_its_epochs() -> None:
    """G8: all nodes that stored them are gone for good."""
    bench = Reading(nodes=2, scd=False, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(8, 9), last_epoch=1)
    bench.wait(10)
    assert bench.text == ["DATALOSS n1-e2n1"]
    assert asked(bench) == [2]


def test_epochs_without_nodes_are_passed_in_single_copy_delivery_too() -> None:
    """G8, R6."""
    bench = Reading(nodes=2, answers_metadata=False)
    bench.answer_metadata(1, metadata=stored_on(8, 9), last_epoch=1)
    bench.wait(30_000)
    assert bench.text == ["DATALOSS n1-e2n1"]
