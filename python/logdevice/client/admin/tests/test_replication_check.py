"""What the replication checker says about the copies of one record."""

from __future__ import annotations

from logdevice.client.admin.replication_check import Copy, Problem, judge
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    nodes,
)

ALL = nodes((1, 2, 3, 4, 5))
N1, N2, N3, N4, N5 = ALL
METADATA = EpochMetadata(Epoch(1), ALL, Replication.parse("3"))
LOCATIONS = dict.fromkeys(ALL, Location())
DRAINED = int(RecordFlags.DRAINED)


def copy(
    node: NodeId, copyset: tuple[NodeId, ...] = (N1, N2, N3), *, checksum: int = 7, flags: int = 0
) -> Copy:
    return Copy(node, Record(Lsn.of(1, 1), 5, copyset, b"", flags=flags, entries=1), checksum)


def problems(*copies: Copy, metadata: EpochMetadata = METADATA) -> list[Problem]:
    return [problem for problem, _ in judge(copies, metadata, LOCATIONS)]


def test_a_record_on_all_nodes_of_its_copyset_is_well_stored() -> None:
    assert problems(copy(N1), copy(N2), copy(N3)) == []


def test_a_copy_that_is_missing_is_found() -> None:
    assert problems(copy(N1), copy(N2)) == [Problem.TOO_FEW_COPIES]


def test_replication_counts_in_every_scope() -> None:
    racks = {node: Location.parse(f"a.b.c.d.k{node}") for node in (N1, N2)} | {
        N3: Location.parse("a.b.c.d.kN1")
    }
    metadata = EpochMetadata(Epoch(1), ALL, Replication.parse("node: 2, rack: 2"))
    for other, expected in ((N2, []), (N3, [Problem.TOO_FEW_COPIES])):
        copyset = (N1, other)
        found = judge([copy(N1, copyset), copy(other, copyset)], metadata, racks)
        assert [problem for problem, _ in found] == expected


def test_a_copyset_that_names_a_node_without_a_copy_is_wrong() -> None:
    copyset = (N1, N2, N4)
    assert problems(copy(N1, copyset), copy(N2, copyset), copy(N3, copyset)) == [Problem.WRONG_COPYSET]


def test_copies_that_differ_are_found() -> None:
    assert problems(copy(N1), copy(N2), copy(N3, checksum=8)) == [Problem.DIFFERENT_CONTENT]


def test_a_dropped_copy_does_not_count_as_different() -> None:
    """K25."""
    dropped = copy(N3, checksum=8, flags=int(RecordFlags.COMPACTED))
    assert problems(copy(N1), copy(N2), dropped) == []
    assert problems(copy(N1), copy(N2, checksum=9), dropped) == [Problem.DIFFERENT_CONTENT]


def test_a_copy_that_cannot_be_read_is_found() -> None:
    assert problems(copy(N1), copy(N2), copy(N3, checksum=-1)) == [
        Problem.UNREADABLE,
        Problem.TOO_FEW_COPIES,
    ]


def test_copies_beyond_those_of_a_whole_copyset_do_no_harm() -> None:
    """Copies of a failed wave, or on a node that was down when the record was stored again without it."""
    assert problems(copy(N1), copy(N2), copy(N3), copy(N4, (N1, N4, N5))) == []


def test_copies_that_were_moved_to_other_nodes_do_not_count() -> None:
    assert problems(copy(N1), copy(N2), copy(N3, flags=DRAINED)) == [Problem.TOO_FEW_COPIES]


def test_with_extras_a_copyset_may_name_more_nodes_than_have_it() -> None:
    copyset = (N1, N2, N3, N4)
    assert problems(copy(N1, copyset), copy(N2, copyset), copy(N3, copyset)) == []
