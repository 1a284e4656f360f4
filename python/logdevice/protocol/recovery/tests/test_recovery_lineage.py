"""When and where recovery makes a history branch: only decisions without authority are in doubt."""

from __future__ import annotations

from logdevice.protocol.lineage import Lineage
from logdevice.protocol.rebuilding.lost_history import doubtful_from, given_up
from logdevice.protocol.rebuilding.node_status import (
    CaseMode,
    EventKind,
    NodeCase,
    NodeEvent,
    NodeEvents,
    apply,
)
from logdevice.protocol.recovery.tests.recovering import ALL, METADATA, NODESET, Recovering, copy, tail
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    Lsn,
    NodeId,
    Replication,
    nodes,
)

LOST = AuthoritativeStatus.UNDERREPLICATION
N0, N1, N2, N3 = nodes(range(4))
HERE = dict.fromkeys(NODESET, Location())


def first() -> Lineage:
    return Lineage().branched(7, Epoch(1), Lsn(1))


def recovered(recovering: Recovering, members: list[int]) -> Lineage:
    recovering.state = recovering.state.__class__(
        epoch=recovering.state.epoch,
        last_clean=recovering.state.last_clean,
        metadata=METADATA,
        owner=recovering.state.owner,
        lineage=first(),
    )
    recovering.write(2, members)
    return recovering.note_clean().state.lineage


def test_a_clean_end_of_an_epoch_keeps_the_lineage() -> None:
    """L31: an f-majority has answered."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL, copy(2, 1))
    assert recovered(recovering, list(ALL)) == first()


def test_a_recovery_without_authority_branches_where_it_began_to_decide() -> None:
    """L29: in the same write that notes the epoch as clean."""
    recovering = Recovering(statuses=dict.fromkeys(nodes([0, 1, 2]), LOST))
    recovering.seal([3, 4], tail(2, 4, 9))
    recovering.digest([3, 4], copy(2, 3), start=3)
    lineage = recovered(recovering, [3, 4])
    assert lineage.branches[0] == first().branches[0]
    (branch,) = lineage.branches[1:]
    assert (branch.first_epoch, branch.base) == (Epoch(3), Lsn.of(2, 4))
    assert branch.id != 7


def test_an_epoch_that_was_trimmed_completely_cannot_branch() -> None:
    """L29: nothing was decided."""
    recovering = Recovering(statuses=dict.fromkeys(nodes([0, 1, 2]), LOST))
    recovering.seal([3, 4], trim=Lsn.of(3, 1))
    recovering.digest([3, 4], start=(1 << 32) - 1)
    assert recovered(recovering, [3, 4]) == first()


def test_records_may_be_gone_if_lost_nodes_alone_could_hold_them() -> None:
    """L30: from the first epoch on in which these nodes could hold a whole copyset."""
    two = Replication.parse("2")
    history = (
        EpochMetadata(Epoch(1), nodes([0, 1]), Replication.parse("3")),
        EpochMetadata(Epoch(4), nodes([1, 2, 3]), two),
        EpochMetadata(Epoch(9), nodes([0, 1, 2]), two),
    )
    here = dict.fromkeys(nodes(range(4)), Location())
    assert doubtful_from(history[1:], here, [N3]) is None
    assert doubtful_from(history[1:], here, [N2, N3]) == Lsn.of(4, 1)
    assert doubtful_from(history[1:], here, [N0, N2]) == Lsn.of(9, 1)
    assert doubtful_from(history[1:], {}, [N0, N2]) == Lsn.of(9, 1)
    # A nodeset smaller than the replication: any member may have been the only holder.
    assert doubtful_from(history, here, [N0]) == Lsn.of(1, 1)


def test_only_nodes_that_were_not_restored_before_count_as_given_up() -> None:
    """L30: also if the last donor has finished already, so that the node counts as empty at once."""
    storage = nodes(range(4))

    def after(events: NodeEvents, kind: EventKind, node: NodeId, *, authoritative: bool = True) -> NodeEvents:
        event = NodeEvent(kind=kind, node=node, version=events.rebuilding, is_authoritative=authoritative)
        return apply(events, event, storage)

    away = after(NodeEvents(), EventKind.REBUILD, N0)
    marked = after(away, EventKind.UNRECOVERABLE, N0)
    assert given_up(away, marked) == {N0}
    for donor in (N1, N2, N3):
        away = after(away, EventKind.DONE, donor, authoritative=False)
    settled = after(away, EventKind.UNRECOVERABLE, N0)
    assert [case.is_settled for case in settled.cases] == [True]
    assert given_up(away, settled) == {N0}
    restored = NodeEvents(cases=(NodeCase(node=N0, mode=CaseMode.RESTORE, is_settled=True),))
    assert given_up(restored, after(restored, EventKind.UNRECOVERABLE, N0)) == frozenset()
    drained = NodeEvents(cases=(NodeCase(node=N0, mode=CaseMode.DRAIN, is_recoverable=False),))
    assert given_up(NodeEvents(), drained) == frozenset()
