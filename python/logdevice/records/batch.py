"""Entries and the body that carries them: columns in, one Arrow IPC message out, compressed as a whole.

A body is an 8-byte prefix, then the (perhaps compressed) columns:

    version u8 | codec u8 | schema u8 | zero u8 | size of the columns before compression u32

Schema 1 is key and payload, schema 2 adds attributes; both are known to every reader and not sent. A
batch of any other columns (a typed log) is schema 0 and carries its own in front of the columns.
Nothing here loops over entries. A body that cannot be decoded, whatever is in it, is a
CorruptRecordError; one that claims to unpack to more than the settings allow is not unpacked.
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
        return cls[name.upper()]


def from_entries(
    keys: Sequence[bytes | None] | None,
    payloads: Sequence[bytes],
    attributes: Sequence[Mapping[str, str] | None] | None = None,
) -> pa.RecordBatch:
    """A batch of entries; `keys` and `attributes` may be left out, else there is one for each payload."""
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
        raise InvalidArgumentError(f"these entries cannot be a batch: {problem}") from None
    if payload_column.null_count:
        raise InvalidArgumentError("an entry has no payload; an empty one is b''")
    return batch


def encode(batch: pa.RecordBatch, codec: Codec, settings: BatchSettings) -> bytes:
    """The body for this batch. One that compression would only make larger is left uncompressed."""
    if batch.num_rows > settings.batch_entries_max:
        raise PayloadTooLargeError(
            f"the batch has {batch.num_rows} entries, allowed are {settings.batch_entries_max}"
        )
    schema, raw = _serialize(batch)
    if raw.size > settings.batch_raw_bytes_max:
        raise PayloadTooLargeError(
            f"the batch has {raw.size} bytes, allowed are {settings.batch_raw_bytes_max}"
        )
    columns = raw
    if codec is not Codec.NONE:
        columns = _compressor(codec, settings.batch_zstd_level).compress(raw)
        if columns.size >= raw.size:
            codec, columns = Codec.NONE, raw
    body = b"".join((_PREFIX.pack(VERSION, codec, schema, 0, raw.size), columns))
    if len(body) > settings.batch_bytes_max:
        raise PayloadTooLargeError(f"the body has {len(body)} bytes, allowed are {settings.batch_bytes_max}")
    return body


def decode(body: bytes | memoryview, settings: BatchSettings) -> pa.RecordBatch:
    """The batch in a body; of an uncompressed one, the columns are views into it."""
    if len(body) < _PREFIX.size:
        raise CorruptRecordError(f"the body has {len(body)} bytes, too few for its prefix")
    version, codec, schema, zero, raw_size = _PREFIX.unpack_from(body)
    if version != VERSION or zero:
        raise CorruptRecordError(f"the body is of format {version}, known is {VERSION}")
    if schema not in _SCHEMAS and schema != _OWN_SCHEMA:
        raise CorruptRecordError(f"the body has the unknown schema {schema}")
    if raw_size > settings.batch_raw_bytes_max:
        raise CorruptRecordError(
            f"the body says it unpacks to {raw_size} bytes, allowed are {settings.batch_raw_bytes_max}"
        )
    raw = _decompress(pa.py_buffer(memoryview(body)[_PREFIX.size :]), codec, raw_size)
    batch = _deserialize(raw, _SCHEMAS.get(schema))
    if batch.num_rows > settings.batch_entries_max:
        raise CorruptRecordError(
            f"the body has {batch.num_rows} entries, allowed are {settings.batch_entries_max}"
        )
    return batch


def is_quick(body: bytes | memoryview) -> bool:
    """Whether decoding takes microseconds, however large the body: nothing to unpack, no text to check."""
    return len(body) >= _PREFIX.size and body[1] == Codec.NONE and body[2] == _PLAIN_SCHEMA


def _serialize(batch: pa.RecordBatch) -> tuple[int, pa.Buffer]:
    for number, schema in _SCHEMAS.items():
        if batch.schema.equals(schema):
            return number, batch.serialize()
    if len(set(batch.schema.names)) < len(batch.schema):
        raise InvalidArgumentError("a batch has two columns of one name")
    if any(pa.types.is_dictionary(field.type) for field in batch.schema):
        raise InvalidArgumentError("a dictionary-encoded column cannot be in a batch; decode it first")
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
        # Looks at every offset, about 1 ns per entry: without it a made-up offset ends the process.
        batch.validate(full=True)
    except (pa.ArrowException, OSError, EOFError, TypeError, ValueError) as problem:
        raise CorruptRecordError(f"the body's columns cannot be decoded: {problem}") from None
    if stream.tell() != raw.size:
        raise CorruptRecordError(f"the body has {raw.size - stream.tell()} bytes behind its columns")
    return batch


def _own_schema(message: pa.Message) -> pa.Schema:
    schema = pa.ipc.read_schema(message)
    # A name that is no text fails when it is asked for: better here than in the application.
    _names(pa.struct(schema))
    if len(set(schema.names)) < len(schema):
        raise CorruptRecordError("the body has two columns of one name")
    return schema


def _names(kind: pa.DataType) -> list[str]:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return [name for field in fields for name in (field.name, *_names(field.type))]


def _message(stream: pa.BufferReader, wanted: str) -> pa.Message:
    message = pa.ipc.read_message(stream)
    # Arrow reads a schema out of whatever message it is given, and falls over its own feet.
    if message.type != wanted:
        raise CorruptRecordError(f"the body has a {message.type} message where its {wanted} should be")
    return message


def _compressor(codec: Codec, level: int) -> pa.Codec:
    return pa.Codec("zstd", compression_level=level) if codec is Codec.ZSTD else pa.Codec("lz4_raw")


def _decompress(columns: pa.Buffer, codec: int, raw_size: int) -> pa.Buffer:
    if codec == Codec.NONE:
        if columns.size != raw_size:
            raise CorruptRecordError(f"the body has {columns.size} bytes of columns and says {raw_size}")
        return columns
    if codec not in (Codec.ZSTD, Codec.LZ4):
        raise CorruptRecordError(f"the body is compressed by the unknown codec {codec}")
    try:
        return _compressor(Codec(codec), 1).decompress(columns, decompressed_size=raw_size)
    except (pa.ArrowException, OSError) as problem:
        raise CorruptRecordError(f"the body cannot be unpacked: {problem}") from None


def _is_compressed_inside(metadata: pa.Buffer) -> bool:
    """Whether a record batch message compresses its buffers by itself. We never write that, and it would
    unpack to sizes that nobody has checked. `metadata` is a flatbuffer that Arrow has verified; the
    answer is whether field 3 of field 2 of its root is there.
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
