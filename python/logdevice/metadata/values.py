"""The values an epoch store keeps, and the versions by which they are compared and set.

Frozen, complete at birth, valid if they exist. Their stored form is made in `codec.py`. A version is
a number that grows with every change in the store, whatever is changed; two versions of one value
never compare equal unless nothing happened in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, NewType, TypeVar

from logdevice.types import Location

Value = TypeVar("Value")
Version = NewType("Version", int)

# The version of what does not exist: expecting it means "create, but do not overwrite".
ABSENT: Final = Version(0)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[Value]):
    """A value and the version it had when it was read."""

    value: Value
    version: Version


class NodeRole(Enum):
    STORAGE = "storage"  # keeps copies
    SEQUENCER = "sequencer"  # may number logs


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEntry:
    """A node as the cluster knows it."""

    address: str  # host:port, as other processes reach it
    location: Location = Location()
    roles: tuple[NodeRole, ...] = (NodeRole.SEQUENCER, NodeRole.STORAGE)
    weight: float = 1.0  # its share of new records, compared with other nodes; 0: no new ones
    generation: int = 1  # grows when the node comes back with an empty disk: it is not the same one

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
            raise ValueError(f"address {self.address!r} is not of the form host:port")
        if not self.roles or list(self.roles) != sorted(set(self.roles), key=lambda role: role.value):
            raise ValueError(f"roles {[role.value for role in self.roles]} must be sorted, each once")
        if not 0 <= self.weight < float("inf"):
            raise ValueError(f"weight {self.weight} is not a number from 0 up")
        if self.generation < 1:
            raise ValueError(f"generation {self.generation} is below 1")
