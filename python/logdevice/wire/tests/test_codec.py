"""The promises of the codec: every message decodes to itself, and all other bytes are refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdevice.errors import LocalProtocolError, RemoteProtocolError
from logdevice.protocol.lineage import Branch
from logdevice.protocol.messages import read
from logdevice.protocol.messages.read import (
    GapNotice,
    GapReason,
    Records,
    Start,
    Started,
    StatusNotice,
    Stop,
    Window,
)
from logdevice.protocol.messages.write import Append
from logdevice.records.forms import Parts, Section, fields_of
from logdevice.records.stored import joined
from logdevice.types import LSN_MAX, Epoch, Location, LogId, Lsn, NodeId, Record, Replication, nodes
from logdevice.wire.codec import MESSAGES, decode, encode

# Strategies for everything that hypothesis cannot work out from the annotations of a message.
WORDS = st.from_regex(r"[a-z0-9_-]{1,4}", fullmatch=True)
BODIES = st.binary(max_size=30)
for kind, strategy in {
    int: st.integers(-(1 << 63), (1 << 64) - 1),
    Lsn: st.integers(0, LSN_MAX).map(Lsn),
    NodeId: st.integers(0, 65535).map(NodeId),
    LogId: st.integers(0, (1 << 63) - 1),
    Epoch: st.integers(0, (1 << 31) - 1),
    Replication: st.sampled_from(["3", "node: 3, rack: 2", "node: 2, region: 2"]).map(Replication.parse),
    Location: st.lists(WORDS, max_size=5).map(lambda parts: Location(tuple(parts))),
    Branch: st.builds(
        Branch, st.integers(1, (1 << 48) - 1), st.integers(0, 1 << 31 - 1), st.integers(0, LSN_MAX).map(Lsn)
    ),
    Record: st.builds(
        Record,
        lsn=st.integers(0, LSN_MAX).map(Lsn),
        timestamp_ms=st.integers(0, 1 << 62),
        copyset=st.lists(st.integers(0, 65535).map(NodeId), max_size=4).map(tuple),
        body=BODIES,
        flags=st.integers(0, 15),
        wave=st.integers(0, 100),
        entries=st.integers(0, 100),
        entry_end=st.integers(0, 1 << 62),
        byte_end=st.integers(0, 1 << 62),
        tag=st.none(),
    ),
}.items():
    st.register_type_strategy(kind, strategy)
ANY_MESSAGE = st.one_of([st.from_type(message) for message in MESSAGES.values()])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 64 - 1) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=20,
)
GAP = GapNotice(LogId(7), 3, Lsn(10), Lsn(20), GapReason.TRIM)
RECORDS = Records(LogId(7), 3, (Record(Lsn(5), 9, nodes((1, 2)), b"body"), Record(Lsn(6), 9, nodes((1, 2)))))


def framed(envelope: Any, section: bytes = b"") -> bytes:
    packed: bytes = msgpack.packb(envelope)
    return len(packed).to_bytes(4, "little") + packed + section


def refusal(data: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        decode(data)
    return caught.value.message


@pytest.mark.parametrize("kind", MESSAGES.values(), ids=lambda kind: kind.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_an_encoded_message_decodes_to_the_same_message(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(st.from_type(kind))
    decoded = decode(encode(message))
    assert type(decoded) is kind
    assert decoded == message


# Every older process would misread a changed code: add codes, never change one.
CODES = {
    0: "Hello",
    2: "Window",
    3: "Stop",
    4: "Started",
    5: "Records",
    6: "GapNotice",
    7: "StatusNotice",
    8: "Start",
    17: "Appended",
    20: "Store",
    21: "Stored",
    22: "Delete",
    23: "Release",
    24: "Trim",
    25: "Trimmed",
    26: "Seal",
    27: "Sealed",
    28: "DigestRequest",
    29: "DigestRecords",
    30: "Clean",
    31: "Cleaned",
    32: "GetEpochRecovery",
    33: "EpochRecovered",
    34: "GetWriter",
    35: "WriterIs",
    36: "KeepWriters",
    37: "Append",
    38: "Tail",
    39: "Barrier",
    40: "Drop",
    41: "Dropped",
    42: "BarrierIs",
    50: "Settle",
    51: "Settled",
    54: "ChainRead",
    56: "ChainCompleted",
    59: "ChainCopy",
    64: "Failure",
    65: "Done",
    66: "GetCluster",
    67: "ClusterView",
    68: "Ping",
    69: "Pong",
    70: "GetStatus",
    71: "NodeStatus",
    72: "GetLogs",
    73: "LogsView",
    74: "ChangeLogs",
    75: "FindSequencer",
    76: "SequencerIs",
    77: "GetEpochMetadata",
    78: "EpochMetadataIs",
    79: "GetStoredRange",
    80: "StoredRange",
    81: "FindTime",
    82: "TimeFound",
    87: "GetMetadataEntries",
    88: "MetadataEntries",
    89: "FindRecord",
    90: "RecordFound",
    91: "NextIncarnation",
    92: "IncarnationIs",
    98: "NotePurge",
    99: "PurgeIs",
    93: "GetLineage",
    94: "LineageIs",
    100: "ChangeNode",
    101: "GetNodeStates",
    102: "NodeStates",
    104: "PutCopies",
    105: "AmendCopies",
    106: "CopiesStored",
    107: "GetCopies",
    108: "CopiesAre",
    113: "GetCuts",
    114: "CutsAre",
    115: "KeepCut",
    116: "RemoveCut",
    117: "GetTail",
    118: "FindLog",
}


def test_codes_never_change() -> None:
    assert {code: kind.__name__ for code, kind in MESSAGES.items()} == CODES


def test_every_message_of_the_read_path_has_a_code() -> None:
    spoken = {*read.ToNode.__args__, *read.ToReader.__args__}
    assert spoken == {Start, Window, Stop, Started, Records, GapNotice, StatusNotice}
    assert spoken <= set(MESSAGES.values())


# Messages of older processes must be understood: a message that needs other bytes needs another code.
def test_the_bytes_of_a_message_never_change() -> None:
    assert encode(GAP).hex() == "0b000000" + "96" + "06" + "07" + "03" + "0a" + "14" + "a4" + b"TRIM".hex()


def test_bodies_are_sent_as_they_are_and_received_as_views() -> None:
    data = encode(RECORDS)
    assert b"body" in data
    body = decode(data).records[0].body
    assert isinstance(body, memoryview)
    assert body.obj is data


@pytest.mark.parametrize(("others", "kind"), [(0, memoryview), (10_000, bytes)], ids=["alone", "one of many"])
def test_a_body_to_append_is_a_view_only_if_that_keeps_little_else_in_memory(
    others: int, kind: type[object]
) -> None:
    """An append that waits for long must not keep a whole frame of other messages in memory."""
    data = encode(Append(log=LogId(1), body=b"body" * 100, entries=1))
    frame = bytes(others) + data
    append = decode(memoryview(frame)[others:])
    assert (append.body, type(append.body)) == (b"body" * 100, kind)


def test_a_damaged_body_arrives_as_a_corrupt_record_with_its_neighbours_whole() -> None:
    first, second = decode(encode(RECORDS).replace(b"body", b"bodx")).records
    assert (first.lsn, first.body, first.flags) == (5, b"", 16)
    assert second == RECORDS.records[1]


def test_a_refusal_names_the_message_and_the_field() -> None:
    assert refusal(framed([6, 7, 3, 10, "x", "TRIM"])) == (
        f"GapNotice cannot be decoded: field end: expected an LSN from 0 to {int(LSN_MAX)}, got 'x'"
    )
    assert refusal(framed([6, 7, 3, 10, 20, "TRIMMED"])).startswith(
        "GapNotice cannot be decoded: field reason: expected one of NO_RECORDS, TRIM, "
    )
    assert refusal(framed([6, 7, True, 10, 20, "TRIM"])) == (
        "GapNotice cannot be decoded: field filter_version: expected an integer, got True"
    )
    assert refusal(framed([6, 7, 3, 10, 20])) == (
        "GapNotice cannot be decoded: expected a list of 5, got [7, 3, 10, 20]"
    )
    assert refusal(framed([7, 1, [[1, 9]]])) == (
        "StatusNotice cannot be decoded: field statuses: item 1: expected one of 0, 1, 2, 3, got 9"
    )
    assert (
        refusal(framed([7, 1, 5])) == "StatusNotice cannot be decoded: field statuses: expected a list, got 5"
    )


@pytest.mark.parametrize("location", [5, "not a place"])
def test_a_value_that_is_not_a_location_is_refused(location: object) -> None:
    envelope = msgpack.unpackb(encode(MINIMAL_START)[4:])
    envelope[11] = location
    assert "field location: expected a location" in refusal(framed(envelope))


MINIMAL_START = Start(
    log=LogId(1), filter_version=1, start=Lsn(1), end=LSN_MAX, window_end=Lsn(9), window_bytes=100
)


def test_bytes_that_are_not_a_message_are_refused() -> None:
    assert refusal(b"abc") == "a message of 3 bytes is too short"
    assert refusal(b"\xff\x00\x00\x00abc") == "a message of 7 bytes has an envelope that ends at 259"
    assert refusal(framed([250])) == "a message has the unknown code 250"
    assert refusal(framed({"code": 1})) == "the envelope of a message does not start with its code"
    assert refusal(b"\x01\x00\x00\x00\xc1").startswith("the envelope of a message is not msgpack")
    assert refusal(encode(GAP) + b"more") == "GapNotice is followed by 4 bytes too many"


@pytest.mark.parametrize(
    ("envelope", "section", "words"),
    [
        ([2, 72], b"", "a length of at most the 0 bytes that are left, got 72"),
        ([1, -1], b"", "a length of at most"),
        ([1, 4], b"junk", "expected whole records, got 'the header at byte 0 is cut off"),
        (2, b"", "expected the number of records and their length, got 2"),
        ([1, 0], b"", "expected 1 records, got 0"),
    ],
    ids=["too long", "negative", "garbage", "no pair", "too few"],
)
def test_a_record_section_that_does_not_match_its_envelope_is_refused(
    envelope: object, section: bytes, words: str
) -> None:
    assert f"field records: {words}" in refusal(framed([5, 1, 1, envelope, False], section)).replace(
        "expected a length", "a length"
    )


def test_a_message_with_a_value_that_does_not_fit_is_not_encoded() -> None:
    with pytest.raises(LocalProtocolError, match="Window cannot be encoded"):
        encode(Window(LogId(1), 1 << 70, Lsn(5), 7))
    with pytest.raises(LocalProtocolError, match="does not fit"):
        encode(replace(RECORDS, records=(Record(Lsn(5), 9, nodes((70_000,))),)))


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    refusal(data)


def check_accepted(data: bytes) -> None:
    """Checks that these bytes are refused, or decode to a message that encodes and decodes again."""
    try:
        message = decode(data)
    except RemoteProtocolError:
        return
    assert decode(encode(message)) == message


@given(st.sampled_from(sorted(MESSAGES)), st.lists(VALUES, max_size=8), st.binary(max_size=80))
def test_well_formed_nonsense_is_refused_or_decodes_to_a_message(
    code: int, values: list[Any], section: bytes
) -> None:
    check_accepted(framed([code, *values], section))


@given(ANY_MESSAGE, st.data())
def test_mutated_messages_are_refused_or_decode_to_messages(message: Any, data: st.DataObject) -> None:
    content = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    check_accepted(bytes(content))
    check_accepted(bytes(content[:cut]))


class Colour(Enum):
    RED = "RED"


@dataclass(frozen=True, slots=True)
class Everything:
    """One field of every type that a later message may have."""

    replication: Replication
    epoch: Epoch
    text: str
    payload: bytes
    view: bytes | memoryview
    record: Record
    pair: tuple[int, Colour]
    nested: Stop | None


WHOLE = Everything(
    Replication.parse("node: 3, rack: 2"),
    Epoch(4),
    "text",
    b"payload",
    b"view",
    RECORDS.records[0],
    (1, Colour.RED),
    Stop(LogId(5)),
)


def test_later_messages_may_have_fields_of_all_these_types() -> None:
    form = fields_of(Everything)
    parts: Parts = []
    packed = msgpack.unpackb(msgpack.packb(form.pack(WHOLE, parts)))
    assert form.unpack(packed, Section(memoryview(joined(parts)))) == WHOLE


def test_a_field_of_one_record_takes_exactly_one_record() -> None:
    form = fields_of(Everything)
    parts: Parts = []
    packed = form.pack(WHOLE, parts)
    packed[5] = [0, 0]
    with pytest.raises(ValueError, match="field record: expected one record, got 0"):
        form.unpack(packed, Section(memoryview(joined(parts))))


@dataclass(frozen=True, slots=True)
class Picky:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("negative")


def test_a_value_that_its_own_class_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a valid Picky, got 'negative'"):
        fields_of(Picky).unpack([-1], Section(memoryview(b"")))


@dataclass(frozen=True, slots=True)
class Odd:
    number: complex


@dataclass(frozen=True, slots=True)
class Undecided:
    value: int | str


@pytest.mark.parametrize("kind", [Odd, Undecided])
def test_a_field_type_without_a_form_is_an_error_when_the_message_is_listed(kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="has no form"):
        fields_of(kind)
