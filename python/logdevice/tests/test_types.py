"""The value types: their text forms, their order, and which values they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.tests.lsn_texts import TEXTS
from logdevice.types import (
    EPOCH_MAX,
    ESN_MAX,
    LSN_MAX,
    LSN_OLDEST,
    RECORD_HEADER_BYTES,
    Gap,
    GapType,
    Location,
    Lsn,
    LsnRange,
    NodeId,
    Record,
    Replication,
    Scope,
    TimeRange,
    epoch_start,
    nodes,
)

epochs = st.integers(0, EPOCH_MAX)
esns = st.integers(0, ESN_MAX)
lsns = st.builds(Lsn.of, epochs, esns)
part = st.text(alphabet="abcxyz019-_", min_size=1, max_size=4)
locations = st.builds(Location, st.lists(part, max_size=5).map(tuple))


@given(lsns)
def test_an_lsn_is_read_back_from_its_text(lsn: Lsn) -> None:
    assert Lsn.parse(str(lsn)) == lsn
    assert Lsn.parse(str(lsn).upper()) == lsn


@given(st.integers(0, LSN_MAX))
def test_an_lsn_is_read_from_a_plain_integer(number: int) -> None:
    assert int(Lsn.parse(str(number))) == number


@given(epochs, esns)
def test_an_lsn_is_made_of_its_epoch_and_number(epoch: int, esn: int) -> None:
    lsn = Lsn.of(epoch, esn)
    assert (lsn.epoch, lsn.esn) == (epoch, esn)
    assert str(lsn) == repr(lsn) == f"{lsn}" == f"e{epoch}n{esn}"


@given(epochs, esns, epochs, esns)
def test_lsns_are_in_the_order_of_epochs_first(
    epoch: int, esn: int, other_epoch: int, other_esn: int
) -> None:
    in_order = (epoch, esn) < (other_epoch, other_esn)
    assert (Lsn.of(epoch, esn) < Lsn.of(other_epoch, other_esn)) == in_order


@given(lsns)
def test_every_lsn_is_a_java_long_below_max(lsn: Lsn) -> None:
    assert 0 <= lsn < LSN_MAX <= 2**63 - 1


def test_the_named_lsns_can_be_written_and_read() -> None:
    assert Lsn.parse("oldest") == LSN_OLDEST == 1
    assert Lsn.parse(" MAX ") == LSN_MAX
    assert str(LSN_MAX) == "max"
    assert Lsn.parse(f"e{EPOCH_MAX + 1}n{ESN_MAX}") == LSN_MAX


def test_the_lsn_after_the_last_number_of_an_epoch_is_in_the_next_epoch() -> None:
    assert Lsn.of(4, ESN_MAX).next == Lsn.of(5, 0)
    assert epoch_start(5) == Lsn.of(5, 1)


@pytest.mark.parametrize("text", [*TEXTS["refused"], "e9999999999n1"])
def test_other_text_is_refused_as_an_lsn(text: str) -> None:
    with pytest.raises(ValueError, match=r"LSN|esn|epoch"):
        Lsn.parse(text)


def test_lsns_are_written_and_read_as_in_java() -> None:
    assert {number: str(Lsn(int(number))) for number in TEXTS["written"]} == TEXTS["written"]
    assert {text: int(Lsn.parse(text)) for text in TEXTS["read"]} == TEXTS["read"]


@pytest.mark.parametrize(("epoch", "esn"), [(-1, 0), (EPOCH_MAX + 2, 0), (1, -1), (1, ESN_MAX + 1)])
def test_an_lsn_out_of_bounds_cannot_be_made(epoch: int, esn: int) -> None:
    with pytest.raises(ValueError, match="is not between"):
        Lsn.of(epoch, esn)


def test_ranges_include_their_start_and_not_their_end() -> None:
    lsn_range = LsnRange(Lsn(5), Lsn(7))
    assert [lsn for lsn in range(4, 9) if lsn in lsn_range] == [5, 6]
    assert [time for time in range(4, 9) if time in TimeRange(5, 7)] == [5, 6]
    assert str(lsn_range) == "[e0n5, e0n7)"


def test_a_range_cannot_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="after its end"):
        LsnRange(Lsn(7), Lsn(6))


def test_nodes_are_written_with_an_n() -> None:
    assert f"{NodeId(3)} {NodeId(3)!r} {nodes([1, 2])}" == "N3 N3 (N1, N2)"


@given(locations)
def test_a_location_is_read_back_from_its_text(location: Location) -> None:
    assert Location.parse(str(location)) == location


@pytest.mark.parametrize("text", ["a.b.c.d.e.f", "a..b", ".", "a b", "a/b"])
def test_other_text_is_refused_as_a_location(text: str) -> None:
    with pytest.raises(ValueError, match=r"region\.datacenter\.cluster\.row\.rack"):
        Location.parse(text)


@given(locations, locations)
def test_sharing_scopes_is_mutual_and_counted_from_the_region_down(one: Location, other: Location) -> None:
    shared = one.shared_scopes(other)
    assert shared == other.shared_scopes(one)
    assert one.parts[:shared] == other.parts[:shared]
    assert one.parts[: shared + 1] != other.parts[: shared + 1] or shared == min(
        len(one.parts), len(other.parts)
    )


def test_a_domain_is_known_only_as_deep_as_the_location() -> None:
    location = Location.parse("eu.fra.c1")
    assert location.domain(Scope.REGION) == ("eu",)
    assert location.domain(Scope.CLUSTER) == ("eu", "fra", "c1")
    assert location.domain(Scope.ROW) is None
    assert Location.parse("eu.fra.c1.r1.k1").domain(Scope.RACK) == ("eu", "fra", "c1", "r1", "k1")


@pytest.mark.parametrize("text", ["node: 3", "node: 3, rack: 2", "node: 4, rack: 3, region: 2"])
def test_a_replication_is_read_back_from_its_text(text: str) -> None:
    assert str(Replication.parse(text)) == text


def test_a_bare_number_replicates_over_nodes() -> None:
    assert Replication.parse("3") == Replication.of({Scope.NODE: 3})
    assert Replication.parse("node: 4, rack: 2").copies == 4


@pytest.mark.parametrize(
    "text", ["", "0", "rack: 2", "node: 2, rack: 3", "node: 0", "node: x", "shelf: 3", "node"]
)
def test_other_text_is_refused_as_a_replication(text: str) -> None:
    with pytest.raises(ValueError, match="replication"):
        Replication.parse(text)


@pytest.mark.parametrize(
    "factors", [((Scope.NODE, 3), (Scope.NODE, 3)), ((Scope.RACK, 2), (Scope.NODE, 3)), ((Scope.RACK, 2),)]
)
def test_a_replication_names_each_scope_once_in_order(factors: tuple[tuple[Scope, int], ...]) -> None:
    with pytest.raises(ValueError, match="replication"):
        Replication(factors)


def test_the_size_of_a_record_is_its_body_and_a_header() -> None:
    record = Record(Lsn(1), 0, nodes([1]), b"12345")
    assert record.size == 5 + RECORD_HEADER_BYTES


def test_a_gap_as_text_gives_type_and_range() -> None:
    assert str(Gap(GapType.DATALOSS, Lsn.of(1, 5), Lsn.of(1, 7))) == "DATALOSS [e1n5, e1n7)"
