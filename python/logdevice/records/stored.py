"""A body that is left in the file where it lies, for a reader on the same machine.

The kernel hands such a body over from its cache of the file: the node neither reads nor copies it. So the
node has not compared it with its checksum either; the reader does that with every body anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, cast


class OpenFile(Protocol):
    """Open at least as long as somebody refers to it."""

    def fileno(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stretch of a file. To all but the one who sends it, it is a body like others: it has a length."""

    file: OpenFile
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length


Part = bytes | bytearray | memoryview | StoredBody


def joined(parts: Iterable[Part]) -> bytes:
    """The parts of something none of whose bodies is left in a file."""
    return b"".join(cast(Iterable[bytes], parts))
