"""The log state of a storage node: clean epochs, releases, purges, trims, and what survives a crash."""

from __future__ import annotations

from logdevice.protocol.log_state.events import ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    PersistError,
    PutState,
    TrimLog,
)
from logdevice.protocol.log_state.tests.node_log import (
    LOG,
    Node,
    clean,
    lsn,
    release,
    seal,
    store,
)
from logdevice.protocol.messages.write import (
    Cleaned,
    EpochRecovered,
    GetEpochRecovery,
    Sealed,
    SealStatus,
    Stored,
    StoreStatus,
    Trim,
    Trimmed,
)
from logdevice.protocol.sequencer.epoch_state import ReadMetadataLog
from logdevice.types import Epoch, Lsn, NodeId, RecordFlags, nodes

OK, PREEMPTED, FAILED = StoreStatus.OK, StoreStatus.PREEMPTED, StoreStatus.FAILED
BY_RECOVERY = int(RecordFlags.BY_RECOVERY)


def status(answer: object) -> StoreStatus:
    assert isinstance(answer, Stored)
    return answer.status


def sealed(answer: object) -> Sealed:
    assert isinstance(answer, Sealed)
    return answer


def recovered(epoch: int, good_end: str, end: str, *, known: bool = True) -> EpochRecovered:
    return EpochRecovered(epoch=Epoch(epoch), is_known=known, good_end=lsn(good_end), end=lsn(end))


# Clean and releases.


def test_a_clean_epoch_is_noted_durably() -> None:
    """V14: nodes that took part can tell others the result, also after a crash."""
    node = Node(prompt=False)
    request = node.request(clean(1, "e1n3", "e1n9", seal=1))
    assert request not in node.replies
    node.write()
    assert node.replies[request] == Cleaned(epoch=Epoch(1), attempt=1, status=SealStatus.OK)
    expected = EpochRecovered(epoch=Epoch(1), is_known=True, good_end=lsn("e1n3"), end=lsn("e1n9"))
    for life in (node, node.reboot()):
        assert life.ask(GetEpochRecovery(LOG, Epoch(1))) == expected
    unknown = node.ask(GetEpochRecovery(LOG, Epoch(2)))
    assert isinstance(unknown, EpochRecovered)
    assert not unknown.is_known


def test_a_clean_of_a_preempted_recovery_is_refused() -> None:
    """V16."""
    node = Node()
    node.ask(seal(5, by=4))
    answer = node.ask(clean(1, "e1n3", "e1n9", seal=4))
    assert isinstance(answer, Cleaned)
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (SealStatus.PREEMPTED, 5, NodeId(4))


def test_a_clean_that_could_not_be_written_has_failed() -> None:
    """J7."""
    node = Node(prompt=False)
    request = node.request(clean(1, "e1n3", "e1n9", seal=1))
    node.fail(PersistError.IO_ERROR)
    answer = node.replies[request]
    assert isinstance(answer, Cleaned)
    assert answer.status is SealStatus.FAILED


def test_a_release_moves_forward_only() -> None:
    """J10."""
    node = Node()
    node.ask(release("e1n5"))
    assert node.others == [ReleaseAdvanced(lsn("e1n5"))]
    node.ask(release("e1n4"))
    assert node.others == []


def test_a_release_closes_the_epochs_before_it() -> None:
    """J10: an outdated sequencer cannot store here, even if no recovery has sealed the node."""
    node = Node()
    node.ask(release("e3n1", sender=2))
    refused = node.ask(store("e2n7", draining=True))
    assert isinstance(refused, Stored)
    assert (refused.status, refused.seal_epoch, refused.sealed_by) == (PREEMPTED, 2, NodeId(2))


def test_an_epoch_without_copies_does_not_delay_a_release() -> None:
    """J10, Y1: nothing here can contradict the recovery."""
    node = Node()
    node.ask(release("e4n2"))
    assert node.others == [ReleaseAdvanced(lsn("e4n2"))]


def test_an_epoch_that_this_node_helped_to_recover_is_released() -> None:
    """J10."""
    node = Node()
    node.ask(store("e1n1"))
    node.ask(clean(1, "e1n2", "e1n3", seal=1))
    node.ask(release("e2n1"))
    assert node.others == [ReleaseAdvanced(lsn("e2n1"))]


def test_progress_is_written_now_and_then_and_survives_a_crash() -> None:
    node = Node()
    node.ask(release("e1n5"))
    node.ask(release("e1n6"))
    node.wait(999)
    assert node.written == []
    node.wait(1)
    assert [write.name for write in node.written if isinstance(write, PutState)] == ["progress"]
    assert node.reboot().machine.stored.released_end == lsn("e1n6")


def test_an_epoch_that_was_released_is_clean_after_a_crash_too() -> None:
    """J10: copies of older epochs need no purge."""
    node = Node()
    node.ask(store("e1n1"))
    node.ask(clean(1, "e1n2", "e1n3", seal=1))
    node.ask(store("e2n1"))
    node.ask(release("e2n2"))
    node.wait(1000)
    stored = node.reboot().machine.stored
    assert (stored.last_clean, list(stored.epochs)) == (1, [2])


def test_progress_that_could_not_be_written_does_no_harm() -> None:
    node = Node(prompt=False)
    node.request(release("e1n5"))
    node.wait(1000)
    assert node.fail(PersistError.NO_SPACE) == []


# Purge.


def test_a_node_that_missed_a_recovery_purges_before_it_releases_more() -> None:
    """Y1, Y3: it deletes what recovery did not see, and then goes on."""
    node = Node()
    node.ask(store("e1n3", good_end="e1n2"))
    node.ask(release("e2n5"))
    assert node.others == [ReleaseAdvanced(lsn("e1n1")), ReadMetadataLog(LOG)]
    node.ask(release("e2n6"))
    assert node.others == []
    assert node.answer(2, recovered(1, "e1n3", "e1n7")) == [ReleaseAdvanced(lsn("e2n6"))]
    assert DeleteRecords(LOG, lsn("e1n3"), Lsn.of(2, 0)) in node.written
    reborn = node.reboot()
    assert status(reborn.ask(store("e1n3"))) is PREEMPTED
    reborn.ask(release("e2n7"))
    assert reborn.others == [ReleaseAdvanced(lsn("e2n7"))]


def test_epochs_are_purged_one_after_the_other() -> None:
    """Y1."""
    node = Node()
    node.ask(store("e1n3"))
    node.ask(store("e2n3"))
    node.ask(release("e3n5"))
    assert node.answer(2, recovered(1, "e1n1", "e1n2")) == [
        ReleaseAdvanced(lsn("e2n1")),
        ReadMetadataLog(LOG),
    ]
    assert node.answer(2, recovered(1, "e1n1", "e1n2")) == []
    assert node.answer(2, recovered(2, "e2n1", "e2n2")) == [ReleaseAdvanced(lsn("e3n5"))]


def test_records_that_a_node_knows_to_be_good_are_not_purged() -> None:
    """Y3: even if recovery did not know."""
    node = Node()
    node.ask(store("e1n9", good_end="e1n8"))
    node.ask(release("e2n1"))
    node.answer(2, recovered(1, "e1n1", "e1n2"))
    assert DeleteRecords(LOG, lsn("e1n8"), Lsn.of(2, 0)) in node.written


def test_a_purge_deletes_nothing_if_no_node_knows_of_a_recovery() -> None:
    """Y4."""
    node = Node()
    node.ask(store("e1n3"))
    node.ask(release("e2n1"))
    assert node.answer(2, recovered(1, "e0n0", "e0n0", known=False)) == [ReleaseAdvanced(lsn("e2n1"))]
    assert not any(isinstance(write, DeleteRecords) for write in node.written)


def test_a_purge_that_could_not_be_written_is_tried_again() -> None:
    """Y5: at the next release."""
    node = Node()
    node.ask(store("e1n3"))
    node.ask(release("e2n1"))
    node.prompt = False
    node.answer(2, recovered(1, "e1n1", "e1n2"))
    node.fail(PersistError.IO_ERROR)
    node.ask(release("e2n1"))
    assert node.others == [ReadMetadataLog(LOG)]


def test_a_recovery_that_comes_during_a_purge_replaces_it() -> None:
    """Y1: then the node has taken part after all, and keeps its copies."""
    node = Node()
    node.ask(store("e1n3"))
    node.ask(release("e2n1"))
    node.ask(clean(1, "e1n2", "e1n5", seal=1))
    assert node.others == [ReleaseAdvanced(lsn("e2n1"))]
    assert node.answer(2, recovered(1, "e1n1", "e1n2")) == []
    assert not any(isinstance(write, DeleteRecords) for write in node.written)


# Trims.


def test_a_trim_point_is_first_durable_then_told_to_readers_then_applied() -> None:
    """J11."""
    node = Node(prompt=False)
    request = node.request(Trim(LOG, lsn("e1n5")))
    assert node.others == []
    assert node.write() == [TrimAdvanced(lsn("e1n5"))]
    assert [persist.writes for persist in node.unwritten] == [(TrimLog(LOG, lsn("e1n5")),)]
    assert node.replies[request] == Trimmed(lsn("e1n5"))


def test_a_trim_point_never_moves_back() -> None:
    """J11: not by a lower trim, not by two at once, not by a crash."""
    node = Node(prompt=False)
    node.request(Trim(LOG, lsn("e1n5")))
    late = node.request(Trim(LOG, lsn("e1n3")))
    node.write()
    node.write()
    assert node.replies[late] == Trimmed(lsn("e1n5"))
    assert node.ask(Trim(LOG, lsn("e1n4"))) == Trimmed(lsn("e1n5"))
    reborn = node.reboot()
    assert reborn.machine.stored.trim_end == lsn("e1n5")
    assert reborn.written == [TrimLog(LOG, lsn("e1n5"))]


def test_a_store_into_a_clean_epoch_leaves_it_clean() -> None:
    """J10: another recovery may recover it again."""
    node = Node()
    node.ask(release("e3n1"))
    assert status(node.ask(store("e2n1", recovery=True, wave=2))) is OK
    node.ask(release("e3n2"))
    assert node.others == [ReleaseAdvanced(lsn("e3n2"))]


def test_flags_of_recovery_are_kept_in_an_amended_header() -> None:
    """J6, V13."""
    node = Node()
    node.ask(store("e1n1"))
    node.ask(store("e1n1", amend=True, recovery=True, wave=2))
    assert node.written[-1] == AmendRecord(LOG, lsn("e1n1"), nodes([1, 2, 3]), BY_RECOVERY, 2)
