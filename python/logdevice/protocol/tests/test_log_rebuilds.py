"""Copies that rebuilding brings to a storage node: rules P67 and P68."""

from __future__ import annotations

from logdevice.protocol.rebuilding_messages import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.store_write import AmendRecord, DeleteRecords, PersistError, PutRecord
from logdevice.protocol.tests.node_log import LOG, Node, lsn, record, release, seal
from logdevice.protocol.write_messages import EpochRecovered, Sealed
from logdevice.types import Epoch, nodes


def stored(status: CopiesStatus) -> CopiesStored:
    return CopiesStored(status)


def test_copies_of_released_records_are_kept() -> None:
    """P67: also by a node that is being rebuilt."""
    node = Node(rebuilding=True)
    node.request(release("e1n5"))
    copies = (record("e1n1"), record("e1n3"))
    assert node.ask(PutCopies(LOG, 1, copies)) == stored(CopiesStatus.OK)
    assert [write.record for write in node.written if isinstance(write, PutRecord)] == list(copies)


def test_copies_of_what_is_not_released_here_have_to_wait() -> None:
    """P67: a purge of their epoch would take them."""
    node = Node()
    node.request(release("e1n3"))
    assert node.ask(PutCopies(LOG, 1, (record("e1n2"), record("e1n3")))) == stored(CopiesStatus.AGAIN)
    assert not any(isinstance(write, PutRecord) for write in node.written)


def test_recovery_hears_of_copies_that_were_put_into_an_epoch_that_goes_on() -> None:
    """P67."""
    node = Node()
    node.request(release("e2n5"))
    node.ask(PutCopies(LOG, 1, (record("e1n9"), record("e2n4"))))
    sealed = node.ask(seal(2))
    assert isinstance(sealed, Sealed)
    assert [(tail.epoch, tail.end.lsn) for tail in sealed.tails] == [(2, lsn("e2n5"))]


def test_copies_that_were_put_survive_a_recovery_that_goes_by_without_the_node() -> None:
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
    """P67: a node that lost its disk has forgotten how the epoch ended, and would ask and delete."""
    node = Node(rebuilding=True)
    node.request(release("e2n5"))
    node.ask(PutCopies(LOG, 1, (record("e1n9"),)))
    again = node.reboot()
    assert again.machine.stored.released_end == lsn("e2n5")
    assert not again.machine.stored.unclean(Epoch(3))


def test_headers_of_copies_are_changed() -> None:
    """P68."""
    node = Node()
    header = record("e1n1", wave=3, flags=8)
    assert node.ask(AmendCopies(LOG, 1, (header,))) == stored(CopiesStatus.OK)
    assert node.written == [AmendRecord(LOG, lsn("e1n1"), header.copyset, 8, 3)]
    assert header.copyset == nodes(header.copyset)


def test_a_disk_that_fails_is_told_of() -> None:
    """P67."""
    for error, status in (
        (PersistError.NO_SPACE, CopiesStatus.NO_SPACE),
        (PersistError.IO_ERROR, CopiesStatus.FAILED),
    ):
        node = Node(prompt=False)
        node.request(release("e1n5"))
        request = node.request(PutCopies(LOG, 1, (record("e1n1"),)))
        node.fail(error)
        assert node.replies[request] == stored(status)
