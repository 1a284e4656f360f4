"""Collects the entries of the next record, and knows when there are enough of them. It has no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from logdevice.errors import InvalidArgumentError
from logdevice.records import batch as batches
from logdevice.settings import ClientSettings

# About how much memory an entry takes beyond its bytes.
ENTRY_OVERHEAD_BYTES = 64


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one record."""

    payloads: list[bytes]
    keys: list[bytes | None] | None
    attributes: list[Mapping[str, str] | None] | None
    size: int

    def to_batch(self) -> pa.RecordBatch:
        """The entries as columns."""
        return batches.from_entries(self.keys, self.payloads, self.attributes)


class Collector:
    """The entries of the next record."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._clear()

    def __len__(self) -> int:
        return len(self._payloads)

    @property
    def is_full(self) -> bool:
        """Whether the record has reached its number of bytes or entries."""
        return (
            self.size >= self._settings.writer_batch_bytes
            or len(self._payloads) >= self._settings.writer_batch_entries
        )

    def add(self, payload: bytes, key: bytes | None, attributes: Mapping[str, str] | None, size: int) -> int:
        """Adds an entry, with its size from `size_of`, and returns its place in the record."""
        self._payloads.append(payload)
        self._keys.append(key)
        self._attributes.append(attributes)
        self.size += size
        return len(self._payloads) - 1

    def take(self) -> Entries:
        """Returns the entries collected so far, and begins the next record."""
        has_keys = any(key is not None for key in self._keys)
        has_attributes = any(attributes is not None for attributes in self._attributes)
        taken = Entries(
            self._payloads,
            self._keys if has_keys else None,
            self._attributes if has_attributes else None,
            self.size,
        )
        self._clear()
        return taken

    def _clear(self) -> None:
        self._payloads: list[bytes] = []
        self._keys: list[bytes | None] = []
        self._attributes: list[Mapping[str, str] | None] = []
        self.size = 0


def size_of(payload: bytes, key: bytes | None, attributes: Mapping[str, str] | None) -> int:
    """How many bytes of memory an entry takes.

    InvalidArgumentError if the entry cannot be encoded: otherwise all entries of its record would fail.
    """
    if not isinstance(payload, bytes) or not (key is None or isinstance(key, bytes)):
        wrong = type(payload if not isinstance(payload, bytes) else key).__name__
        raise InvalidArgumentError(f"payloads and keys must be bytes, got {wrong}")
    size = ENTRY_OVERHEAD_BYTES + len(payload) + len(key or b"")
    for name, value in (attributes or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgumentError(f"attributes must be strings, got {name!r}: {value!r}")
        size += len(name) + len(value)
    return size
