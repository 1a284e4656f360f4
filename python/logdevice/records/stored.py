"""Stored bodies: bodies that a node sends directly from its file, to readers on the same machine.

The kernel sends such a body from its cache of the file: the node neither reads nor copies it. So the node
does not check its checksum either; the reader does that for every body anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, cast


class OpenFile(Protocol):
    """A file that stays open at least as long as this object is referenced."""

    def fileno(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A body that is a part of a file. Only the code that sends it must treat it unlike other bodies."""

    file: OpenFile
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length


Part = bytes | bytearray | memoryview | StoredBody


def joined(parts: Iterable[Part]) -> bytes:
    """The parts joined; none of them may be a StoredBody."""
    return b"".join(cast(Iterable[bytes], parts))
