"""What a storage node knows about one log, and how it survives a crash.

It is kept in memory and changed by the log state. It is written to the store as small values: `seal` before
a SEAL is answered, `recovered/7` before a CLEAN is answered, `trim` before readers hear of it, `tagged/7`
together with the epoch's first record that has a writer's tag. `progress` and `writers` are written from time
to time: losing their latest values does no harm.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from logdevice.protocol.messages.write import EpochTail
from logdevice.types import Epoch, LogPoint, Lsn, NodeId, Record, epoch_start

SEAL, TRIM, PROGRESS, RECOVERED = "seal", "trim", "progress", "recovered/"
TAGGED, WRITERS = "tagged/", "writers"
_SEALS = struct.Struct("<IqIq")
_LSN = struct.Struct("<Q")
_RANGE = struct.Struct("<QQ")
_PROGRESS = struct.Struct("<QI")


@dataclass(frozen=True, slots=True)
class SealPoint:
    """Epochs up to and including `epoch` are sealed, by `node`."""

    epoch: Epoch = Epoch(0)
    node: NodeId = NodeId(-1)


@dataclass(slots=True)
class StoredEpoch:
    """An epoch of which the node has copies."""

    good_end: Lsn
    tail: LogPoint
    tagged_start: Lsn = Lsn(0)  # the first record with a writer's tag; 0: there is none

    def take(self, record: Record) -> None:
        if record.lsn >= self.tail.lsn:
            self.tail = LogPoint.after(record)


@dataclass(slots=True)
class StoredLog:
    seal: SealPoint = SealPoint()
    soft_seal: SealPoint = SealPoint()  # by a store of a higher epoch
    released_end: Lsn = Lsn(0)
    trim_end: Lsn = Lsn(0)
    last_clean: Epoch = Epoch(0)
    epochs: dict[Epoch, StoredEpoch] = field(default_factory=dict)  # after `last_clean`
    # Epochs whose recovery this node took part in or asked about; recovery decided [good_end, end).
    recovered: dict[Epoch, tuple[Lsn, Lsn]] = field(default_factory=dict)
    # The received table that the log's sequencer sent last, and the LSN up to which it is complete.
    writers_end: Lsn = Lsn(0)
    writers: bytes = b""

    def epoch(self, epoch: Epoch) -> StoredEpoch:
        start = epoch_start(epoch)
        return self.epochs.setdefault(epoch, StoredEpoch(start, LogPoint(start)))

    def unclean(self, end: Epoch) -> list[Epoch]:
        """Epochs below `end` of which this node holds copies and does not know the result of recovery."""
        return [
            epoch
            for epoch in sorted(self.epochs)
            if self.last_clean < epoch < end and epoch not in self.recovered
        ]

    def tails(self, start: Epoch, end: Epoch) -> tuple[EpochTail, ...]:
        """What is known about the epochs after `start`, up to and including `end`."""
        return tuple(
            EpochTail(
                epoch=epoch,
                good_end=stored.good_end,
                end=stored.tail,
                tagged_start=stored.tagged_start,
            )
            for epoch, stored in sorted(self.epochs.items())
            if start < epoch <= end
        )

    def clean_up_to(self, epoch: Epoch) -> None:
        self.last_clean = max(self.last_clean, epoch)
        for old in [known for known in self.epochs if known <= self.last_clean]:
            del self.epochs[old]

    def encode_seals(self) -> bytes:
        return _SEALS.pack(self.seal.epoch, self.seal.node, self.soft_seal.epoch, self.soft_seal.node)

    def encode_progress(self) -> bytes:
        ends = b"".join(_RANGE.pack(epoch, stored.good_end) for epoch, stored in sorted(self.epochs.items()))
        return _PROGRESS.pack(self.released_end, self.last_clean) + ends

    def encode_writers(self) -> bytes:
        return _LSN.pack(self.writers_end) + self.writers


def encode_lsn(lsn: Lsn) -> bytes:
    return _LSN.pack(lsn)


def encode_recovered(good_end: Lsn, end: Lsn) -> bytes:
    return _RANGE.pack(good_end, end)


def restore(states: Mapping[str, bytes], newest: Iterable[Record], trim_end: Lsn) -> StoredLog:
    """Restores it after a crash: from the written values, each epoch's newest copy, and the trim point."""
    stored = StoredLog(trim_end=trim_end)
    if SEAL in states:
        epoch, node, soft_epoch, soft_node = _SEALS.unpack(states[SEAL])
        stored.seal = SealPoint(Epoch(epoch), NodeId(node))
        stored.soft_seal = SealPoint(Epoch(soft_epoch), NodeId(soft_node))
    if TRIM in states:
        stored.trim_end = max(trim_end, Lsn(_LSN.unpack(states[TRIM])[0]))
    good_ends: dict[Epoch, Lsn] = {}
    if PROGRESS in states:
        value = states[PROGRESS]
        released_end, last_clean = _PROGRESS.unpack_from(value)
        stored.released_end, stored.last_clean = Lsn(released_end), Epoch(last_clean)
        good_ends = {Epoch(epoch): Lsn(end) for epoch, end in _RANGE.iter_unpack(value[_PROGRESS.size :])}
    for name, value in sorted(states.items()):
        if name.startswith(RECOVERED):
            good_end, end = _RANGE.unpack(value)
            stored.recovered[Epoch(int(name.removeprefix(RECOVERED)))] = (Lsn(good_end), Lsn(end))
    if WRITERS in states:
        stored.writers_end = Lsn(_LSN.unpack_from(states[WRITERS])[0])
        stored.writers = states[WRITERS][_LSN.size :]
    for record in newest:
        if record.lsn.epoch > stored.last_clean:
            stored.epoch(record.lsn.epoch).take(record)
    for epoch, good_end in good_ends.items():
        stored.epoch(epoch).good_end = good_end
    for epoch, tagged in stored.epochs.items():
        if (name := f"{TAGGED}{int(epoch)}") in states:
            tagged.tagged_start = Lsn(_LSN.unpack(states[name])[0])
    return stored
