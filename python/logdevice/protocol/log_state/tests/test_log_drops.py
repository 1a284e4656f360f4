"""Dropping superseded records on one storage node: K21 to K24."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.dropped_record import COMPACTED, NO_MARKS, PURGED, Marks, dropped, marks_of
from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd, ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import PersistError
from logdevice.protocol.log_state.tests.node_log import LOG, Node, lsn, record, release, store
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.messages.write import Drop, Dropped, DropStatus
from logdevice.types import Record, RecordFlags

OK = Dropped(DropStatus.OK)
AGAIN = Dropped(DropStatus.AGAIN)
FAILED = Dropped(DropStatus.FAILED)


def drop(*ranges: tuple[str, str], end: str = "e1n9", purged: str = "e0n0") -> Drop:
    spans = tuple((lsn(first), lsn(last)) for first, last in ranges)
    return Drop(log=LOG, ranges=spans, superseded_end=lsn(end), purged_end=lsn(purged))


def node_with_copies(count: int = 5) -> Node:
    node = Node()
    for number in range(1, count + 1):
        node.ask(store(f"e1n{number}"))
    node.request(release(f"e1n{count + 1}"))
    node.finds = False
    return node


def read(node: Node, *, at_most: int = 100) -> StoreRead:
    """Answers the read of the node with headers, as a store would."""
    [wanted] = [effect for effect in node.others if isinstance(effect, StoreRead)]
    assert wanted.headers_only
    held = [copy for at, copy in sorted(node.copies.items()) if wanted.start <= at < wanted.end]
    shipped = [copy for copy in held if wanted.filter.ships(copy.copyset, copy.flags)]
    items: tuple[Record | FilteredOut, ...] = tuple(replace(copy, body=b"") for copy in shipped[:at_most])
    next_lsn = wanted.end if len(shipped) <= at_most else shipped[at_most].lsn
    node.others = node.feed(RecordsRead(wanted.read_id, items, next_lsn, ReadEnd.LIMIT))
    return wanted


def said(node: Node) -> dict[str, bytes]:
    return {str(at): bytes(copy.body) for at, copy in node.copies.items() if not copy.flags & COMPACTED}


def test_named_records_lose_their_bodies_and_keep_their_headers() -> None:
    """K21: counters, tag and copyset stay, so that other parts of the node see an ordinary record."""
    node = node_with_copies()
    before = node.copies[lsn("e1n2")]
    number = node.request(drop(("e1n1", "e1n3"), ("e1n4", "e1n5")))
    read(node)
    assert node.replies[number] == OK
    assert sorted(said(node)) == ["e1n3", "e1n5"]
    after = node.copies[lsn("e1n2")]
    assert marks_of(after) == Marks(lsn("e1n9"), lsn("e0n0"))
    assert replace(after, body=before.body, flags=before.flags) == before


def test_records_that_are_not_released_here_are_not_dropped() -> None:
    """K22: recovery may still decide about them."""
    node = node_with_copies(3)
    assert node.ask(drop(("e1n1", "e1n5"))) == AGAIN
    assert not node.others
    assert len(said(node)) == 3


def test_a_drop_is_answered_when_it_is_durable() -> None:
    """K22."""
    node = node_with_copies()
    node.prompt = False
    number = node.request(drop(("e1n1", "e1n3")))
    read(node)
    assert number not in node.replies
    node.write()
    assert node.replies[number] == OK


def test_long_drops_are_done_in_steps() -> None:
    """K22."""
    node = node_with_copies()
    number = node.request(drop(("e1n1", "e1n6")))
    for _ in range(2):
        read(node, at_most=2)
        assert number not in node.replies
    read(node, at_most=2)
    assert node.replies[number] == OK
    assert said(node) == {}


def test_drops_wait_for_each_other_and_the_number_of_waiting_ones_is_limited() -> None:
    """K24."""
    node = node_with_copies()
    first = node.request(drop(("e1n1", "e1n2")))
    asked = node.others
    waiting = [node.request(drop(("e1n2", "e1n3"))) for _ in range(15)]
    assert node.ask(drop(("e1n2", "e1n3"))) == AGAIN
    node.others = asked
    for number in (first, *waiting):
        assert number not in node.replies
        read(node)
        assert node.replies[number] == OK
    assert sorted(said(node)) == ["e1n3", "e1n4", "e1n5"]


def test_an_empty_drop_is_done_at_once() -> None:
    assert node_with_copies().ask(drop()) == OK


def test_a_drop_fails_if_the_disk_fails() -> None:
    """K22."""
    node = node_with_copies()
    number = node.request(drop(("e1n1", "e1n3")))
    [wanted] = [effect for effect in node.others if isinstance(effect, StoreRead)]
    node.feed(ReadFailed(wanted.read_id))
    assert node.replies[number] == FAILED
    node.prompt = False
    number = node.request(drop(("e1n1", "e1n3")))
    read(node)
    node.fail(PersistError.NO_SPACE)
    assert node.replies[number] == FAILED


def test_rebuilding_waits_while_headers_are_written_back() -> None:
    """K24: a copyset that is amended in between would be lost."""
    node = node_with_copies()
    node.request(drop(("e1n1", "e1n3")))
    asked = node.others
    for request in (PutCopies(LOG, 1, (record("e1n2"),)), AmendCopies(LOG, 1, (record("e1n2"),))):
        assert node.ask(request) == CopiesStored(CopiesStatus.AGAIN)
    node.others = asked
    read(node)
    amend = node.request(AmendCopies(LOG, 1, (record("e1n2"),)))
    read(node)
    assert node.replies[amend] == CopiesStored(CopiesStatus.OK)


def test_a_drop_waits_while_copies_of_rebuilding_are_written() -> None:
    """K24: the read of a drop might still show the old header."""
    node = node_with_copies()
    node.prompt = False
    for request in (PutCopies(LOG, 1, (record("e1n2"),)), AmendCopies(LOG, 1, (record("e1n2"),))):
        node.request(request)
        asked = node.others
        assert node.ask(drop(("e1n1", "e1n3"))) == AGAIN
        node.others = asked
        read(node)
        assert node.ask(drop(("e1n1", "e1n3"))) == AGAIN
        node.write()
    node.request(AmendCopies(LOG, 1, (record("e1n2"),)))
    read(node)
    node.fail(PersistError.IO_ERROR)
    number = node.request(drop(("e1n1", "e1n3")))
    read(node)
    node.write()
    assert node.replies[number] == OK


def test_a_dropped_record_stays_as_it_is_unless_deletions_are_purged() -> None:
    """K21: a repeated drop writes nothing."""
    marks, purged = Marks(lsn("e1n9"), lsn("e0n0")), Marks(lsn("e1n9"), lsn("e1n7"))
    once = dropped(record("e1n2"), marks)
    assert once is not None
    assert once.flags == COMPACTED
    assert dropped(once, marks) is None
    gone = dropped(once, purged)
    assert gone is not None
    assert gone.flags == COMPACTED | PURGED
    assert marks_of(gone) == purged
    assert dropped(gone, marks) is None
    assert dropped(gone, purged) is None


def test_holes_and_bridges_are_never_dropped() -> None:
    """K21: they say something about the log."""
    hole = record("e1n2", flags=int(RecordFlags.HOLE), body=b"")
    assert dropped(hole, Marks(lsn("e1n9"), lsn("e0n0"))) is None


def test_a_dropped_record_without_its_body_has_no_marks() -> None:
    assert marks_of(record("e1n2", body=b"")) == NO_MARKS
