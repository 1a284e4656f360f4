"""The entries of metadata logs: where they are kept, as what, and how nodes ask each other for them.

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
    """Which entries of this log's metadata log do you hold? One node asks another; a reader asks
    GetEpochMetadata, which is answered from enough nodes.
    """

    log: LogId


@dataclass(frozen=True, slots=True)
class MetadataEntries:
    """Answer to GetMetadataEntries, oldest first."""

    entries: tuple[EpochMetadata, ...]


def metadata_log_of(log: LogId) -> LogId:
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
    """None if it is none: what a disk has damaged is as good as not there."""
    try:
        return unpacked(EpochMetadata, body)
    except Misfit:
        return None


def joined(answers: Iterable[History]) -> History:
    """What several nodes hold together."""
    found = {entry.first_epoch: entry for entries in answers for entry in entries}
    return tuple(entry for _, entry in sorted(found.items()))
