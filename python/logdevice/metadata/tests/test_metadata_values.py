"""Stored values and addresses: wrong values are refused, written values are read back, damage is noticed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import (
    InvalidArgumentError,
    UnreadableMetadataError,
)
from logdevice.metadata import codec
from logdevice.metadata.addresses import SqliteAddress, ZookeeperAddress, parse_address
from logdevice.metadata.tests.values_for_tests import epochs
from logdevice.metadata.values import NodeEntry, NodeRole
from logdevice.protocol.lineage import NO_LINEAGE, Branch, Lineage
from logdevice.protocol.rebuilding.node_status import CaseMode, NodeCase, NodeEvents
from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.types import (
    LSN_MAX,
    Epoch,
    EpochMetadata,
    Location,
    LogPoint,
    Lsn,
    NodeId,
    Replication,
    Scope,
    nodes,
)

numbers = st.integers(1, 2**31 - 2)
lineages = st.builds(
    Lineage,
    st.lists(
        st.builds(Branch, st.integers(1, 2**48 - 1), numbers.map(Epoch), st.integers(0, LSN_MAX).map(Lsn)),
        max_size=3,
    ).map(tuple),
    st.integers(0, 100),
)


@st.composite
def epoch_states(draw: st.DrawFn) -> EpochState:
    epoch = draw(numbers)
    copies = draw(st.integers(1, 5))
    metadata = EpochMetadata(
        first_epoch=Epoch(draw(st.integers(1, epoch))),
        nodeset=nodes(draw(st.lists(st.integers(0, 500), unique=True))),
        replication=Replication.of({Scope.NODE: copies, Scope.RACK: draw(st.integers(1, copies))}),
        bridges=draw(st.booleans()),
    )
    return EpochState(
        epoch=Epoch(epoch),
        owner=NodeId(draw(st.integers(0, 500))),
        metadata=metadata,
        last_clean=Epoch(draw(st.integers(0, epoch - 1))),
        tail=LogPoint(Lsn(draw(numbers)), draw(numbers), draw(numbers), draw(numbers)),
        lineage=draw(lineages),
    )


@given(epoch_states())
def test_epochs_are_read_back_as_they_were_written(value: EpochState) -> None:
    assert codec.EPOCHS.decode(codec.EPOCHS.encode(value), "logs/7") == value


def test_the_bytes_of_stored_values_never_change() -> None:
    metadata = EpochMetadata(Epoch(3), nodes([0, 1, 2]), Replication.parse("node: 3, rack: 2"))
    state = EpochState(
        epoch=Epoch(5),
        owner=NodeId(2),
        metadata=metadata,
        last_clean=Epoch(4),
        tail=LogPoint(Lsn.of(4, 9), 12, 345, 1700),
        lineage=Lineage((Branch(77, Epoch(1), Lsn.of(0, 1)),), 2),
    )
    recorded = (
        b"\x92\x01\x8c\xa5epoch\x05\xa5owner\x02\xabfirst_epoch\x03\xa7nodeset\x93\x00\x01\x02"
        b"\xabreplication\xb0node: 3, rack: 2\xa7bridges\xc3\xb0metadata_version\x01"
        b"\xb3is_metadata_written\xc2\xb0last_clean_epoch\x04\xa4tail\xc4 \t\x00\x00\x00\x04\x00\x00\x00"
        b"\xa4\x06\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00Y\x01\x00\x00\x00\x00\x00\x00"
        b"\xa8branches\x91\x93M\x01\x01\xb0branches_dropped\x02"
    )
    assert codec.EPOCHS.encode(state) == recorded
    assert codec.EPOCHS.decode(recorded, "logs/7") == state
    # Earlier versions wrote other values into the two fields that have no effect.
    other = recorded.replace(b"metadata_version\x01", b"metadata_version\x09")
    other = other.replace(b"is_metadata_written\xc2", b"is_metadata_written\xc3")
    assert codec.EPOCHS.decode(other, "logs/7") == state
    entry = NodeEntry(address="a:1", location=Location.parse("eu.dc1"), weight=0.5, generation=3)
    assert codec.NODE.encode(entry) == (
        b"\x92\x01\x85\xa7address\xa3a:1\xa8location\xa6eu.dc1\xa5roles\x92\xa9sequencer\xa7storage"
        b"\xa6weight\xcb?\xe0\x00\x00\x00\x00\x00\x00\xaageneration\x03"
    )
    case = NodeCase(node=NodeId(2), mode=CaseMode.DRAIN)
    events = NodeEvents(version=4, rebuilding=3, cases=(case,), done=((NodeId(1), True),))
    assert codec.EVENTS.encode(events) == (
        b"\x92\x01\x84\xa7version\x04\xaarebuilding\x03\xa5cases\x91\x86\xa4node\x02\xa4mode\xa5DRAIN"
        b"\xaeis_recoverable\xc3\xa8is_wiped\xc2\xa8is_ready\xc2\xaais_settled\xc2\xa4done\x91\x92\x01\xc3"
    )


def test_a_weight_that_was_written_as_a_whole_number_is_read() -> None:
    entry = NodeEntry(address="a:1", weight=2)
    assert codec.NODE.decode(codec.NODE.encode(entry), "node.1") == entry


def test_a_node_without_one_of_its_fields_is_damaged() -> None:
    stored_format, fields = msgpack.unpackb(codec.NODE.encode(NodeEntry(address="a:1")))
    for name in fields:
        left = {other: value for other, value in fields.items() if other != name}
        with pytest.raises(UnreadableMetadataError):
            codec.NODE.decode(msgpack.packb([stored_format, left]), "node.1")
    # A later version may add a field.
    more = msgpack.packb([stored_format, {**fields, "colour": "red"}])
    assert codec.NODE.decode(more, "node.1") == NodeEntry(address="a:1")


def test_epochs_stored_with_an_empty_tail_have_tail_zero() -> None:
    stored_format, fields = msgpack.unpackb(codec.EPOCHS.encode(epochs(3)))
    assert codec.EPOCHS.decode(msgpack.packb([stored_format, {**fields, "tail": b""}]), "logs/7") == epochs(3)
    with pytest.raises(UnreadableMetadataError):
        codec.EPOCHS.decode(msgpack.packb([stored_format, {**fields, "tail": b"x"}]), "logs/7")


def test_epochs_written_before_lineages_existed_have_no_lineage() -> None:
    """L20."""
    stored_format, fields = msgpack.unpackb(codec.EPOCHS.encode(epochs(3)))
    del fields["branches"], fields["branches_dropped"]
    assert codec.EPOCHS.decode(msgpack.packb([stored_format, fields]), "logs/7").lineage == NO_LINEAGE


@given(
    st.builds(
        NodeEntry,
        address=st.sampled_from(["a:1", "10.0.0.1:65535", "[::1]:4440"]),
        location=st.sampled_from(["", "eu", "eu.dc1.c1.r1.k1"]).map(Location.parse),
        roles=st.sampled_from([(NodeRole.STORAGE,), (NodeRole.SEQUENCER, NodeRole.STORAGE)]),
        weight=st.floats(0, 1e9),
        generation=numbers,
    )
)
def test_a_node_is_read_back_as_it_was_written(entry: NodeEntry) -> None:
    assert codec.NODE.decode(codec.NODE.encode(entry), "node.1") == entry


DECODERS = (
    codec.EPOCHS.decode,
    codec.NODE.decode,
    codec.CLUSTER.decode,
    codec.INCARNATION.decode,
    codec.DIRECTORY.decode,
)


@given(st.binary(max_size=200))
def test_random_bytes_are_reported_as_damaged(data: bytes) -> None:
    for decode in DECODERS:
        with pytest.raises(UnreadableMetadataError, match="the cell"):
            decode(data, "the cell")


@given(st.data())
def test_a_flipped_byte_is_reported_as_damaged_or_gives_a_valid_value(data: st.DataObject) -> None:
    whole = codec.EPOCHS.encode(epochs(3))
    place = data.draw(st.integers(0, len(whole) - 1))
    broken = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    with suppress(UnreadableMetadataError):
        codec.EPOCHS.decode(broken, "logs/7")


def test_a_newer_format_is_refused() -> None:
    newer = msgpack.packb([2, {"name": "berlin"}])
    with pytest.raises(UnreadableMetadataError, match="is stored in format 2; this version reads format 1"):
        codec.CLUSTER.decode(newer, "configuration/cluster")


IMPOSSIBLE: list[dict[str, Any]] = [
    {"epoch": Epoch(0)},
    {"last_clean": Epoch(5)},
    {"last_clean": Epoch(-1)},
    {"metadata": EpochMetadata(Epoch(6), nodes([0]), Replication.parse("1"))},
    {"metadata": EpochMetadata(Epoch(0), nodes([0]), Replication.parse("1"))},
]


@pytest.mark.parametrize("values", IMPOSSIBLE)
def test_impossible_epochs_are_refused(values: dict[str, Any]) -> None:
    valid: dict[str, Any] = {
        "epoch": Epoch(5),
        "owner": NodeId(0),
        "last_clean": Epoch(4),
        "metadata": EpochMetadata(Epoch(1), nodes([0]), Replication.parse("1")),
    }
    codec.EPOCHS.encode(EpochState(**valid))
    with pytest.raises(ValueError, match="epoch"):
        codec.EPOCHS.encode(EpochState(**{**valid, **values}))


@pytest.mark.parametrize(
    "values",
    [
        {"address": "localhost"},
        {"address": ":80"},
        {"address": "a:0"},
        {"address": "a:65536"},
        {"roles": ()},
        {"roles": (NodeRole.STORAGE, NodeRole.SEQUENCER)},
        {"roles": (NodeRole.STORAGE, NodeRole.STORAGE)},
        {"weight": -1.0},
        {"weight": float("nan")},
        {"weight": float("inf")},
        {"generation": 0},
    ],
)
def test_an_impossible_node_entry_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        NodeEntry(**{"address": "a:1", **values})


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("sqlite:/var/lib/x.db", SqliteAddress(Path("/var/lib/x.db"))),
        ("sqlite:x.db", SqliteAddress(Path("x.db"))),
        ("zookeeper://a:2181", ZookeeperAddress(servers="a:2181")),
        ("zookeeper://a,b:1,[::1]:2/x/y/", ZookeeperAddress(servers="a,b:1,[::1]:2", root="/x/y")),
        (
            "zookeeper://ada:p%40ss@a/x",
            ZookeeperAddress(servers="a", root="/x", user="ada", password="p@ss"),
        ),
    ],
)
def test_addresses_are_read(text: str, address: object) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "sqlite:", "sqlite://x.db", "zookeeper:", "zookeeper://", "zookeeper://a b", "etcd://a", "a:1"],
)
def test_text_that_is_not_an_address_is_refused_with_the_allowed_forms(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="write sqlite:PATH or zookeeper://"):
        parse_address(text)


def test_a_password_is_never_shown() -> None:
    assert "secret" not in repr(parse_address("zookeeper://ada:secret@a"))
    with pytest.raises(InvalidArgumentError) as caught:
        parse_address("zookeeper://ada:secret@a b")
    assert "secret" not in str(caught.value)
