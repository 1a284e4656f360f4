"""The log state of a storage node: copies, deletes, seals, digests."""

from __future__ import annotations

from logdevice.protocol.log_state.events import RebuildingChanged
from logdevice.protocol.log_state.store_read import ReadEnd, ReadFailed, RecordsRead
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    PersistError,
    PutRecord,
)
from logdevice.protocol.log_state.stored_log import StoredLog
from logdevice.protocol.log_state.tests.node_log import (
    LOG,
    Node,
    clean,
    digest,
    lsn,
    record,
    seal,
    store,
)
from logdevice.protocol.messages.write import (
    Cleaned,
    Delete,
    DigestRecords,
    Sealed,
    SealStatus,
    Stored,
    StoreStatus,
    Trim,
)
from logdevice.types import Epoch, Lsn, NodeId, RecordFlags, nodes

OK, PREEMPTED, FAILED = StoreStatus.OK, StoreStatus.PREEMPTED, StoreStatus.FAILED
BY_RECOVERY = int(RecordFlags.BY_RECOVERY)


def status(answer: object) -> StoreStatus:
    assert isinstance(answer, Stored)
    return answer.status


def sealed(answer: object) -> Sealed:
    assert isinstance(answer, Sealed)
    return answer


# Stores.


def test_a_copy_is_durable_before_it_is_answered() -> None:
    """J7."""
    node = Node(prompt=False)
    request = node.request(store("e1n1"))
    node.find(node.look_ups[0])
    assert node.replies == {}
    node.write()
    assert node.written == [PutRecord(LOG, record("e1n1"))]
    stored = Stored(lsn=lsn("e1n1"), wave=1, status=OK)
    assert node.replies[request] == stored


def test_a_copy_that_could_not_be_written_is_answered_with_the_reason() -> None:
    """J7."""
    for error, expected in (
        (PersistError.NO_SPACE, StoreStatus.NO_SPACE),
        (PersistError.IO_ERROR, FAILED),
    ):
        node = Node(prompt=False)
        request = node.request(store("e1n1"))
        node.find(node.look_ups[0])
        node.fail(error)
        assert status(node.replies[request]) is expected


def test_a_record_in_order_is_written_without_a_look_up() -> None:
    """J5."""
    node = Node()
    node.ask(store("e1n1"))
    node.prompt = False
    node.request(store("e1n5"))
    assert node.look_ups == []
    node.request(store("e1n3"))
    assert [read.start for read in node.look_ups] == [lsn("e1n3")]


def test_a_store_of_a_sealed_epoch_is_refused() -> None:
    """J1: the refusal names the sealer. Stores of a later epoch are accepted."""
    node = Node()
    node.ask(seal(2, by=4))
    refused = node.ask(store("e2n1"))
    assert isinstance(refused, Stored)
    assert (refused.status, refused.seal_epoch, refused.sealed_by) == (PREEMPTED, 2, NodeId(4))
    assert not refused.is_soft
    assert status(node.ask(store("e3n1"))) is OK


def test_recovery_stores_into_the_epochs_that_it_has_sealed() -> None:
    """J2: a recovery with a lower seal is refused."""
    node = Node()
    node.ask(seal(3))
    assert status(node.ask(store("e2n1", recovery=True, wave=3))) is OK
    assert status(node.ask(store("e2n2", recovery=True, wave=2))) is PREEMPTED


def test_a_store_of_a_higher_epoch_seals_the_lower_ones_softly() -> None:
    """J3: unless their own sequencer is draining them; also after a crash."""
    node = Node()
    node.ask(store("e3n1", sender=2))
    for life in (node, node.reboot()):
        refused = life.ask(store("e2n1"))
        assert isinstance(refused, Stored)
        assert (refused.status, refused.is_soft, refused.sealed_by) == (PREEMPTED, True, NodeId(2))
        assert status(life.ask(store("e2n2", draining=True))) is OK


def test_a_store_by_recovery_seals_nothing() -> None:
    """J3: its record belongs to an epoch that is over."""
    node = Node()
    node.ask(store("e3n1", recovery=True, wave=4))
    assert status(node.ask(store("e2n1"))) is OK


def test_a_copy_is_replaced_only_by_one_that_takes_precedence() -> None:
    """J4: recovery beats the sequencer, then the higher wave or seal wins."""
    order = [
        store("e1n1", wave=1),
        store("e1n1", wave=2),
        store("e1n1", wave=1, recovery=True),
        store("e1n1", wave=3, recovery=True),
    ]
    for lower in range(4):
        for higher in range(4):
            node = Node()
            node.ask(order[lower])
            assert status(node.ask(order[higher])) is OK
            assert node.copies[lsn("e1n1")] == order[max(lower, higher)].record


def test_stores_of_one_lsn_take_turns() -> None:
    """J4, P7: a look-up would not find a copy that is still being written."""
    node = Node()
    node.ask(store("e1n9"))
    node.prompt = False
    node.request(store("e1n1", wave=2))
    (look_up,) = node.look_ups
    node.request(store("e1n1", wave=1))
    assert not node.look_ups
    node.find(look_up)
    node.write()
    node.find(node.look_ups[0])
    assert node.copies[lsn("e1n1")].wave == 2
    assert not node.unwritten


def test_a_header_is_amended_and_the_body_stays() -> None:
    """J6."""
    node = Node()
    node.ask(store("e1n1"))
    assert status(node.ask(store("e1n1", wave=2, amend=True))) is OK
    assert node.written[-1] == AmendRecord(LOG, lsn("e1n1"), nodes([1, 2, 3]), 0, 2)


def test_an_amend_without_a_copy_fails() -> None:
    """J6."""
    assert status(Node().ask(store("e1n1", amend=True))) is FAILED


def test_a_seal_that_comes_during_a_look_up_counts() -> None:
    """J1: it is checked again after the look-up, and the store is refused."""
    node = Node(prompt=False)
    request = node.request(store("e1n1"))
    (look_up,) = node.look_ups
    node.request(seal(1))
    node.find(look_up)
    assert status(node.replies[request]) is PREEMPTED


def test_a_node_that_is_being_rebuilt_takes_copies_and_its_silence_proves_nothing() -> None:
    """J9: it can be sealed, so that it takes no more of them later."""
    node = Node(rebuilding=True)
    assert status(node.ask(store("e1n1"))) is OK
    assert sealed(node.ask(seal(1))).status is SealStatus.REBUILDING
    assert status(node.ask(store("e1n2"))) is PREEMPTED
    node.feed(RebuildingChanged(False))
    assert sealed(node.ask(seal(1))).status is SealStatus.OK


def test_a_node_that_is_being_rebuilt_says_that_its_digest_may_lack_records() -> None:
    """J9."""
    node = Node(rebuilding=True)
    node.request(digest(1, "e1n1"))
    (read,) = node.reads
    node.feed(RecordsRead(read.read_id, (), read.end, ReadEnd.LIMIT))
    answer = node.replies[1]
    assert isinstance(answer, DigestRecords)
    assert (answer.has_failed, answer.under_replicated) == (False, True)


def test_records_below_the_trim_point_are_not_stored() -> None:
    """J11."""
    node = Node()
    node.ask(Trim(LOG, lsn("e1n5")))
    written = len(node.written)
    assert status(node.ask(store("e1n4"))) is OK
    assert len(node.written) == written


# Deletes.


def test_a_surplus_copy_is_deleted() -> None:
    """J8."""
    node = Node()
    node.ask(store("e1n1"))
    node.ask(Delete(LOG, lsn("e1n1"), 1))
    assert node.written[-1] == DeleteRecords(LOG, lsn("e1n1"), lsn("e1n2"))


def test_a_copy_that_is_needed_is_not_deleted() -> None:
    """J8: a copy of a later wave, a copy by recovery, any copy in a sealed epoch, a missing one."""
    later = Node()
    later.ask(store("e1n1", wave=2))
    by_recovery = Node()
    by_recovery.ask(store("e1n1", wave=1, recovery=True))
    in_sealed = Node()
    in_sealed.ask(store("e1n1"))
    in_sealed.ask(seal(1))
    for node in (later, by_recovery, in_sealed, Node()):
        node.ask(Delete(LOG, lsn("e1n1"), 1))
        assert not any(isinstance(write, DeleteRecords) for write in node.written)


# Seals and digests.


def test_a_seal_is_durable_before_it_is_answered() -> None:
    """J7, J1: but stores are refused at once, and after a crash."""
    node = Node(prompt=False)
    request = node.request(seal(2))
    assert status(node.ask(store("e2n1"))) is PREEMPTED
    assert request not in node.replies
    node.write()
    assert sealed(node.replies[request]).status is SealStatus.OK
    assert status(node.reboot().ask(store("e2n1"))) is PREEMPTED


def test_a_seal_that_could_not_be_written_has_failed() -> None:
    """J7."""
    node = Node(prompt=False)
    request = node.request(seal(2))
    node.fail(PersistError.IO_ERROR)
    assert sealed(node.replies[request]).status is SealStatus.FAILED


def test_a_lower_seal_is_preempted_by_a_higher_one() -> None:
    """J1: V16 depends on it."""
    node = Node()
    node.ask(seal(5, by=4))
    answer = sealed(node.ask(seal(4, by=3)))
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (SealStatus.PREEMPTED, 5, NodeId(4))


def test_a_sealed_node_says_what_it_knows_about_every_unclean_epoch() -> None:
    """V2, V5: its good end and its newest record; also what the node knew before a crash."""
    node = Node()
    node.ask(store("e1n1"))
    node.ask(store("e2n3", good_end="e2n2"))
    node.ask(store("e2n4", good_end="e2n3"))
    node.wait(1000)
    for life in (node, node.reboot()):
        tails = sealed(life.ask(seal(2, last_clean=1))).tails
        assert [(tail.epoch, tail.good_end, tail.end.lsn) for tail in tails] == [
            (2, lsn("e2n3"), lsn("e2n5"))
        ]
        assert (tails[0].end.timestamp_ms, tails[0].end.entry_end, tails[0].end.byte_end) == (4, 40, 400)


def test_a_digest_reads_all_copies_to_the_end_of_the_epoch() -> None:
    """J12: released or not, and also those that other nodes have."""
    node = Node()
    node.request(digest(1, "e1n3"))
    (read,) = node.reads
    assert (read.start, read.end, read.gap_end) == (lsn("e1n3"), Lsn.of(2, 0), Lsn.of(2, 0))
    assert read.filter.ships(nodes([8, 9]), 0)
    copies = (record("e1n3"), record("e1n5"))
    node.feed(RecordsRead(read.read_id, copies, lsn("e1n6"), ReadEnd.BYTES, under_replicated=True))
    assert node.replies[1] == DigestRecords(
        epoch=Epoch(1),
        start=lsn("e1n3"),
        attempt=1,
        next=lsn("e1n6"),
        records=copies,
        under_replicated=True,
    )


def test_a_digest_of_a_broken_disk_has_failed() -> None:
    """J12."""
    node = Node()
    node.request(digest(1, "e1n3"))
    node.feed(ReadFailed(node.reads[0].read_id))
    answer = node.replies[1]
    assert isinstance(answer, DigestRecords)
    assert (answer.has_failed, answer.next, answer.records) == (True, lsn("e1n3"), ())


def test_a_digest_waits_for_the_stores_that_came_before_it() -> None:
    """J12: for those of its epoch; stores of other epochs never stop."""
    node = Node(prompt=False)
    node.request(store("e2n1"))
    node.request(store("e1n2", recovery=True, attempt=1))
    (look_up,) = node.look_ups
    node.request(digest(1, "e1n1"))
    assert node.reads == []
    node.find(look_up)
    assert node.reads == []
    node.write()
    assert len(node.reads) == 1


def test_a_digest_waits_for_all_stores_that_take_turns_at_an_lsn() -> None:
    """J12."""
    node = Node()
    node.ask(store("e1n1"))
    node.prompt = False
    node.request(Delete(LOG, lsn("e1n1"), 1))
    (look_up,) = node.look_ups
    replaced = node.request(store("e1n1", wave=2))
    node.request(digest(1, "e1n1"))
    node.find(look_up)
    node.write()
    node.find(node.look_ups[0])
    assert node.reads == []
    node.write()
    assert status(node.replies[replaced]) is OK
    assert len(node.reads) == 1


def test_a_delete_that_failed_leaves_the_lsn_to_the_next() -> None:
    """J8."""
    node = Node()
    node.ask(store("e1n1"))
    node.prompt = False
    node.request(Delete(LOG, lsn("e1n1"), 1))
    node.find(node.look_ups[0])
    node.fail(PersistError.IO_ERROR)
    node.request(store("e1n1", wave=2))
    assert len(node.look_ups) == 1


def test_a_store_of_a_clean_epoch_is_refused_even_if_its_seal_was_forgotten() -> None:
    """J1: the refusal names no seal."""
    answer = Node(StoredLog(last_clean=Epoch(3))).ask(store("e3n1"))
    assert isinstance(answer, Stored)
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (PREEMPTED, Epoch(0), None)


def test_a_digest_fences_off_messages_of_earlier_attempts() -> None:
    """J12: V15 depends on it."""
    node = Node()
    node.ask(seal(3))
    node.request(digest(1, "e1n1", seal=3, attempt=2))
    assert status(node.ask(store("e1n1", recovery=True, wave=3, attempt=1))) is FAILED
    assert status(node.ask(store("e1n1", recovery=True, wave=3, attempt=2))) is OK
    late = node.ask(clean(1, "e1n1", "e1n3", seal=3, attempt=1))
    assert isinstance(late, Cleaned)
    assert late.status is SealStatus.FAILED
