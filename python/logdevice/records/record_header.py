"""The encoded form of a record: the same bytes on the wire and on disk.

A record is a header, followed directly by its body. The header has a fixed part, the copyset, perhaps a
writer tag, and its own checksum. It also has the body's checksum, so that a header can be read, checked and
amended without the body. All numbers are little-endian:

    fixed part    magic u16 | version u8 | copyset length u8 | parts u8 | zero u8 | flags u16 | lsn i64
                  | timestamp_ms i64 | wave u32 | entries u32 | entry_end u64 | byte_end u64
                  | body length u32 | body crc32c u32
    copyset       node u16, for each node of the copyset
    writer tag    if bit 0 of parts is set: writer, incarnation, first_seq, stable_upto u64 | count u32;
                  bit 1 of parts: the writer's appends may be in any order
    checksum      crc32c u32 of all of the above

Decoding copies no body: bodies are views into the buffer. For any contents of the buffer, decoding returns
records or raises CorruptRecordError, and reads nothing outside of the buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct, error
from typing import Final, NamedTuple

from crc32c import crc32c

from logdevice.errors import CorruptRecordError, LocalProtocolError
from logdevice.records.stored import StoredBody
from logdevice.types import Lsn, NodeId, Record, RecordFlags, WriterTag

Buffer = bytes | bytearray | memoryview

MAGIC: Final = 0x524C
VERSION: Final = 1

_FIXED: Final = Struct("<HBBBBHqqIIQQII")
_TAG: Final = Struct("<QQQQI")
_CHECKSUM: Final = Struct("<I")
_NODE_BYTES: Final = 2
_HAS_TAG: Final = 1  # in `parts`
_UNORDERED: Final = 2  # in `parts`, only together with a tag
_PARTS: Final = (0, _HAS_TAG, _HAS_TAG | _UNORDERED)
_CORRUPT: Final = int(RecordFlags.CORRUPT)

HEADER_BYTES_MIN: Final = _FIXED.size + _CHECKSUM.size


class DecodedHeader(NamedTuple):
    """A header, its length, and the length of the body that follows it."""

    record: Record  # without its body, but with its checksum
    body_length: int
    header_length: int


def encode_header(record: Record, *, body_length: int | None = None) -> bytes:
    """The encoded header of a record.

    The body's checksum is taken from the record, and computed only if the record has none. To amend a header
    without its body, pass `body_length`. LocalProtocolError if a field does not fit.
    """
    tag = record.tag
    length = len(record.body) if body_length is None else body_length
    try:
        fixed = _FIXED.pack(
            MAGIC,
            VERSION,
            len(record.copyset),
            0 if tag is None else _HAS_TAG if tag.is_ordered else _HAS_TAG | _UNORDERED,
            0,
            record.flags,
            record.lsn,
            record.timestamp_ms,
            record.wave,
            record.entries,
            record.entry_end,
            record.byte_end,
            length,
            record.crc or crc32c(record.body) if length else 0,
        )
        header = fixed + _encode_copyset(record.copyset)
        if tag is not None:
            header += _TAG.pack(tag.writer, tag.incarnation, tag.first_seq, tag.stable_upto, tag.count)
    except error as problem:
        raise LocalProtocolError(
            f"a field of the record does not fit its encoded form: {problem}", lsn=record.lsn
        ) from None
    return header + _CHECKSUM.pack(crc32c(header))


def encode_records(records: Iterable[Record]) -> list[bytes | memoryview | StoredBody]:
    """Headers and bodies in turn, to be written one after the other. Bodies are not copied."""
    parts: list[bytes | memoryview | StoredBody] = []
    for record in records:
        parts.append(encode_header(record))
        if record.body:
            parts.append(record.body)
    return parts


def decode_header(buffer: Buffer, offset: int = 0) -> DecodedHeader:
    """The header at `offset`. The body after it is not checked."""
    return DecodedHeader(*_decode(buffer, offset, None))


def decode_records(buffer: Buffer) -> tuple[Record, ...]:
    """All records of a buffer that holds nothing else.

    If a body's checksum is wrong, the record is CORRUPT and has an empty body: its header is still of use to
    a reader.
    """
    view = memoryview(buffer).toreadonly()
    records: list[Record] = []
    offset, size = 0, len(view)
    while offset < size:
        record, body_length, header_length = _decode(view, offset, view)
        records.append(record)
        offset += header_length + body_length
    return tuple(records)


def _decode(buffer: Buffer, offset: int, bodies: memoryview | None) -> tuple[Record, int, int]:
    """The fields of a DecodedHeader; the record has its body if `bodies`, the buffer as a view, is given."""
    if len(buffer) - offset < HEADER_BYTES_MIN:
        raise _cut_off(buffer, offset)
    (
        magic, version, copies, parts, zero, flags, lsn, timestamp_ms,
        wave, entries, entry_end, byte_end, body_length, expected_crc,
    ) = _FIXED.unpack_from(buffer, offset)  # fmt: skip
    if magic != MAGIC or version != VERSION:
        raise _unknown_format(offset, magic, version)
    copyset_start = offset + _FIXED.size
    tag_start = copyset_start + copies * _NODE_BYTES
    checksum_start = tag_start + (_TAG.size if parts & _HAS_TAG else 0)
    end = checksum_start + _CHECKSUM.size
    if end > len(buffer):
        raise _cut_off(buffer, offset)
    if crc32c(buffer[offset:checksum_start]) != _CHECKSUM.unpack_from(buffer, checksum_start)[0]:
        raise CorruptRecordError(f"the header at byte {offset} has a wrong checksum")
    if lsn < 0 or parts not in _PARTS or zero:
        raise CorruptRecordError(f"the header at byte {offset} has values that this format does not know")
    copyset = _decode_copyset(bytes(buffer[copyset_start:tag_start]))
    tag = _decode_tag(buffer, tag_start, is_ordered=not parts & _UNORDERED) if parts else None
    body: bytes | memoryview = b""
    if bodies is not None:
        body = _body(bodies, end, body_length)
        if crc32c(body) != expected_crc:
            body, flags = b"", flags | _CORRUPT
    # By position: keywords would take a tenth of the time of decoding.
    record = Record(
        Lsn(lsn), timestamp_ms, copyset, body, flags, wave, entries, entry_end, byte_end, tag, expected_crc
    )
    return record, body_length, end - offset


def _body(view: memoryview, start: int, length: int) -> memoryview:
    missing = start + length - len(view)
    if missing > 0:
        raise CorruptRecordError(
            f"the body at byte {start} is cut off: {missing} of {length} bytes are missing"
        )
    return view[start : start + length]


def _cut_off(buffer: Buffer, offset: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"the header at byte {offset} is cut off: {len(buffer) - offset} bytes are left"
    )


def _unknown_format(offset: int, magic: int, version: int) -> CorruptRecordError:
    if magic != MAGIC:
        return CorruptRecordError(f"no record starts at byte {offset}")
    return CorruptRecordError(
        f"the record at byte {offset} has format {version}; this version reads format {VERSION}"
    )


# A log has few copysets and many records. Records with the same copyset share one tuple, which also makes it
# quick to look up.
@lru_cache(maxsize=1 << 16)
def _decode_copyset(encoded: bytes) -> tuple[NodeId, ...]:
    return tuple(NodeId(node) for (node,) in Struct("<H").iter_unpack(encoded))


@lru_cache(maxsize=1 << 16)
def _encode_copyset(copyset: tuple[NodeId, ...]) -> bytes:
    return Struct(f"<{len(copyset)}H").pack(*copyset)


def _decode_tag(buffer: Buffer, offset: int, *, is_ordered: bool) -> WriterTag:
    writer, incarnation, first_seq, stable_upto, count = _TAG.unpack_from(buffer, offset)
    return WriterTag(writer, incarnation, first_seq, count, stable_upto, is_ordered)
