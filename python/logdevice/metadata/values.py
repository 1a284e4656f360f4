"""The values that an epoch store keeps, and the versions by which they are compared and set.

Values are immutable and checked when they are made; `codec.py` encodes them. A version is a number that grows
with every change of anything in the store. Two reads of a value have the same version only if the value did
not change in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, NewType, TypeVar

from logdevice.types import Location

Value = TypeVar("Value")
Version = NewType("Version", int)

# The version of a value that does not exist. A write that expects it creates, but does not overwrite.
ABSENT: Final = Version(0)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[Value]):
    """A value, and the version that it had when it was read."""

    value: Value
    version: Version


class NodeRole(Enum):
    """What a node does in its cluster."""

    STORAGE = "storage"  # keeps copies
    SEQUENCER = "sequencer"  # may number logs


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEntry:
    """A node as it is registered. Raises ValueError if a value is wrong."""

    address: str  # host:port, where other processes reach it
    location: Location = Location()
    roles: tuple[NodeRole, ...] = (NodeRole.SEQUENCER, NodeRole.STORAGE)
    weight: float = 1.0  # its share of new records, relative to other nodes; 0: no new records
    generation: int = 1  # grows each time the node comes back with an empty disk

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
            raise ValueError(
                f"address {self.address!r} is not of the form host:port, with a port from 1 to 65535"
            )
        if not self.roles or list(self.roles) != sorted(set(self.roles), key=lambda role: role.value):
            given = ", ".join(role.value for role in self.roles) or "none"
            raise ValueError(f"roles must name at least one role, sorted, each once; got {given}")
        if not 0 <= self.weight < float("inf"):
            raise ValueError(f"weight must be a number of at least 0, got {self.weight}")
        if self.generation < 1:
            raise ValueError(f"generation must be at least 1, got {self.generation}")
