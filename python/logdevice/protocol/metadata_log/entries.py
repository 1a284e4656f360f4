"""The entries of metadata logs: their place, their form, and the question with which nodes ask for them.

The metadata log of log L is a log of its own, number L + 2^62. The entry for the epochs from E on is its
record at eEn1 (M20).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from logdevice.protocol.io import Request
from logdevice.records.forms import Misfit, packed, unpacked
from logdevice.types import EpochMetadata, LogId, Lsn, NodeId, Record

_FIRST: Final = 1 << 62

History = tuple[EpochMetadata, ...]  # oldest first


@dataclass(frozen=True, slots=True)
class GetMetadataEntries(Request["MetadataEntries"]):
    """Asks a node which entries of this log's metadata log it holds.

    Only nodes ask this. Readers send GetEpochMetadata, whose answer is collected from enough nodes.
    """

    log: LogId


@dataclass(frozen=True, slots=True)
class MetadataEntries:
    """Answer to GetMetadataEntries, oldest first."""

    entries: tuple[EpochMetadata, ...]


def metadata_log_of(log: LogId) -> LogId:
    """The number of the metadata log of `log`."""
    return LogId(log + _FIRST)


def is_metadata_log(log: LogId) -> bool:
    return log >= _FIRST


def record_of(entry: EpochMetadata, copyset: tuple[NodeId, ...], now_ms: int) -> Record:
    return Record(
        lsn=Lsn.of(entry.first_epoch, 1),
        timestamp_ms=now_ms,
        copyset=copyset,
        body=packed(entry),
        wave=1,
        entries=1,
    )


def entry_of(body: bytes | memoryview) -> EpochMetadata | None:
    """The entry in this body; None if the disk has damaged it, which counts as if it were missing."""
    try:
        return unpacked(EpochMetadata, body)
    except Misfit:
        return None


def joined(answers: Iterable[History]) -> History:
    """All entries that at least one of several nodes holds, oldest first."""
    found = {entry.first_epoch: entry for entries in answers for entry in entries}
    return tuple(entry for _, entry in sorted(found.items()))
