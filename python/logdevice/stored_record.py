"""A record whose body is left in the file where it lies, for a reader on the same machine.

The kernel hands such a body over from its cache of the file: the node neither reads nor copies it. So the
node has not compared it with its checksum either; the reader does that with every body anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, cast

from logdevice.types import RECORD_HEADER_BYTES, Record


class OpenFile(Protocol):
    """Open at least as long as somebody refers to it."""

    def fileno(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stretch of a file."""

    file: OpenFile
    offset: int
    length: int
    crc: int  # what its crc32c should be

    def __len__(self) -> int:
        return self.length


Part = bytes | bytearray | memoryview | StoredBody


def joined(parts: Iterable[Part]) -> bytes:
    """The parts of something none of whose bodies is left in a file."""
    return b"".join(cast(Iterable[bytes], parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord(Record):
    """Its `body` is empty: whoever sends it sends what is `stored` instead."""

    stored: StoredBody

    @property
    def size(self) -> int:
        return self.stored.length + RECORD_HEADER_BYTES
