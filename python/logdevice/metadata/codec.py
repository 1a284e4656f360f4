"""Encodes and decodes the values of an epoch store: msgpack, with the number of the format in front.

A stored value is the array [format, fields]. Fields are a map by name, so that a later version may add a
field with a default. A format that this process does not know is refused: a process that wrote back a value
that it understands only in part would destroy the rest.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Any, Final, Generic, TypeVar

import msgpack

from logdevice.cuts import Cut, cut_from_json
from logdevice.errors import UnreadableMetadataError, UsageError
from logdevice.metadata.log_directory import LogDirectory
from logdevice.metadata.values import NodeEntry
from logdevice.protocol.lineage import Branch, Lineage
from logdevice.protocol.rebuilding.node_status import NodeEvents
from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.records.forms import Section, named_fields_of
from logdevice.types import Epoch, EpochMetadata, LogPoint, Lsn, NodeId, Replication, nodes

FORMAT: Final = 1
_TAIL: Final = Struct("<QqQQ")  # LSN, time, entries, bytes
Value = TypeVar("Value")
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ValueCodec(Generic[Value]):
    """Encodes and decodes values of one kind, by their fields."""

    fields: Callable[[Value], Fields]
    build: Callable[[Fields], Value]
    # For the log directory: its names and attributes repeat, so that compression fits ten times as many logs.
    is_compressed: bool = False

    def encode(self, value: Value) -> bytes:
        packed = bytes(msgpack.packb([FORMAT, self.fields(value)]))
        return zlib.compress(packed) if self.is_compressed else packed

    def decode(self, data: bytes, what: str) -> Value:
        """The value in `data`. Raises UnreadableMetadataError, with the name `what`, if it is damaged."""
        try:
            stored_format, fields = msgpack.unpackb(zlib.decompress(data) if self.is_compressed else data)
        except Exception as error:  # msgpack raises many kinds for damaged bytes
            raise UnreadableMetadataError(f"{what} is damaged: {error!r}") from None
        if stored_format != FORMAT:
            raise UnreadableMetadataError(
                f"{what} is stored in format {stored_format!r}; this version reads format {FORMAT}"
            )
        try:
            return self.build(fields)
        except (KeyError, TypeError, ValueError, AttributeError, StructError, UsageError) as error:
            raise UnreadableMetadataError(f"{what} is damaged: {error!r}") from None


def _epochs_fields(state: EpochState) -> Fields:
    assert state.owner is not None, "a node took the epoch that is written"
    metadata, tail = _checked(state).metadata, state.tail
    return {
        "epoch": state.epoch,
        "owner": int(state.owner),
        "first_epoch": metadata.first_epoch,
        "nodeset": [int(node) for node in metadata.nodeset],
        "replication": str(metadata.replication),
        "bridges": metadata.bridges,
        # These two have no effect, but earlier versions do not read a value without them.
        "metadata_version": 1,
        "is_metadata_written": False,
        "last_clean_epoch": state.last_clean,
        "tail": _TAIL.pack(tail.lsn, tail.timestamp_ms, tail.entry_end, tail.byte_end),
        "branches": [[branch.id, branch.first_epoch, int(branch.base)] for branch in state.lineage.branches],
        "branches_dropped": state.lineage.dropped,
    }


def _epochs(fields: Fields) -> EpochState:
    metadata = EpochMetadata(
        first_epoch=Epoch(fields["first_epoch"]),
        nodeset=nodes(fields["nodeset"]),
        replication=Replication.parse(fields["replication"]),
        bridges=fields["bridges"],
    )
    state = EpochState(
        epoch=Epoch(fields["epoch"]),
        owner=NodeId(fields["owner"]),
        metadata=metadata,
        last_clean=Epoch(fields["last_clean_epoch"]),
        tail=_tail(fields["tail"]),
        # Absent in values written by a version without lineages.
        lineage=Lineage(
            tuple(Branch(id, Epoch(epoch), Lsn(base)) for id, epoch, base in fields.get("branches", ())),
            fields.get("branches_dropped", 0),
        ),
    )
    return _checked(state)


def _tail(data: bytes) -> LogPoint:
    lsn, timestamp_ms, entry_end, byte_end = _TAIL.unpack(data) if data else (0, 0, 0, 0)
    return LogPoint(Lsn(lsn), entry_end, byte_end, timestamp_ms)


def _checked(state: EpochState) -> EpochState:
    if not 1 <= state.metadata.first_epoch <= state.epoch:
        raise ValueError(
            f"epoch metadata that starts at epoch {state.metadata.first_epoch} cannot belong to epoch "
            f"{state.epoch}"
        )
    if not 0 <= state.last_clean < state.epoch:
        raise ValueError(f"epoch {state.last_clean} cannot be clean before epoch {state.epoch} began")
    return state


def _derived(
    kind: type[Value], convert: Callable[[Fields], Fields] = lambda fields: fields
) -> ValueCodec[Value]:
    """The codec of a dataclass whose fields are stored unchanged.

    `convert` adapts fields that older versions have written.
    """
    form = named_fields_of(kind)
    return ValueCodec(
        lambda value: form.pack(value, []),
        lambda fields: form.unpack(convert(fields), Section(memoryview(b""))),
    )


EPOCHS: Final = ValueCodec(_epochs_fields, _epochs)
# Older versions may have stored the weight as a whole number.
NODE: Final = _derived(NodeEntry, lambda fields: {**fields, "weight": float(fields["weight"])})
CLUSTER: Final[ValueCodec[str]] = ValueCodec(lambda name: {"name": name}, lambda fields: str(fields["name"]))
EVENTS: Final = _derived(NodeEvents)
INCARNATION: Final[ValueCodec[int]] = ValueCodec(
    lambda number: {"incarnation": number}, lambda fields: int(fields["incarnation"])
)
PURGE: Final[ValueCodec[Lsn]] = ValueCodec(lambda end: {"end": int(end)}, lambda fields: Lsn(fields["end"]))
DIRECTORY: Final = ValueCodec(LogDirectory.to_plain, LogDirectory.from_plain, is_compressed=True)
CUT: Final = ValueCodec(Cut.to_json, cut_from_json)
