"""How metadata values are written down: msgpack, with the number of the format in front.

A stored value is the array [format, fields]. Fields are a map by name, so that a later version may
add one with a default. A higher format than this process knows is refused, never guessed at: a
process that writes back what it only half understood would destroy the rest.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgpack

from logdevice.cuts import Cut, cut_from_json
from logdevice.errors import UnreadableMetadataError, UsageError
from logdevice.metadata.log_directory import LogDirectory
from logdevice.metadata.values import Cluster, LogEpochs, NodeEntry, NodeRole
from logdevice.protocol.lineage import Branch, Lineage
from logdevice.protocol.node_status import CaseMode, NodeCase, NodeEvents
from logdevice.types import Epoch, EpochMetadata, Location, Lsn, NodeId, Replication, nodes

FORMAT: Final = 1
Value = TypeVar("Value")
Fields = dict[str, Any]


def pack(fields: Fields) -> bytes:
    return bytes(msgpack.packb([FORMAT, fields]))


def unpack(data: bytes, build: Callable[[Fields], Value], what: str) -> Value:
    """The value that `build` makes of the stored fields; UnreadableMetadataError if it cannot."""
    try:
        stored_format, fields = msgpack.unpackb(data)
    except Exception as error:  # msgpack raises many kinds for damaged bytes
        raise UnreadableMetadataError(f"{what} is damaged: {error!r}") from None
    if stored_format != FORMAT:
        raise UnreadableMetadataError(
            f"{what} is stored in format {stored_format!r}; this version reads format {FORMAT}"
        )
    try:
        return build(fields)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        raise UnreadableMetadataError(f"{what} is damaged: {error!r}") from None


def encode_log_epochs(epochs: LogEpochs) -> bytes:
    metadata = epochs.metadata
    return pack(
        {
            "epoch": epochs.epoch,
            "owner": int(epochs.owner),
            "first_epoch": metadata.first_epoch,
            "nodeset": [int(node) for node in metadata.nodeset],
            "replication": str(metadata.replication),
            "bridges": metadata.bridges,
            "metadata_version": epochs.metadata_version,
            "is_metadata_written": epochs.is_metadata_written,
            "last_clean_epoch": epochs.last_clean_epoch,
            "tail": epochs.tail,
            "branches": [
                [branch.id, branch.first_epoch, int(branch.base)] for branch in epochs.lineage.branches
            ],
            "branches_dropped": epochs.lineage.dropped,
        }
    )


def decode_log_epochs(data: bytes, what: str) -> LogEpochs:
    return unpack(data, _log_epochs, what)


def _log_epochs(fields: Fields) -> LogEpochs:
    metadata = EpochMetadata(
        first_epoch=Epoch(fields["first_epoch"]),
        nodeset=nodes(fields["nodeset"]),
        replication=Replication.parse(fields["replication"]),
        bridges=fields["bridges"],
    )
    return LogEpochs(
        epoch=Epoch(fields["epoch"]),
        owner=NodeId(fields["owner"]),
        metadata=metadata,
        metadata_version=fields["metadata_version"],
        is_metadata_written=fields["is_metadata_written"],
        last_clean_epoch=Epoch(fields["last_clean_epoch"]),
        tail=fields["tail"],
        # Absent where a version wrote it that did not know lineages.
        lineage=Lineage(
            tuple(Branch(id, Epoch(epoch), Lsn(base)) for id, epoch, base in fields.get("branches", ())),
            fields.get("branches_dropped", 0),
        ),
    )


def encode_node(entry: NodeEntry) -> bytes:
    return pack(
        {
            "address": entry.address,
            "location": str(entry.location),
            "roles": [role.value for role in entry.roles],
            "weight": entry.weight,
            "generation": entry.generation,
        }
    )


def decode_node(data: bytes, what: str) -> NodeEntry:
    return unpack(data, _node, what)


def _node(fields: Fields) -> NodeEntry:
    return NodeEntry(
        address=fields["address"],
        location=Location.parse(fields["location"]),
        roles=tuple(NodeRole(role) for role in fields["roles"]),
        weight=fields["weight"],
        generation=fields["generation"],
    )


def encode_cluster(cluster: Cluster) -> bytes:
    return pack({"name": cluster.name})


def decode_cluster(data: bytes, what: str) -> Cluster:
    return unpack(data, lambda fields: Cluster(fields["name"]), what)


def encode_events(events: NodeEvents) -> bytes:
    cases = [
        {
            "node": int(case.node),
            "mode": case.mode.value,
            "is_recoverable": case.is_recoverable,
            "is_wiped": case.is_wiped,
            "is_ready": case.is_ready,
            "is_settled": case.is_settled,
        }
        for case in events.cases
    ]
    done = [[int(node), is_authoritative] for node, is_authoritative in events.done]
    return pack({"version": events.version, "rebuilding": events.rebuilding, "cases": cases, "done": done})


def decode_events(data: bytes, what: str) -> NodeEvents:
    return unpack(data, _events, what)


def _events(fields: Fields) -> NodeEvents:
    return NodeEvents(
        version=int(fields["version"]),
        rebuilding=int(fields["rebuilding"]),
        cases=tuple(_case(case) for case in fields["cases"]),
        done=tuple((NodeId(node), bool(is_authoritative)) for node, is_authoritative in fields["done"]),
    )


def _case(fields: Fields) -> NodeCase:
    return NodeCase(
        node=NodeId(fields["node"]),
        mode=CaseMode(fields["mode"]),
        is_recoverable=fields["is_recoverable"],
        is_wiped=fields["is_wiped"],
        is_ready=fields["is_ready"],
        is_settled=fields["is_settled"],
    )


def encode_incarnation(incarnation: int) -> bytes:
    return pack({"incarnation": incarnation})


def decode_incarnation(data: bytes, what: str) -> int:
    return unpack(data, lambda fields: int(fields["incarnation"]), what)


def encode_purge(end: Lsn) -> bytes:
    return pack({"end": int(end)})


def decode_purge(data: bytes, what: str) -> Lsn:
    return unpack(data, lambda fields: Lsn(fields["end"]), what)


def encode_directory(directory: LogDirectory) -> bytes:
    # Names and attributes repeat a lot; compressed, a cell holds about ten times as many logs.
    return zlib.compress(pack(directory.to_plain()))


def decode_directory(data: bytes, what: str) -> LogDirectory:
    try:
        plain = zlib.decompress(data)
    except zlib.error as error:
        raise UnreadableMetadataError(f"{what} is damaged: {error}") from None
    return unpack(plain, LogDirectory.from_plain, what)


def encode_cut(cut: Cut) -> bytes:
    return pack(cut.to_json())


def decode_cut(data: bytes, what: str) -> Cut:
    return unpack(data, cut_from_json, what)
