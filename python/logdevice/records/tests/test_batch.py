"""Bodies: the entries come back unchanged, damage is named, and no body fills a reader's memory."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import CorruptRecordError, InvalidArgumentError, PayloadTooLargeError
from logdevice.records import batch
from logdevice.records.batch import Codec
from logdevice.settings import BatchSettings

SETTINGS = BatchSettings()
SMALL = BatchSettings(batch_entries_max=10, batch_bytes_max=3_000, batch_raw_bytes_max=10_000)
NAMES = st.text(st.characters(codec="utf-8"), max_size=5)
ENTRY = st.tuples(
    st.none() | st.binary(max_size=20),
    st.binary(max_size=50),
    st.none() | st.dictionaries(NAMES, NAMES, max_size=3),
)
ZSTD_BODY = (
    "010101002801000028b52ffd602800e503000206111cc025ad01ffaeffff7fed8c5d00bff18d9be126ad95c9368410b2"
    "650aa7c3b2100a87a1ca984a419ba615b567459a038e78f2345a3439386a146fed79442a6de089bbbb190029265057b7"
    "600caea90c06b2bc1000d941e72588edc130b01b180d8c0686066403b881d1c0686034301ad80db0b180e0017401"
)
every_codec = pytest.mark.parametrize("codec", Codec)


def batch_of(count: int, payload: bytes = b"payload " * 10) -> pa.RecordBatch:
    return batch.from_entries([b"key-%d" % number for number in range(count)], [payload] * count)


def body_of(version: int, codec: int, schema: int, zero: int, raw_size: int, columns: bytes) -> bytes:
    return bytes((version, codec, schema, zero)) + raw_size.to_bytes(4, "little") + columns


def plain_body(*messages: Any, schema: int = 1) -> bytes:
    columns = b"".join(bytes(message) for message in messages)
    return body_of(1, Codec.NONE, schema, 0, len(columns), columns)


def refusal(body: bytes, settings: BatchSettings = SETTINGS) -> str:
    with pytest.raises(CorruptRecordError) as caught:
        batch.decode(body, settings)
    return caught.value.message


@every_codec
@given(entries=st.lists(ENTRY, max_size=6), has_attributes=st.booleans())
def test_entries_come_back_as_they_were(codec: Codec, entries: list[Any], has_attributes: bool) -> None:
    keys, payloads, attributes = ([entry[column] for entry in entries] for column in range(3))
    original = batch.from_entries(keys, payloads, attributes if has_attributes else None)
    decoded = batch.decode(batch.encode(original, codec, SETTINGS), SETTINGS)
    assert decoded.column("key").to_pylist() == keys
    assert decoded.column("payload").to_pylist() == payloads
    if has_attributes:
        maps = [None if pairs is None else dict(pairs) for pairs in decoded.column("attributes").to_pylist()]
        assert maps == attributes
    else:
        assert decoded.schema.equals(batch.ENTRIES)


def test_entries_without_keys_have_null_keys() -> None:
    assert batch.from_entries(None, [b"a", b"b"]).column("key").to_pylist() == [None, None]


@every_codec
def test_other_columns_pass_through(codec: Codec) -> None:
    typed = pa.record_batch(
        {"user": pa.array([1, 2, None]), "tags": pa.array([["a"], [], None]), "payload": [b"x", b"y", b"z"]}
    )
    decoded = batch.decode(batch.encode(typed, codec, SETTINGS), SETTINGS)
    assert decoded.schema.equals(typed.schema)
    assert decoded.equals(typed)


def test_compression_makes_a_body_smaller() -> None:
    sizes = {codec: len(batch.encode(batch_of(1000), codec, SETTINGS)) for codec in Codec}
    assert sizes[Codec.ZSTD] * 3 < sizes[Codec.NONE]
    assert sizes[Codec.LZ4] * 3 < sizes[Codec.NONE]


@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.LZ4])
def test_what_compression_would_make_larger_stays_uncompressed(codec: Codec) -> None:
    noise = Random(1).randbytes(100_000)
    body = batch.encode(batch.from_entries(None, [noise]), codec, SETTINGS)
    assert body == batch.encode(batch.from_entries(None, [noise]), Codec.NONE, SETTINGS)
    assert batch.decode(body, SETTINGS).column("payload").to_pylist() == [noise]


def test_codecs_are_named_as_in_the_settings() -> None:
    assert [Codec.of(name) for name in ("none", "zstd", "lz4")] == [Codec.NONE, Codec.ZSTD, Codec.LZ4]


def test_an_uncompressed_body_is_not_copied_wherever_it_lies_in_its_buffer() -> None:
    original = batch_of(50)
    body = batch.encode(original, Codec.NONE, SETTINGS)
    for shift in range(8):
        buffer = b"-" * shift + body
        decoded = batch.decode(memoryview(buffer)[shift:], SETTINGS)
        payloads = decoded.column("payload").buffers()[2]
        start = pa.py_buffer(buffer).address
        assert start <= payloads.address < start + len(buffer)
        assert decoded.equals(original)


# Bodies are on disks: a change that breaks this test needs a new version byte.
def test_bodies_of_version_1_stay_readable() -> None:
    zstd = bytes.fromhex(ZSTD_BODY)
    assert batch.decode(zstd, SETTINGS).to_pylist() == [
        {"key": b"k", "payload": b"hello"},
        {"key": None, "payload": b"hello hello hello"},
    ]


@pytest.mark.parametrize(
    ("keys", "payloads", "attributes"),
    [
        ([b"k"], [b"a", b"b"], None),
        (None, [b"a", None], None),
        (None, [7], None),
        (None, [b"a"], [{"x": 5}]),
        (None, [b"a"], []),
    ],
    ids=["too few keys", "no payload", "a number", "a number in attributes", "too few attributes"],
)
def test_an_invalid_entry_is_refused(keys: Any, payloads: Any, attributes: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        batch.from_entries(keys, payloads, attributes)


def test_a_dictionary_encoded_column_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="decode it first"):
        batch.encode(pa.record_batch({"x": pa.array(["a"]).dictionary_encode()}), Codec.NONE, SETTINGS)


def test_two_columns_with_the_same_name_are_refused() -> None:
    twins = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(InvalidArgumentError, match="two columns with the same name"):
        batch.encode(twins, Codec.NONE, SETTINGS)
    body = plain_body(twins.schema.serialize(), twins.serialize(), schema=0)
    assert refusal(body) == "the body has two columns with the same name"


def test_a_column_whose_name_is_not_text_is_refused() -> None:
    typed = batch.encode(pa.record_batch({"outer": pa.array([{"inner": 1}])}), Codec.NONE, SETTINGS)
    assert "cannot be decoded" in refusal(typed.replace(b"inner", b"\xff\xfe\xfd\xfc\xfb"))


def test_too_many_entries_are_refused() -> None:
    assert batch.encode(batch_of(10), Codec.ZSTD, SMALL)
    with pytest.raises(PayloadTooLargeError, match="11 entries, at most 10 are allowed"):
        batch.encode(batch_of(11), Codec.ZSTD, SMALL)


def test_too_many_bytes_are_refused_before_and_after_compression() -> None:
    with pytest.raises(PayloadTooLargeError, match="the batch has"):
        batch.encode(batch_of(1, b"x" * 20_000), Codec.ZSTD, SMALL)
    with pytest.raises(PayloadTooLargeError, match="the body has"):
        batch.encode(batch_of(1, b"x" * 5_000), Codec.NONE, SMALL)
    assert batch.encode(batch_of(1, b"x" * 5_000), Codec.ZSTD, SMALL)


def test_a_refusal_says_what_is_wrong() -> None:
    columns = bytes(batch_of(3).serialize())
    size = len(columns)
    assert refusal(b"\x01") == "the body has 1 bytes, too few for its prefix"
    assert refusal(body_of(2, 0, 1, 0, size, columns)) == (
        "the body has format 2; this version reads format 1"
    )
    assert refusal(body_of(1, 0, 1, 7, size, columns)) == "the body's prefix has 7 in the byte that must be 0"
    assert refusal(body_of(1, 0, 9, 0, size, columns)) == "the body has the unknown schema 9"
    assert refusal(body_of(1, 9, 1, 0, size, columns)) == "the body is compressed with the unknown codec 9"
    assert refusal(body_of(1, 0, 1, 0, size + 1, columns)).startswith(f"the body has {size} bytes of columns")
    assert refusal(body_of(1, 1, 1, 0, size, columns)).startswith("the body cannot be decompressed")
    assert refusal(plain_body(columns, b"more")) == "the body has 4 bytes after its columns"
    assert refusal(plain_body(b"garbage!" * 9)).startswith("the body's columns cannot be decoded")
    wrong_order = plain_body(columns, batch_of(3).schema.serialize(), schema=0)
    assert refusal(wrong_order) == "the body has a record batch message, expected its schema"
    assert refusal(batch.encode(batch_of(11), Codec.NONE, SETTINGS), SMALL) == (
        "the body has 11 entries, at most 10 are allowed"
    )


def test_a_body_that_would_decompress_to_too_much_is_not_decompressed() -> None:
    bomb = pa.Codec("zstd").compress(bytes(100_000_000), asbytes=True)
    assert len(bomb) < 20_000
    assert refusal(body_of(1, Codec.ZSTD, 1, 0, 100_000_000, bomb), SMALL) == (
        "the body claims 100000000 bytes before compression, batch_raw_bytes_max allows 10000"
    )
    # A false size: nothing larger than the claimed size is allocated.
    assert refusal(body_of(1, Codec.ZSTD, 1, 0, 10_000, bomb), SMALL).startswith(
        "the body cannot be decompressed"
    )


def test_columns_compressed_inside_are_refused_because_their_size_is_not_checked() -> None:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.ENTRIES, options=options) as stream:
        stream.write_batch(batch_of(1, bytes(1_000_000)))
    reader = pa.BufferReader(sink.getvalue())
    schema, columns = pa.ipc.read_message(reader).serialize(), pa.ipc.read_message(reader).serialize()
    assert refusal(plain_body(columns)) == "the body's columns are compressed twice"
    assert refusal(plain_body(schema, columns, schema=0)) == "the body's columns are compressed twice"


def test_an_offset_outside_of_its_column_is_found() -> None:
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1 << 30, 5)))
    payload = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"hello")])
    crafted = pa.record_batch([pa.nulls(2, pa.binary()), payload], schema=batch.ENTRIES)
    assert "cannot be decoded" in refusal(plain_body(crafted.serialize()))


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    refusal(data)


@every_codec
@given(data=st.data())
def test_mutated_bodies_are_refused_or_sound_batches_within_the_limits(
    codec: Codec, data: st.DataObject
) -> None:
    entries = batch.from_entries([b"k", None], [b"hello", b"hello hello"], [{"a": "b"}, None])
    typed = pa.record_batch({"user": pa.array([1, None]), "tags": pa.array([["a"], []])})
    original = data.draw(st.sampled_from([entries, typed]))
    content = bytearray(batch.encode(original, codec, SMALL))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = batch.decode(bytes(content), SMALL)
    except CorruptRecordError:
        return
    decoded.validate(full=True)
    assert decoded.num_rows <= SMALL.batch_entries_max
    assert len(decoded.to_pylist()) == decoded.num_rows


@pytest.mark.parametrize(
    ("entries", "codec", "is_quick"),
    [
        (batch.from_entries(None, [b"x" * 500]), Codec.NONE, True),
        (batch.from_entries(None, [b"x" * 500]), Codec.ZSTD, False),
        (batch.from_entries(None, [b"x"], [{"a": "b"}]), Codec.NONE, False),
        (pa.record_batch({"word": ["x"]}), Codec.NONE, False),
    ],
)
def test_a_body_is_quick_without_compression_and_text(
    entries: pa.RecordBatch, codec: Codec, is_quick: bool
) -> None:
    assert batch.is_quick(batch.encode(entries, codec, SETTINGS)) is is_quick


def test_an_invalid_body_is_not_quick() -> None:
    assert not batch.is_quick(b"")
    assert not batch.is_quick(b"\1\0\1")
