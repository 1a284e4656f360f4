"""Every byte of a segment: its header, the groups in it, the changes in a group.

Pure functions; nothing here opens a file. A segment is one sector of header, then groups. A group is what one
write made durable, all or none. It starts at a sector: a head, the changes, then the bodies of the records
among them. Changes and bodies are kept apart, so that an index can be rebuilt without reading bodies. Numbers
are little-endian. docs/storage.md has a picture; the vectors in tests/test_layout.py freeze the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from logdevice.protocol.log_state.store_write import AmendRecord, DeleteRecords, PutState, TrimLog
from logdevice.types import LogId, Lsn, NodeId

Buffer = bytes | bytearray | memoryview

# The smallest piece that a disk promises to write completely or not at all. No two groups share a sector,
# so that writing a group cannot damage an earlier one.
SECTOR: Final = 512
VERSION: Final = 1

_SEGMENT_MAGIC: Final = b"LDsegm"
_SEGMENT: Final = Struct("<6sHQQQ")
_GROUP_MAGIC: Final = b"LDgr"
_GROUP: Final = Struct("<4sQIIQI")
_PLACE: Final = Struct("<QQQ")
_CRC: Final = Struct("<I")
GROUP_HEAD_BYTES: Final = _GROUP.size + _CRC.size


class SegmentHeader(NamedTuple):
    """The first sector of a segment."""

    store: int  # random, the same in all segments of a store: recognises segments of another store
    segment: int
    previous_end: int  # where the segment before ends: nothing after that was acknowledged


class GroupHead(NamedTuple):
    number: int  # counts up over the life of the store
    changes_bytes: int
    changes_crc: int
    bodies_bytes: int
    bodies_crc: int

    @property
    def size(self) -> int:
        """How many bytes the group takes, its padding included."""
        return padded(GROUP_HEAD_BYTES + self.changes_bytes + self.bodies_bytes)


class RecordPut(NamedTuple):
    """A record was stored. Its body is `body_bytes` long and follows those of the RecordPuts before it."""

    log: LogId
    lsn: Lsn
    header: bytes  # as records/record_header.py encodes it
    body_bytes: int
    route: bytes | None = None  # as index_layout.py encodes it, if it is known already; not written


Change = RecordPut | AmendRecord | DeleteRecords | PutState | TrimLog


def padded(size: int) -> int:
    return -(-size // SECTOR) * SECTOR


def encode_segment_header(header: SegmentHeader) -> bytes:
    fields = _SEGMENT.pack(_SEGMENT_MAGIC, VERSION, *header)
    return (fields + _CRC.pack(crc32c(fields))).ljust(SECTOR, b"\0")


def decode_segment_header(buffer: Buffer) -> SegmentHeader | None:
    """The header at the start of `buffer`; None if there is no complete header of this version."""
    if len(buffer) < SECTOR:
        return None
    magic, version, store, segment, previous_end = _SEGMENT.unpack_from(buffer)
    expected = _CRC.unpack_from(buffer, _SEGMENT.size)[0]
    if (magic, version) != (_SEGMENT_MAGIC, VERSION) or crc32c(buffer[: _SEGMENT.size]) != expected:
        return None
    return SegmentHeader(store, segment, previous_end)


def encode_group_head(head: GroupHead, *, store: int, segment: int, offset: int) -> bytes:
    fields = _GROUP.pack(_GROUP_MAGIC, *head)
    return fields + _CRC.pack(_head_crc(fields, store, segment, offset))


def decode_group_head(buffer: Buffer, *, store: int, segment: int, offset: int) -> GroupHead | None:
    """The group head at the start of `buffer`, which was read at `offset` of a segment; None without one."""
    if len(buffer) < GROUP_HEAD_BYTES or bytes(buffer[:4]) != _GROUP_MAGIC:
        return None
    expected = _CRC.unpack_from(buffer, _GROUP.size)[0]
    if _head_crc(buffer[: _GROUP.size], store, segment, offset) != expected:
        return None
    return GroupHead(*_GROUP.unpack_from(buffer)[1:])


def _head_crc(fields: Buffer, store: int, segment: int, offset: int) -> int:
    # The place is part of the checksum, so that bytes in a body that look like a head are not taken for one.
    return crc32c(fields, crc32c(_PLACE.pack(store, segment, offset)))


_ENTRY: Final = Struct("<BI")
_RECORD: Final = Struct("<QQI")
_AMEND: Final = Struct("<QQHI")
_RANGE: Final = Struct("<QQQ")
_STATE: Final = Struct("<QH")
_TRIM: Final = Struct("<QQ")
_PUT, _AMENDED, _DELETED, _STATE_PUT, _TRIMMED = range(1, 6)


def encode_change(change: Change) -> bytes:
    match change:
        case RecordPut():
            kind = _PUT
            content = _RECORD.pack(change.log, change.lsn, change.body_bytes) + change.header
        case AmendRecord():
            kind = _AMENDED
            content = _AMEND.pack(change.log, change.lsn, change.flags, change.wave)
            content += _nodes(len(change.copyset)).pack(*change.copyset)
        case DeleteRecords():
            kind, content = _DELETED, _RANGE.pack(change.log, change.start, change.end)
        case PutState():
            name = change.name.encode()
            kind, content = _STATE_PUT, _STATE.pack(change.log, len(name)) + name + change.value
        case TrimLog():
            kind, content = _TRIMMED, _TRIM.pack(change.log, change.end)
    return _ENTRY.pack(kind, len(content)) + content


def decode_changes(buffer: bytes) -> Iterator[Change]:
    """The changes of a group; the caller has checked its checksum."""
    offset = 0
    while offset < len(buffer):
        kind, length = _ENTRY.unpack_from(buffer, offset)
        offset += _ENTRY.size
        yield _decode_change(kind, buffer[offset : offset + length])
        offset += length


def _decode_change(kind: int, content: bytes) -> Change:
    if kind == _PUT:
        log, lsn, body_bytes = _RECORD.unpack_from(content)
        return RecordPut(LogId(log), Lsn(lsn), content[_RECORD.size :], body_bytes)
    if kind == _AMENDED:
        log, lsn, flags, wave = _AMEND.unpack_from(content)
        members = content[_AMEND.size :]
        copyset = tuple(NodeId(node) for node in _nodes(len(members) // 2).unpack(members))
        return AmendRecord(LogId(log), Lsn(lsn), copyset, flags, wave)
    if kind == _DELETED:
        log, start, end = _RANGE.unpack(content)
        return DeleteRecords(LogId(log), Lsn(start), Lsn(end))
    if kind == _STATE_PUT:
        log, length = _STATE.unpack_from(content)
        value_start = _STATE.size + length
        return PutState(LogId(log), content[_STATE.size : value_start].decode(), content[value_start:])
    assert kind == _TRIMMED, f"there is no change of kind {kind}"
    log, end = _TRIM.unpack(content)
    return TrimLog(LogId(log), Lsn(end))


def _nodes(count: int) -> Struct:
    return Struct(f"<{count}H")
