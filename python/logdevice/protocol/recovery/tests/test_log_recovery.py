"""Recovery: sealing nodes and reading their copies."""

from __future__ import annotations

from logdevice.protocol.io import Ask
from logdevice.protocol.messages.write import (
    Clean,
    DigestRequest,
    Seal,
    SealStatus,
    Store,
)
from logdevice.protocol.recovery.stages import Digesting, Mutating, Sealing, Stage
from logdevice.protocol.recovery.tests.recovering import ALL, LOG, Recovering, copy, tail
from logdevice.protocol.sequencer.events import RecoveryCompleted, TailFound
from logdevice.protocol.timers import WakeAt
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    LogPoint,
    Lsn,
    NodeId,
    RecordFlags,
    Replication,
    nodes,
)

E2N1 = Lsn.of(2, 1)
LOST = AuthoritativeStatus.UNDERREPLICATION
BRIDGE = int(RecordFlags.BRIDGE)
HOLE = int(RecordFlags.HOLE)


def stage(recovering: Recovering) -> type[Stage] | None:
    epoch = recovering.machine._recovering
    return None if epoch is None else type(epoch.stage)


# Sealing.


def test_without_unclean_epochs_recovery_is_complete_at_once() -> None:
    """V1."""
    assert Recovering(last_clean=0, seal=0).start == [RecoveryCompleted(Epoch(1))]


def test_all_nodes_of_all_unclean_epochs_are_sealed() -> None:
    """V1: those in their nodesets, and no other nodes."""
    history = tuple(
        EpochMetadata(Epoch(first), nodes(members), Replication.parse("3"))
        for first, members in ((1, [0]), (3, [1, 2, 3]), (5, [3, 4, 5]))
    )
    recovering = Recovering(last_clean=3, seal=6, history=history)
    seal = Seal(log=LOG, epoch=Epoch(6), sealed_by=NodeId(9), last_clean=Epoch(3))
    assert recovering.start == [Ask(node, seal) for node in nodes([1, 2, 3, 4, 5])]


def test_nodes_that_are_not_sealed_are_asked_again_after_pauses_that_grow() -> None:
    """V1."""
    recovering = Recovering()
    assert WakeAt(500) in recovering.all
    recovering.seal([0])
    recovering.wait(500)
    assert sorted(recovering.sent(Seal)) == [1, 2, 3, 4]
    recovering.wait(999)
    assert recovering.sent(Seal) == {}
    recovering.wait(1)
    assert sorted(recovering.sent(Seal)) == [1, 2, 3, 4]


def test_a_node_that_cannot_seal_now_is_asked_again() -> None:
    """V1."""
    recovering = Recovering()
    recovering.seal([1], status=SealStatus.FAILED)
    recovering.wait(500)
    assert sorted(recovering.sent(Seal)) == [0, 1, 2, 3, 4]


def test_seals_of_other_nodes_and_of_other_epochs_do_not_count() -> None:
    recovering = Recovering()
    recovering.seal([7, 8])
    recovering._seal = Epoch(1)
    recovering.seal(ALL)
    assert stage(recovering) is Sealing


def test_the_tail_is_told_when_an_f_majority_is_sealed() -> None:
    """V2: before anything is recovered, and once."""
    recovering = Recovering()
    recovering.seal([0], tail(2, 3, 9))
    recovering.seal([1], tail(2, 5, 7))
    assert recovering.wanted(TailFound) == []
    recovering.seal([2])
    expected = LogPoint(lsn=Lsn.of(2, 9), timestamp_ms=9, entry_end=90, byte_end=900)
    assert recovering.wanted(TailFound) == [TailFound(Epoch(3), expected)]
    recovering.seal([3], tail(2, 5, 20))
    assert recovering.wanted(TailFound) == []


# Digest.


def test_copies_are_read_once_an_f_majority_is_sealed() -> None:
    """V3, V5, V11: from one LSN before the highest good end that any node knows."""
    recovering = Recovering()
    recovering.seal([0], tail(2, 3, 9))
    recovering.seal([1], tail(2, 5, 7))
    assert recovering.sent(DigestRequest) == {}
    recovering.seal([2], tail(1, 90, 90))
    request = DigestRequest(log=LOG, epoch=Epoch(2), start=Lsn.of(2, 4), seal_epoch=Epoch(2), attempt=1)
    assert recovering.sent(DigestRequest) == dict.fromkeys(nodes([0, 1, 2]), request)


def test_a_node_that_is_sealed_while_copies_are_read_takes_part() -> None:
    """V3: a node that comes later must purge."""
    recovering = Recovering()
    recovering.seal([0, 1, 2])
    recovering.seal([3])
    assert list(recovering.sent(DigestRequest)) == [NodeId(3)]
    recovering.digest([0, 1, 2, 3])
    recovering.wait(100)
    assert stage(recovering) is Mutating
    recovering.seal([4])
    assert recovering.sent(DigestRequest) == {}


def test_the_last_nodes_get_a_grace_period() -> None:
    """V3: an f-majority is enough, but nodes that take part need not purge."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest([0, 1, 2])
    assert stage(recovering) is Digesting
    assert WakeAt(100) in recovering.all
    recovering.wait(99)
    assert stage(recovering) is Digesting
    recovering.wait(1)
    assert stage(recovering) is Mutating


def test_recovery_does_not_wait_once_all_nodes_have_answered() -> None:
    """V3."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest(ALL)
    assert stage(recovering) is Mutating


def test_a_long_digest_comes_in_pieces() -> None:
    """V3: other pieces than the one asked for are dropped."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest([0], copy(2, 1), next=Lsn.of(2, 2))
    assert recovering.sent(DigestRequest)[NodeId(0)].start == Lsn.of(2, 2)
    recovering.digest([0], copy(2, 1), next=Lsn.of(2, 2))
    assert recovering.sent(DigestRequest) == {}
    recovering.digest([0], copy(2, 2), start=2)
    recovering.digest([0], copy(2, 2), start=2)
    recovering.digest([1, 2, 3, 4])
    stores = [effect.request for effect in recovering.all if isinstance(effect, Ask)]
    decided = [store.record for store in stores if isinstance(store, Store)]
    assert sorted({record.lsn.esn for record in decided}) == [1, 2, 3]
    assert {record.lsn.esn for record in decided if record.flags & BRIDGE} == {3}


def test_digests_of_other_epochs_and_of_nodes_that_were_not_asked_are_dropped() -> None:
    recovering = Recovering()
    recovering.digest([0], copy(2, 1))
    recovering.seal([0, 1, 2])
    recovering.digest([3], copy(2, 1))
    recovering.digest([0], copy(1, 1), epoch=1)
    recovering.digest([0], copy(2, 1), attempt=7)
    assert stage(recovering) is Digesting


def test_a_node_that_cannot_read_its_copies_does_not_take_part() -> None:
    """V15: it is sealed again first."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest([4], failed=True)
    recovering.digest([0, 1, 2, 3])
    assert stage(recovering) is Digesting
    recovering.wait(100)
    assert stage(recovering) is Mutating
    assert NodeId(4) not in recovering.sent(Store)


def test_nodes_that_do_not_answer_a_digest_are_asked_again() -> None:
    """V18."""
    recovering = Recovering()
    recovering.seal([0, 1, 2])
    recovering.digest([0])
    recovering.wait(500)
    assert sorted(recovering.sent(DigestRequest)) == [1, 2]


def test_nodes_that_lost_their_data_prove_nothing() -> None:
    """V19: all nodes that count have answered, but too few: no hole, no bridge."""
    recovering = Recovering(statuses={NodeId(node): LOST for node in (2, 3, 4)})
    recovering.seal([0, 1])
    recovering.digest([0, 1], copy(2, 1), copy(2, 3))
    stores = [effect.request for effect in recovering.all if isinstance(effect, Ask)]
    decided = {store.record.lsn.esn for store in stores if isinstance(store, Store)}
    assert decided == {1, 3}


def test_a_node_that_is_away_counts_as_one_that_lost_its_data() -> None:
    """V4: unless it answers."""
    away = {NodeId(node): AuthoritativeStatus.UNAVAILABLE for node in (2, 3, 4)}
    recovering = Recovering(statuses=away)
    recovering.seal([0, 1])
    assert stage(recovering) is Digesting
    recovering.seal([2])
    recovering.digest([0, 1, 2])
    assert recovering.sent(Store)[NodeId(0)].record.flags & BRIDGE


def test_a_node_that_is_being_rebuilt_takes_copies_but_its_silence_does_not_count() -> None:
    """V21: with replication 3 on five nodes, three must have reported that there is nothing."""
    recovering = Recovering()
    recovering.seal([0, 1])
    recovering.seal([2], status=SealStatus.REBUILDING)
    assert stage(recovering) is Sealing, "two are too few"
    recovering.seal([3])
    recovering.digest([2], copy(2, 1), lossy=True)
    recovering.digest([0, 1, 3])
    recovering.wait(10_000)
    stores = [effect for effect in recovering.all if isinstance(effect, Ask)]
    found = {effect.node for effect in stores if _lsn(effect.request) == Lsn.of(2, 1)}
    assert NodeId(2) in found, "its copies are kept, also on this node"


def _lsn(request: object) -> Lsn | None:
    return request.record.lsn if isinstance(request, Store) else None


def test_a_node_that_is_empty_gets_no_copies() -> None:
    """V23: it would refuse them. Its old copies are elsewhere, so the others prove that nothing is lost."""
    metadata = EpochMetadata(Epoch(1), nodes(ALL), Replication.parse("2"))
    statuses = {
        NodeId(1): AuthoritativeStatus.AUTHORITATIVE_EMPTY,
        NodeId(2): AuthoritativeStatus.UNAVAILABLE,
    }
    for count in (1, 9):  # enough records that a copyset would contain N1, if it could
        recovering = Recovering(history=(metadata,), statuses=statuses)
        recovering.seal([0, 1, 3, 4])
        recovering.digest([0, 1, 3, 4], *(copy(2, esn) for esn in range(1, count + 1)))
        stores = [effect for effect in recovering.all if isinstance(effect, Ask)]
        assert {effect.node for effect in stores} == set(nodes([0, 3, 4]))
        copysets = [effect.request.record.copyset for effect in stores if isinstance(effect.request, Store)]
        assert copysets
        assert not any(NodeId(1) in copyset for copyset in copysets)


def test_too_few_copies_are_stored_only_if_the_missing_nodes_were_given_up() -> None:
    """V22: a node that came back and counts would prove by its silence that there is no such record."""
    small = EpochMetadata(Epoch(1), nodes([0, 1, 2]), Replication.parse("3"))
    for status, goes_on in (
        (AuthoritativeStatus.UNAVAILABLE, False),
        (AuthoritativeStatus.UNDERREPLICATION, True),
        (AuthoritativeStatus.AUTHORITATIVE_EMPTY, True),
    ):
        recovering = Recovering(history=(small,), statuses={NodeId(2): status})
        recovering.seal([0, 1])
        recovering.digest([0, 1])
        assert (stage(recovering) is not Digesting) == goes_on


def test_a_node_that_left_the_configuration_counts_as_one_that_lost_its_data() -> None:
    """V4: also in a log that is spread over racks, although the node's rack is not known any more."""
    metadata = EpochMetadata(Epoch(1), nodes([0, 1, 7]), Replication.parse("node: 2, rack: 2"))
    rack = {NodeId(node): Location.parse(f"r.d.c.w.k{node}") for node in (0, 1)}
    recovering = Recovering(history=(metadata,), locations=rack)
    recovering.seal([0, 1])
    recovering.digest([0, 1])
    assert recovering.sent(Store)[NodeId(0)].record.flags & BRIDGE
    assert sorted(recovering.sent(Store)) == [0, 1]


def test_a_node_that_may_have_lost_copies_here_proves_nothing() -> None:
    """V10."""
    recovering = Recovering()
    recovering.seal(ALL)
    recovering.digest([0, 1, 2], lossy=True)
    recovering.wait(100)
    assert stage(recovering) is Digesting
    recovering.digest([3, 4])
    assert recovering.sent(Store) == {}
    assert len(recovering.sent(Clean)) == 5


def test_recovery_waits_if_it_has_too_few_nodes_to_replicate() -> None:
    """V3: a log with an f-majority of one node still needs two for its copies."""
    metadata = EpochMetadata(Epoch(1), nodes([0, 1]), Replication.parse("2"))
    recovering = Recovering(history=(metadata,))
    recovering.seal([0])
    recovering.digest([0])
    recovering.wait(100)
    assert stage(recovering) is Digesting
    recovering.seal([1])
    recovering.digest([1])
    assert stage(recovering) is Mutating


def test_a_grace_period_ends_with_the_node_that_made_it_possible() -> None:
    """V3: the next grace period begins anew, and the old deadline does nothing."""
    metadata = EpochMetadata(Epoch(1), nodes([0, 1, 2, 3]), Replication.parse("3"))
    recovering = Recovering(history=(metadata,))
    recovering.seal([0, 1, 2, 3])
    recovering.digest([0, 1, 2])
    recovering.lose(2)
    recovering.wait(100)
    assert stage(recovering) is Digesting
    assert [effect for effect in recovering.all if isinstance(effect, WakeAt) and effect.time_ms <= 100] == []
    recovering.seal([2])
    recovering.digest([2])
    assert stage(recovering) is Digesting
    recovering.wait(100)
    assert stage(recovering) is Mutating


def test_an_epoch_that_was_trimmed_completely_needs_no_decision() -> None:
    """V5."""
    recovering = Recovering()
    recovering.seal(ALL, tail(2, 3, 9), trim=Lsn.of(4, 7))
    recovering.digest(ALL, start=int(Lsn.of(3, 0) - 1) & 0xFFFFFFFF)
    clean = recovering.sent(Clean)[NodeId(0)]
    assert (clean.good_end, clean.end) == (Lsn.of(3, 0), Lsn.of(3, 0))


def test_trimmed_lsns_are_not_plugged() -> None:
    """V5: what a node said stays true when it is lost."""
    recovering = Recovering()
    recovering.seal([4], trim=Lsn.of(2, 5))
    recovering.seal([0, 1, 2, 3])
    recovering.lose(4)
    recovering.digest([0, 1, 2, 3], start=4)
    recovering.wait(100)
    assert {store.record.lsn for store in recovering.sent(Store).values()} == {Lsn.of(2, 5)}
