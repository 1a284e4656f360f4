"""Which nodes store which epoch: the reader's view of the metadata log.

A reader delivers nothing in an epoch before it knows for certain which nodes store it. The newest
entry of the metadata log is certain only for epochs in which something had been released before
the reader asked: the sequencer writes an epoch's metadata before it releases anything in it, so no
later entry can follow for such an epoch (read_path.md M1 to M4).
"""

from __future__ import annotations

from logdevice.protocol.messages.read import EpochMetadataIs
from logdevice.types import Epoch, EpochMetadata, Lsn, MetadataSource, epoch_start


class Epochs:
    """What is known of the epochs' metadata, and which question is open."""

    def __init__(self) -> None:
        self.metadata: EpochMetadata | None = None
        self.known_until = Epoch(0)  # inclusive: up to here the metadata is final
        self.known_end: int = epoch_start(1)  # the start of the next epoch
        self.is_bounded = False  # a newer entry is known to exist after `known_until`
        self._provisional = Epoch(0)  # in this epoch the read set is good enough to start nodes
        self._asked: Epoch | None = None
        self.is_confirming = False  # the last question was about an epoch known provisionally
        self._released_when_asked = 0

    @property
    def is_open_question(self) -> bool:
        """Whether an answer is on its way, or there has never been one."""
        return self._asked is not None or self.metadata is None

    def covers(self, epoch: Epoch) -> bool:
        """Whether the metadata is final for this epoch."""
        return epoch <= self.known_until

    def question(self, epoch: Epoch, head: int, released_end: int) -> Epoch | None:
        """The epoch to ask about now; None if an answer could not add anything (M2)."""
        if self._asked is not None or self.covers(epoch):
            return None
        if self._provisional >= epoch and released_end <= head:
            return None  # nothing is released there yet: the answer could still change
        self._asked = epoch
        self.is_confirming = self._provisional >= epoch
        self._released_when_asked = released_end
        return epoch

    def learn(self, answer: EpochMetadataIs) -> bool:
        """Take an answer in; False if it is not the one that is waited for."""
        if answer.epoch != self._asked:
            return False
        self._asked = None
        self.metadata = answer.metadata
        self.is_bounded = answer.source is MetadataSource.BOUNDED
        self._provisional = answer.epoch
        if self.is_bounded:
            self._know(answer.last_epoch)
        elif answer.source is MetadataSource.LAST and self._released_when_asked:
            last = Lsn(self._released_when_asked - 1)
            # ESN 0 holds nothing: a release up to e5n1 says that epoch 4 is over, and nothing of epoch 5.
            self._know(last.epoch if last.esn else Epoch(last.epoch - 1))
        return True

    def _know(self, epoch: Epoch) -> None:
        self.known_until = max(self.known_until, epoch)
        self.known_end = epoch_start(self.known_until + 1)

    def doubt(self) -> None:
        """None of the known nodes is there, so ask again: a newer entry may name others (M4)."""
        self.known_until = self._provisional = Epoch(0)
        self.known_end = epoch_start(1)

    def give_up(self, epoch: Epoch) -> bool:
        """The metadata could not be read; False if this is not the open question."""
        if epoch != self._asked:
            return False
        self._asked = None
        return True
