"""Tags of writers: the number for a writer's name, and the allowed values of a tag."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from logdevice.errors import InvalidArgumentError
from logdevice.types import WriterTag

_HIGHEST: Final = (1 << 64) - 1
SEQ_MAX: Final = (1 << 63) - 1


def writer_number(name: str) -> int:
    """The number for a writer's name, for use in tags. It is the same in every process and version.

    InvalidArgumentError if the name is empty.
    """
    if not name:
        raise InvalidArgumentError("the name of a writer must have at least one character")
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def check_tag(tag: WriterTag) -> None:
    """InvalidArgumentError if a field of the tag has a value that is not allowed."""
    limits = {
        "writer": (tag.writer, _HIGHEST),
        "incarnation": (tag.incarnation, _HIGHEST),
        "first_seq": (tag.first_seq, SEQ_MAX),
        "stable_upto": (tag.stable_upto, tag.first_seq),
    }
    for name, (value, highest) in limits.items():
        if not 0 <= value <= highest:
            raise InvalidArgumentError(f"{name} of a writer's tag must be from 0 to {highest}, got {value}")
    if tag.count != 1:
        raise InvalidArgumentError(f"count of a writer's tag must be 1, got {tag.count}")
