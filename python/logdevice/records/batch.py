"""Encodes a batch of entries as the body of a record: one Arrow IPC message, compressed as a whole.

A body is an 8-byte prefix, then the columns, which may be compressed:

    version u8 | codec u8 | schema u8 | zero u8 | size of the columns before compression u32

Schema 1 is key and payload, schema 2 adds attributes; every reader knows both, so they are not sent. A batch
with any other columns has schema 0, and its own schema comes before the columns. Nothing here loops over
entries. Decoding raises CorruptRecordError for every body that cannot be decoded, and does not decompress a
body that claims to be larger than the settings allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from struct import Struct, unpack_from
from typing import Final

import pyarrow as pa

from logdevice.errors import CorruptRecordError, InvalidArgumentError, PayloadTooLargeError
from logdevice.settings import BatchSettings

VERSION: Final = 1
ENTRIES: Final = pa.schema([pa.field("key", pa.binary()), pa.field("payload", pa.binary(), nullable=False)])
ENTRIES_WITH_ATTRIBUTES: Final = ENTRIES.append(pa.field("attributes", pa.map_(pa.string(), pa.string())))

_PREFIX: Final = Struct("<BBBBI")
_OWN_SCHEMA: Final = 0
_PLAIN_SCHEMA: Final = 1
_SCHEMAS: Final = {_PLAIN_SCHEMA: ENTRIES, 2: ENTRIES_WITH_ATTRIBUTES}


class Codec(IntEnum):
    """How the columns are compressed; the numbers are in every body."""

    NONE = 0
    ZSTD = 1
    LZ4 = 2

    @classmethod
    def of(cls, name: str) -> Codec:
        """The codec that a setting names."""
        return cls[name.upper()]


def from_entries(
    keys: Sequence[bytes | None] | None,
    payloads: Sequence[bytes],
    attributes: Sequence[Mapping[str, str] | None] | None = None,
) -> pa.RecordBatch:
    """A batch of entries. `keys` and `attributes`, if given, have a value or None for each payload."""
    try:
        payload_column = pa.array(payloads, pa.binary())
        columns = [
            pa.nulls(len(payload_column), pa.binary()) if keys is None else pa.array(keys, pa.binary())
        ]
        columns.append(payload_column)
        schema = ENTRIES
        if attributes is not None:
            schema = ENTRIES_WITH_ATTRIBUTES
            columns.append(pa.array(attributes, schema.field("attributes").type))
        batch = pa.record_batch(columns, schema=schema)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise InvalidArgumentError(f"these entries cannot be made into a batch: {problem}") from None
    if payload_column.null_count:
        raise InvalidArgumentError("the payload of an entry is None, expected bytes; an empty payload is b''")
    return batch


def encode(batch: pa.RecordBatch, codec: Codec, settings: BatchSettings) -> bytes:
    """The body for a batch. It is left uncompressed if compression does not make it smaller.

    PayloadTooLargeError if the batch or the body is larger than the settings allow; InvalidArgumentError if
    it has two columns with the same name, or a dictionary-encoded column.
    """
    if batch.num_rows > settings.batch_entries_max:
        raise PayloadTooLargeError(
            f"the batch has {batch.num_rows} entries, at most {settings.batch_entries_max} are allowed"
        )
    schema, raw = _serialize(batch)
    if raw.size > settings.batch_raw_bytes_max:
        raise PayloadTooLargeError(
            f"the batch has {raw.size} bytes, batch_raw_bytes_max allows {settings.batch_raw_bytes_max}"
        )
    columns = raw
    if codec is not Codec.NONE:
        columns = _compressor(codec, settings.batch_zstd_level).compress(raw)
        if columns.size >= raw.size:
            codec, columns = Codec.NONE, raw
    body = b"".join((_PREFIX.pack(VERSION, codec, schema, 0, raw.size), columns))
    if len(body) > settings.batch_bytes_max:
        raise PayloadTooLargeError(
            f"the body has {len(body)} bytes, batch_bytes_max allows {settings.batch_bytes_max}"
        )
    return body


def decode(body: bytes | memoryview, settings: BatchSettings) -> pa.RecordBatch:
    """The batch in a body. The columns of an uncompressed body are views into it."""
    if len(body) < _PREFIX.size:
        raise CorruptRecordError(f"the body has {len(body)} bytes, too few for its prefix")
    version, codec, schema, zero, raw_size = _PREFIX.unpack_from(body)
    if version != VERSION:
        raise CorruptRecordError(f"the body has format {version}; this version reads format {VERSION}")
    if zero:
        raise CorruptRecordError(f"the body's prefix has {zero} in the byte that must be 0")
    if schema not in _SCHEMAS and schema != _OWN_SCHEMA:
        raise CorruptRecordError(f"the body has the unknown schema {schema}")
    if raw_size > settings.batch_raw_bytes_max:
        raise CorruptRecordError(
            f"the body claims {raw_size} bytes before compression, batch_raw_bytes_max allows "
            f"{settings.batch_raw_bytes_max}"
        )
    raw = _decompress(pa.py_buffer(memoryview(body)[_PREFIX.size :]), codec, raw_size)
    batch = _deserialize(raw, _SCHEMAS.get(schema))
    if batch.num_rows > settings.batch_entries_max:
        raise CorruptRecordError(
            f"the body has {batch.num_rows} entries, at most {settings.batch_entries_max} are allowed"
        )
    return batch


def is_quick(body: bytes | memoryview) -> bool:
    """Whether decoding takes microseconds, however large the body: no compression, no text to check."""
    return len(body) >= _PREFIX.size and body[1] == Codec.NONE and body[2] == _PLAIN_SCHEMA


def _serialize(batch: pa.RecordBatch) -> tuple[int, pa.Buffer]:
    for number, schema in _SCHEMAS.items():
        if batch.schema.equals(schema):
            return number, batch.serialize()
    if len(set(batch.schema.names)) < len(batch.schema):
        raise InvalidArgumentError("a batch has two columns with the same name")
    if any(pa.types.is_dictionary(field.type) for field in batch.schema):
        raise InvalidArgumentError("a batch cannot have a dictionary-encoded column; decode it first")
    sink = pa.BufferOutputStream()
    sink.write(batch.schema.serialize())
    sink.write(batch.serialize())
    return _OWN_SCHEMA, sink.getvalue()


def _deserialize(raw: pa.Buffer, schema: pa.Schema | None) -> pa.RecordBatch:
    stream = pa.BufferReader(raw)
    try:
        if schema is None:
            schema = _own_schema(_message(stream, "schema"))
        columns = _message(stream, "record batch")
        if _is_compressed_inside(columns.metadata):
            raise CorruptRecordError("the body's columns are compressed twice")
        batch = pa.ipc.read_record_batch(columns, schema)
        # Checks every offset, about 1 ns per entry: an invalid offset would crash the process.
        batch.validate(full=True)
    except (pa.ArrowException, OSError, EOFError, TypeError, ValueError) as problem:
        raise CorruptRecordError(f"the body's columns cannot be decoded: {problem}") from None
    if stream.tell() != raw.size:
        raise CorruptRecordError(f"the body has {raw.size - stream.tell()} bytes after its columns")
    return batch


def _own_schema(message: pa.Message) -> pa.Schema:
    schema = pa.ipc.read_schema(message)
    # A name that is not valid text fails when it is read: better here than in the application.
    _names(pa.struct(schema))
    if len(set(schema.names)) < len(schema):
        raise CorruptRecordError("the body has two columns with the same name")
    return schema


def _names(kind: pa.DataType) -> list[str]:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return [name for field in fields for name in (field.name, *_names(field.type))]


def _message(stream: pa.BufferReader, wanted: str) -> pa.Message:
    message = pa.ipc.read_message(stream)
    # Arrow would read a schema out of any message, and crash.
    if message.type != wanted:
        raise CorruptRecordError(f"the body has a {message.type} message, expected its {wanted}")
    return message


def _compressor(codec: Codec, level: int) -> pa.Codec:
    return pa.Codec("zstd", compression_level=level) if codec is Codec.ZSTD else pa.Codec("lz4_raw")


def _decompress(columns: pa.Buffer, codec: int, raw_size: int) -> pa.Buffer:
    if codec == Codec.NONE:
        if columns.size != raw_size:
            raise CorruptRecordError(f"the body has {columns.size} bytes of columns, but claims {raw_size}")
        return columns
    if codec not in (Codec.ZSTD, Codec.LZ4):
        raise CorruptRecordError(f"the body is compressed with the unknown codec {codec}")
    try:
        return _compressor(Codec(codec), 1).decompress(columns, decompressed_size=raw_size)
    except (pa.ArrowException, OSError) as problem:
        raise CorruptRecordError(f"the body cannot be decompressed: {problem}") from None


def _is_compressed_inside(metadata: pa.Buffer) -> bool:
    """Whether the buffers in a record batch message are compressed themselves.

    `encode` never writes that, and they would decompress to sizes that were not checked. `metadata` is a
    flatbuffer that Arrow has verified; field 3 of field 2 of its root is present if they are compressed.
    """
    data = memoryview(metadata)

    def field(table: int, index: int) -> int:
        vtable = table - int(unpack_from("<i", data, table)[0])
        slot = 4 + 2 * index
        is_known = slot < unpack_from("<H", data, vtable)[0]
        distance = int(unpack_from("<H", data, vtable + slot)[0]) if is_known else 0
        return table + distance if distance else 0

    root = int(unpack_from("<I", data, 0)[0])
    header = field(root, 2)
    return field(header + int(unpack_from("<I", data, header)[0]), 3) != 0
