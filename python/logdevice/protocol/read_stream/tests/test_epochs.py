"""Which nodes store an epoch: when the reader asks for it, and what an answer makes certain."""

from __future__ import annotations

from logdevice.protocol.messages.read import EpochMetadataIs
from logdevice.protocol.read_stream.epochs import Epochs
from logdevice.types import Epoch, EpochMetadata, Lsn, MetadataSource, Replication, nodes

METADATA = EpochMetadata(Epoch(1), nodes([1, 2, 3]), Replication.parse("2"))


def ask(epochs: Epochs, epoch: int, released_end: int = 0) -> Epoch | None:
    """Ask with the head at the start of the epoch."""
    return epochs.question(Epoch(epoch), Lsn.of(epoch, 1), released_end)


def answer(epoch: int, source: MetadataSource, last_epoch: int = 0) -> EpochMetadataIs:
    return EpochMetadataIs(Epoch(epoch), METADATA, Epoch(last_epoch or epoch), source)


def test_before_the_first_answer_nothing_is_known_and_the_question_is_open() -> None:
    epochs = Epochs()
    assert epochs.is_open_question
    assert epochs.metadata is None
    assert not epochs.covers(Epoch(1))


def test_a_question_is_asked_once() -> None:
    epochs = Epochs()
    assert ask(epochs, 1) == 1
    assert ask(epochs, 1) is None


def test_a_bounded_entry_is_final_up_to_its_last_epoch() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    assert epochs.learn(answer(2, MetadataSource.BOUNDED, last_epoch=4))
    assert epochs.metadata is METADATA
    assert epochs.is_bounded
    assert not epochs.is_open_question
    assert epochs.covers(Epoch(4))
    assert not epochs.covers(Epoch(5))


def test_what_is_known_is_not_asked_again() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    epochs.learn(answer(2, MetadataSource.BOUNDED, last_epoch=4))
    assert ask(epochs, 4, released_end=Lsn.of(4, 9)) is None
    assert ask(epochs, 5) == 5


def test_the_newest_entry_is_final_where_something_was_released_before_the_question() -> None:
    """M2: no later entry can follow for such an epoch."""
    epochs = Epochs()
    ask(epochs, 2, released_end=Lsn.of(4, 9))
    epochs.learn(answer(2, MetadataSource.LAST))
    assert epochs.known_until == 4
    assert not epochs.is_bounded


def test_a_release_up_to_the_start_of_an_epoch_says_nothing_about_that_epoch() -> None:
    """The released end is exclusive: below e4n0 everything is released, so nothing of epoch 4 is."""
    epochs = Epochs()
    ask(epochs, 2, released_end=Lsn.of(4, 0))
    epochs.learn(answer(2, MetadataSource.LAST))
    assert epochs.known_until == 3


def test_a_release_up_to_the_first_number_of_an_epoch_says_nothing_about_that_epoch_either() -> None:
    """ESN 0 never holds anything."""
    epochs = Epochs()
    ask(epochs, 2, released_end=Lsn.of(4, 1))
    epochs.learn(answer(2, MetadataSource.LAST))
    assert epochs.known_until == 3


def test_the_second_question_about_an_epoch_asks_for_confirmation() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    assert not epochs.is_confirming
    epochs.learn(answer(2, MetadataSource.SOFT))
    ask(epochs, 2, released_end=Lsn.of(2, 9))
    assert epochs.is_confirming


def test_a_release_after_the_question_does_not_make_its_answer_final() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    epochs.learn(answer(2, MetadataSource.LAST))
    assert not epochs.covers(Epoch(2))
    assert ask(epochs, 2, released_end=Lsn.of(2, 9)) == 2


def test_while_nothing_is_released_the_newest_entry_is_not_asked_for_again() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    epochs.learn(answer(2, MetadataSource.LAST))
    assert ask(epochs, 2, released_end=Lsn.of(2, 1)) is None


def test_an_entry_from_a_cache_names_nodes_to_start_and_is_not_final() -> None:
    epochs = Epochs()
    ask(epochs, 2, released_end=Lsn.of(2, 9))
    epochs.learn(answer(2, MetadataSource.SOFT))
    assert epochs.metadata is METADATA
    assert not epochs.covers(Epoch(2))


def test_an_answer_to_another_question_changes_nothing() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    assert not epochs.learn(answer(3, MetadataSource.BOUNDED))
    assert epochs.metadata is None
    assert epochs.is_open_question


def test_what_was_final_stays_final_after_an_answer_that_reaches_less_far() -> None:
    epochs = Epochs()
    ask(epochs, 1)
    epochs.learn(answer(1, MetadataSource.BOUNDED, last_epoch=5))
    ask(epochs, 6)
    epochs.learn(answer(6, MetadataSource.LAST))
    assert epochs.known_until == 5


def test_a_question_that_failed_may_be_asked_again() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    assert epochs.give_up(Epoch(2))
    assert ask(epochs, 2) == 2


def test_a_failure_of_another_question_is_ignored() -> None:
    epochs = Epochs()
    ask(epochs, 2)
    assert not epochs.give_up(Epoch(1))
    assert ask(epochs, 2) is None


def test_after_a_doubt_every_epoch_is_asked_about_again() -> None:
    """M4: perhaps a newer entry names nodes that exist."""
    epochs = Epochs()
    ask(epochs, 2)
    epochs.learn(answer(2, MetadataSource.BOUNDED, last_epoch=4))
    epochs.doubt()
    assert not epochs.covers(Epoch(2))
    assert ask(epochs, 2) == 2
