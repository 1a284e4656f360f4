"""Copies that rebuilding brings to a storage node: rules P67, P68 and P80."""

from __future__ import annotations

from logdevice.protocol.log_state.events import Answer
from logdevice.protocol.log_state.store_read import ReadEnd, ReadFailed, RecordsRead
from logdevice.protocol.log_state.store_write import AmendRecord, DeleteRecords, PersistError, PutRecord
from logdevice.protocol.log_state.tests.node_log import LOG, Node, lsn, record, release, seal
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.messages.write import EpochRecovered, Sealed
from logdevice.types import Epoch, nodes


def stored(status: CopiesStatus) -> CopiesStored:
    return CopiesStored(status)


def bring(node: Node, request: PutCopies | AmendCopies) -> Answer | None:
    """Sends a request and answers the look-ups of the node."""
    asked = node.request(request)
    for read in node.reads:
        node.find(read)
    return node.replies.get(asked)


def test_copies_of_released_records_are_kept() -> None:
    """P67: also on a node that is being rebuilt."""
    node = Node(rebuilding=True)
    node.request(release("e1n5"))
    copies = (record("e1n1"), record("e1n3"))
    assert bring(node, PutCopies(LOG, 1, copies)) == stored(CopiesStatus.OK)
    assert [write.record for write in node.written if isinstance(write, PutRecord)] == list(copies)


def test_copies_of_records_not_released_here_must_wait() -> None:
    """P67: a purge of their epoch would delete them."""
    node = Node()
    node.request(release("e1n3"))
    records = (record("e1n2"), record("e1n3"))
    for request in (PutCopies(LOG, 1, records), AmendCopies(LOG, 1, records)):
        assert node.ask(request) == stored(CopiesStatus.AGAIN)
    assert not any(isinstance(write, PutRecord | AmendRecord) for write in node.written)


def test_recovery_learns_of_copies_that_were_put_into_an_open_epoch() -> None:
    """P67."""
    node = Node()
    node.request(release("e2n5"))
    bring(node, PutCopies(LOG, 1, (record("e1n9"), record("e2n4"))))
    sealed = node.ask(seal(2))
    assert isinstance(sealed, Sealed)
    assert [(tail.epoch, tail.end.lsn) for tail in sealed.tails] == [(2, lsn("e2n5"))]


def test_copies_that_were_put_survive_a_recovery_without_the_node() -> None:
    """P67: also if the node crashes in between."""
    node = Node(rebuilding=True)
    node.request(release("e1n5"))
    node.ask(PutCopies(LOG, 1, (record("e1n3"),)))
    for life in (node, node.reboot()):
        life.request(release("e2n1"))
        recovered = EpochRecovered(epoch=Epoch(1), is_known=True, good_end=lsn("e1n2"), end=lsn("e1n9"))
        life.answer(2, recovered)
        deleted = [write for write in life.written if isinstance(write, DeleteRecords)]
        assert [write.start for write in deleted] == [lsn("e1n5")]


def test_copies_of_an_epoch_that_is_over_are_not_purged_after_a_crash() -> None:
    """P67: a node that lost its disk does not know how the epoch ended. It would purge and delete them."""
    node = Node(rebuilding=True)
    node.request(release("e2n5"))
    node.ask(PutCopies(LOG, 1, (record("e1n9"),)))
    again = node.reboot()
    assert again.machine.stored.released_end == lsn("e2n5")
    assert not again.machine.stored.unclean(Epoch(3))


def test_headers_of_copies_are_changed() -> None:
    """P68."""
    node = Node()
    node.request(release("e1n5"))
    header = record("e1n1", wave=3, flags=8)
    assert node.ask(AmendCopies(LOG, 1, (header,))) == stored(CopiesStatus.OK)
    assert node.written[-1] == AmendRecord(LOG, lsn("e1n1"), header.copyset, 8, 3)
    assert header.copyset == nodes(header.copyset)


def test_a_copy_of_an_older_wave_replaces_nothing() -> None:
    """P80: its copyset names other nodes, which would wrongly count as the holders of the record."""
    node = Node()
    node.request(release("e1n5"))
    bring(node, PutCopies(LOG, 1, (record("e1n1", wave=2), record("e1n2"), record("e1n3"))))
    node.written.clear()
    older = (record("e1n1"), record("e1n2", wave=2), record("e1n3"), record("e1n4"))
    for request in (PutCopies(LOG, 1, older), AmendCopies(LOG, 1, older)):
        assert bring(node, request) == stored(CopiesStatus.OK)
    put = [write.record.lsn for write in node.written if isinstance(write, PutRecord)]
    amended = [write.lsn for write in node.written if isinstance(write, AmendRecord)]
    assert put == amended == [lsn("e1n2"), lsn("e1n3"), lsn("e1n4")]


def test_requests_of_two_donors_are_handled_one_after_the_other() -> None:
    """P80: the second look-up shows what the first request wrote. Further requests must come again."""
    node = Node(prompt=False)
    node.request(release("e1n5"))
    newer = node.request(PutCopies(LOG, 1, (record("e1n1", wave=2),)))
    first = node.look_ups[0]
    older = [node.request(PutCopies(LOG, 1, (record("e1n1"),))) for _ in range(16)]
    assert not node.look_ups
    assert node.replies == {older[-1]: stored(CopiesStatus.AGAIN)}
    node.find(first)
    assert newer not in node.replies
    node.write()
    assert node.replies[newer] == stored(CopiesStatus.OK)
    node.find(node.look_ups[0])
    node.write()
    assert node.replies[older[0]] == stored(CopiesStatus.OK)
    assert node.copies[lsn("e1n1")].wave == 2


def test_copies_that_do_not_fit_into_one_read_are_looked_up_by_several() -> None:
    """P80: copies that only the second read shows count, too."""
    node = Node()
    node.request(release("e1n5"))
    newer = (record("e1n1", wave=2), record("e1n4", wave=2))
    bring(node, PutCopies(LOG, 1, newer))
    node.written.clear()
    request = node.request(PutCopies(LOG, 1, (record("e1n1"), record("e1n4"))))
    (first,) = node.reads
    node.feed(RecordsRead(first.read_id, newer[:1], lsn("e1n3"), ReadEnd.LIMIT))
    assert request not in node.replies
    (second,) = node.reads
    assert (second.start, second.end) == (lsn("e1n3"), first.end)
    node.find(second)
    assert node.replies[request] == stored(CopiesStatus.OK)
    assert not any(isinstance(write, PutRecord) for write in node.written)


def test_a_node_that_cannot_read_its_copies_answers_that_it_has_failed() -> None:
    """P80."""
    node = Node(prompt=False)
    node.request(release("e1n5"))
    request = node.request(PutCopies(LOG, 1, (record("e1n1"),)))
    node.feed(ReadFailed(node.look_ups[0].read_id))
    assert node.replies[request] == stored(CopiesStatus.FAILED)


def test_a_failed_write_is_reported_to_the_donor() -> None:
    """P67."""
    for error, status in (
        (PersistError.NO_SPACE, CopiesStatus.NO_SPACE),
        (PersistError.IO_ERROR, CopiesStatus.FAILED),
    ):
        node = Node(prompt=False)
        node.request(release("e1n5"))
        request = node.request(PutCopies(LOG, 1, (record("e1n1"),)))
        node.find(node.look_ups[0])
        node.fail(error)
        assert node.replies[request] == stored(status)
