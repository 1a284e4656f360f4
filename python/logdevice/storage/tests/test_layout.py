"""The bytes of segments and of the index: encoded values decode again, and the format does not drift."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.log_state.store_write import AmendRecord, DeleteRecords, PutState, TrimLog
from logdevice.storage import index_layout
from logdevice.storage.layout import (
    GROUP_HEAD_BYTES,
    SECTOR,
    Change,
    GroupHead,
    RecordPut,
    SegmentHeader,
    decode_changes,
    decode_group_head,
    decode_segment_header,
    encode_change,
    encode_group_head,
    encode_segment_header,
)
from logdevice.types import LogId, Lsn, LsnRange, NodeId, nodes

logs = st.integers(0, (1 << 64) - 1).map(LogId)
lsns = st.integers(0, (1 << 63) - 1).map(Lsn)
u32 = st.integers(0, (1 << 32) - 1)
u64 = st.integers(0, (1 << 64) - 1)
copysets = st.lists(st.integers(0, 65535).map(NodeId), max_size=255).map(tuple)
flags = st.integers(0, 65535)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(RecordPut, logs, lsns, st.binary(), u32, route=st.none()),
    st.builds(AmendRecord, logs, lsns, copysets, flags, u32),
    st.builds(DeleteRecords, logs, lsns, lsns),
    st.builds(PutState, logs, st.text(max_size=30), st.binary()),
    st.builds(TrimLog, logs, lsns),
)
heads = st.builds(GroupHead, u64, u32, u32, u64, u32)


@given(st.lists(changes, max_size=8))
def test_encoded_changes_decode_to_the_same_changes(written: list[Change]) -> None:
    assert list(decode_changes(b"".join(map(encode_change, written)))) == written


@given(heads, u64, u64, u64)
def test_a_group_head_is_found_only_where_it_was_written(
    head: GroupHead, store: int, segment: int, offset: int
) -> None:
    encoded = encode_group_head(head, store=store, segment=segment, offset=offset)
    assert len(encoded) == GROUP_HEAD_BYTES
    assert decode_group_head(encoded, store=store, segment=segment, offset=offset) == head
    assert decode_group_head(encoded, store=store ^ 1, segment=segment, offset=offset) is None
    assert decode_group_head(encoded, store=store, segment=segment ^ 1, offset=offset) is None
    assert decode_group_head(encoded, store=store, segment=segment, offset=offset ^ 512) is None


@given(heads, st.integers(0, GROUP_HEAD_BYTES * 8 - 1))
def test_a_group_head_with_a_flipped_bit_is_none(head: GroupHead, bit: int) -> None:
    damaged = bytearray(encode_group_head(head, store=1, segment=2, offset=512))
    damaged[bit // 8] ^= 1 << bit % 8
    assert decode_group_head(damaged, store=1, segment=2, offset=512) is None


@given(st.builds(SegmentHeader, u64, u64, u64), st.integers(0, 35))
def test_a_segment_header_is_decoded_unless_it_is_damaged(header: SegmentHeader, place: int) -> None:
    encoded = encode_segment_header(header)
    assert len(encoded) == SECTOR
    assert decode_segment_header(encoded) == header
    assert decode_segment_header(encoded[:-1]) is None
    damaged = bytearray(encoded)
    damaged[place] ^= 0x40
    assert decode_segment_header(damaged) is None


@given(copysets, flags, st.builds(index_layout.BodyLocation, u64, u64, u32, u64), st.binary())
def test_an_index_entry_gives_back_its_parts(
    copyset: tuple[NodeId, ...], flags: int, location: index_layout.BodyLocation, header: bytes
) -> None:
    route = index_layout.encode_route(copyset, flags)
    entry = index_layout.encode_entry(route, location, header)
    assert entry[: index_layout.route_bytes(entry)] == route
    assert index_layout.decode_route(route) == (copyset, flags)
    assert index_layout.entry_location(entry) == location
    assert index_layout.entry_header(entry) == header


@given(st.lists(st.tuples(logs, lsns), max_size=20))
def test_record_keys_sort_like_logs_and_lsns(places: list[tuple[LogId, Lsn]]) -> None:
    keys = [index_layout.record_key(log, lsn) for log, lsn in places]
    assert [(index_layout.key_log(key), index_layout.key_lsn(key)) for key in keys] == places
    assert sorted(keys) == [index_layout.record_key(log, lsn) for log, lsn in sorted(places)]


@given(st.lists(st.tuples(lsns, lsns).map(sorted), max_size=5))
def test_encoded_ranges_decode_to_the_same_ranges(bounds: list[list[Lsn]]) -> None:
    ranges = tuple(LsnRange(start, end) for start, end in bounds)
    assert index_layout.decode_ranges(index_layout.encode_ranges(ranges)) == ranges


# Bytes as they are on disks in use. A change here means a new version of the format.
VECTORS = (
    (
        encode_segment_header(SegmentHeader(1, 2, 1024))[:40],
        "4c447365676d010001000000000000000200000000000000000400000000000066f0790800000000",
    ),
    (
        encode_group_head(GroupHead(9, 10, 11, 12, 13), store=1, segment=2, offset=512),
        "4c44677209000000000000000a0000000b0000000c000000000000000d00000056a2f257",
    ),
    (
        encode_change(RecordPut(LogId(7), Lsn.of(1, 2), b"header", 5)),
        "011a0000000700000000000000020000000100000005000000686561646572",
    ),
    (
        encode_change(AmendRecord(LogId(7), Lsn.of(1, 2), nodes([3, 4]), 8, 6)),
        "021a0000000700000000000000020000000100000008000600000003000400",
    ),
    (
        encode_change(DeleteRecords(LogId(7), Lsn(1), Lsn(2))),
        "0318000000070000000000000001000000000000000200000000000000",
    ),
    (
        encode_change(PutState(LogId(7), "seal", b"value")),
        "0413000000070000000000000004007365616c76616c7565",
    ),
    (
        encode_change(TrimLog(LogId(7), Lsn(9))),
        "051000000007000000000000000900000000000000",
    ),
    (index_layout.record_key(LogId(7), Lsn.of(1, 2)), "7200000000000000070000000100000002"),
    (
        index_layout.encode_entry(
            index_layout.encode_route(nodes([3, 4]), 8), index_layout.BodyLocation(1, 2, 3, 4), b"header"
        ),
        "0208000300040001000000000000000200000000000000030000000400000000000000686561646572",
    ),
)


@pytest.mark.parametrize(("encoded", "expected"), VECTORS)
def test_the_format_on_disk_does_not_drift(encoded: bytes, expected: str) -> None:
    assert encoded.hex() == expected
