"""Entries that wait for others to share a record with. Knows when there are enough; knows no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from logdevice.errors import InvalidArgumentError
from logdevice.records import batch as batches
from logdevice.settings import ClientSettings

# What an entry costs beyond its bytes, near enough to bound memory.
ENTRY_OVERHEAD_BYTES = 64


@dataclass(frozen=True, slots=True)
class Entries:
    """What goes into one record."""

    payloads: list[bytes]
    keys: list[bytes | None] | None
    attributes: list[Mapping[str, str] | None] | None
    size: int

    def to_batch(self) -> pa.RecordBatch:
        return batches.from_entries(self.keys, self.payloads, self.attributes)


class Collector:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._clear()

    def __len__(self) -> int:
        return len(self._payloads)

    @property
    def is_full(self) -> bool:
        return (
            self.size >= self._settings.writer_batch_bytes
            or len(self._payloads) >= self._settings.writer_batch_entries
        )

    def add(self, payload: bytes, key: bytes | None, attributes: Mapping[str, str] | None, size: int) -> int:
        """The place of the entry in its record; `size` is what `size_of` says of it."""
        self._payloads.append(payload)
        self._keys.append(key)
        self._attributes.append(attributes)
        self.size += size
        return len(self._payloads) - 1

    def take(self) -> Entries:
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
    """What the entry costs in memory. One that cannot be in a batch is refused before it spoils others."""
    if not isinstance(payload, bytes) or not (key is None or isinstance(key, bytes)):
        wrong = type(payload if not isinstance(payload, bytes) else key).__name__
        raise InvalidArgumentError(f"payloads and keys are bytes, not {wrong}")
    size = ENTRY_OVERHEAD_BYTES + len(payload) + len(key or b"")
    for name, value in (attributes or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgumentError(f"attributes are text, {name!r}: {value!r} is not")
        size += len(name) + len(value)
    return size
