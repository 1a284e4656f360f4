"""The encoded form of a record: nothing is lost, bodies are not copied, and damage is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import CorruptRecordError, LocalProtocolError
from logdevice.records.record_header import (
    HEADER_BYTES_MIN,
    decode_header,
    decode_records,
    encode_header,
    encode_records,
)
from logdevice.records.stored import joined
from logdevice.types import LSN_MAX, Lsn, NodeId, Record, RecordFlags, WriterTag, nodes

U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
TAGS = st.builds(WriterTag, writer=U64, incarnation=U64, first_seq=U64, count=U32, stable_upto=U64)
RECORDS = st.builds(
    Record,
    lsn=st.integers(0, LSN_MAX).map(Lsn),
    timestamp_ms=st.integers(-(1 << 63), (1 << 63) - 1),
    copyset=st.lists(st.integers(0, 65535).map(NodeId), max_size=255).map(tuple),
    body=st.binary(max_size=100),
    flags=st.integers(0, 65535),
    wave=U32,
    entries=U32,
    entry_end=U64,
    byte_end=U64,
    tag=st.none() | TAGS,
)
PLAIN = Record(Lsn.of(5, 3), 1_700_000_000_000, nodes((3, 1, 2)), b"hello", 0, 1, 2, 30, 400)
TAGGED = replace(PLAIN, tag=WriterTag(writer=7, incarnation=2, first_seq=90, count=2, stable_upto=88))


def encoded(*records: Record) -> bytes:
    return joined(encode_records(records))


def with_byte(data: bytes, index: int, value: int) -> bytes:
    return data[:index] + bytes([value]) + data[index + 1 :]


def refusal(data: bytes) -> str:
    with pytest.raises(CorruptRecordError) as caught:
        decode_records(data)
    return caught.value.message


@given(st.lists(RECORDS, max_size=4))
def test_what_is_encoded_is_decoded(records: list[Record]) -> None:
    assert decode_records(encoded(*records)) == tuple(records)


@given(RECORDS)
def test_a_header_is_decoded_without_its_body(record: Record) -> None:
    header = encode_header(record)
    decoded = decode_header(b"before" + header, 6)
    assert decoded.record == replace(record, body=b"")
    assert (decoded.body_length, decoded.record.crc) == (len(record.body), crc32c(record.body))
    assert decoded.header_length == len(header)
    # A copyset of at most 255 nodes, and a tag.
    assert HEADER_BYTES_MIN <= len(header) <= HEADER_BYTES_MIN + 255 * 2 + 36


# These bytes are on disks: a change that breaks this test needs a new format version.
def test_the_bytes_of_format_1_never_change() -> None:
    fixed = "4c5201030000000003000000050000000068e5cf8b01000001000000020000001e000000000000009001000000000000"
    assert encoded(PLAIN).hex() == fixed + "050000004cbb719a030001000200" + "f0dddb6c" + b"hello".hex()
    tag = "0700000000000000" + "0200000000000000" + "5a00000000000000" + "5800000000000000" + "02000000"
    tagged = fixed[:8] + "01" + fixed[10:]
    assert encode_header(TAGGED).hex() == tagged + "050000004cbb719a030001000200" + tag + "9fa4345b"


def test_bodies_are_not_copied() -> None:
    body = b"x" * 1000
    parts = encode_records([replace(PLAIN, body=body)])
    assert parts[1] is body
    buffer = joined(parts)
    (record,) = decode_records(buffer)
    assert isinstance(record.body, memoryview)
    assert record.body.obj is buffer
    assert record.body.readonly


def test_a_writable_buffer_gives_bodies_that_cannot_be_changed() -> None:
    (record,) = decode_records(bytearray(encoded(PLAIN)))
    assert isinstance(record.body, memoryview)
    assert record.body.readonly


def test_an_empty_body_takes_no_part_of_its_own() -> None:
    assert len(encode_records([replace(PLAIN, body=b"")])) == 1


def test_a_checksum_that_is_known_is_not_computed_again() -> None:
    record = Record(Lsn(5), 0, nodes((1, 2)), b"body", crc=12345)
    assert decode_header(encode_header(record)).record.crc == 12345
    without_body = replace(record, body=b"")  # as in an amend
    assert decode_records(encoded(without_body)) == (without_body,)


def test_a_record_that_was_decoded_carries_its_checksum_on() -> None:
    whole = encoded(PLAIN)
    (record,) = decode_records(whole)
    assert record.crc == crc32c(PLAIN.body)
    assert encoded(replace(record, body=b"HELLO")) == whole[:-5] + b"HELLO"


def test_a_header_is_amended_without_the_body() -> None:
    old = decode_header(encode_header(PLAIN))
    amended = replace(old.record, copyset=nodes((4, 5, 6)), wave=9)
    header = encode_header(amended, body_length=old.body_length)
    assert decode_records(header + bytes(PLAIN.body)) == (replace(amended, body=b"hello"),)


def test_consecutive_records_share_their_copyset() -> None:
    one, two = decode_records(encoded(PLAIN, replace(PLAIN, lsn=Lsn.of(5, 4))))
    assert one.copyset is two.copyset


def test_a_damaged_body_leaves_a_corrupt_record_and_its_neighbours_whole() -> None:
    after = replace(PLAIN, lsn=Lsn.of(5, 4))
    data = with_byte(encoded(PLAIN, after), len(encode_header(PLAIN)), 0)
    corrupt, whole = decode_records(data)
    assert corrupt == replace(PLAIN, body=b"", flags=RecordFlags.CORRUPT)
    assert whole == after


@pytest.mark.parametrize("record", [PLAIN, TAGGED], ids=["plain", "tagged"])
def test_every_damaged_bit_of_a_header_is_noticed(record: Record) -> None:
    data = encoded(record)
    for index in range(len(encode_header(record))):
        for bit in range(8):
            assert refusal(with_byte(data, index, data[index] ^ (1 << bit)))


@pytest.mark.parametrize("record", [PLAIN, TAGGED], ids=["plain", "tagged"])
def test_a_record_cut_off_anywhere_is_noticed(record: Record) -> None:
    data = encoded(record)
    for length in range(1, len(data)):
        assert "cut off" in refusal(data[:length])


def test_a_refusal_says_what_is_wrong() -> None:
    data = encoded(PLAIN)
    assert refusal(b"\x00" * 100) == "no record starts at byte 0"
    assert refusal(with_byte(data, 2, 9)) == (
        "the record at byte 0 has format 9; this version reads format 1"
    )
    assert refusal(with_byte(data, 20, 9)) == "the header at byte 0 has a wrong checksum"
    assert refusal(data + data[:20]) == f"the header at byte {len(data)} is cut off: 20 bytes are left"
    assert refusal(data[:-2]) == f"the body at byte {len(data) - 5} is cut off: 2 of 5 bytes are missing"


# A defect of a newer writer of the same version: the checksum is right, the values are not allowed.
@pytest.mark.parametrize(("index", "value"), [(4, 2), (5, 1), (15, 128)], ids=["parts", "zero", "lsn"])
def test_values_the_format_does_not_know_are_refused_even_with_a_right_checksum(
    index: int, value: int
) -> None:
    header = with_byte(encode_header(PLAIN)[:-4], index, value)
    assert "does not know" in refusal(header + crc32c(header).to_bytes(4, "little") + bytes(PLAIN.body))


@given(st.binary(max_size=300))
def test_garbage_is_refused_and_nothing_else_happens(data: bytes) -> None:
    if data:
        refusal(data)
    else:
        assert decode_records(data) == ()


@given(st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_mutated_records_are_refused_or_known_to_be_corrupt(
    records: list[Record], data: st.DataObject
) -> None:
    content = bytearray(encoded(*records))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode_records(bytes(content))
    except CorruptRecordError:
        return
    for record, original in zip(found, records, strict=True):
        is_corrupt = (record.lsn, record.flags) == (original.lsn, original.flags | RecordFlags.CORRUPT)
        assert record == original or is_corrupt


@pytest.mark.parametrize(
    "record",
    [
        replace(PLAIN, copyset=nodes(range(256))),
        replace(PLAIN, copyset=nodes((65536,))),
        replace(PLAIN, wave=1 << 32),
        replace(TAGGED, tag=WriterTag(-1, 0, 0, 0, 0)),
    ],
    ids=["many copies", "large node", "large wave", "negative writer"],
)
def test_a_record_that_does_not_fit_is_not_encoded(record: Record) -> None:
    with pytest.raises(LocalProtocolError, match="does not fit"):
        encode_header(record)
