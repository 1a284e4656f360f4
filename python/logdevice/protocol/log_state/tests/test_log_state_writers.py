"""What a storage node stores for the recovery of received tables."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.log_state.store_write import PutRecord, PutState
from logdevice.protocol.log_state.tests.node_log import LOG, Node, clean, digest, lsn, release, seal, store
from logdevice.protocol.messages.write import KeepWriters, Sealed, SealStatus, Store
from logdevice.types import Lsn, WriterTag

TAG = WriterTag(5, 1, 1, 1, 1)


def tagged(at: str) -> Store:
    plain = store(at)
    return replace(plain, record=replace(plain.record, tag=TAG))


def sealed(node: Node, epoch: int = 2) -> Sealed:
    answer = node.ask(seal(epoch))
    assert isinstance(answer, Sealed)
    return answer


def test_the_first_tagged_record_of_an_epoch_is_noted_together_with_it() -> None:
    """O13."""
    node = Node()
    node.request(store("e1n1"))
    for at in ("e1n3", "e1n5", "e1n2"):
        node.request(tagged(at))
    names = [write.name for write in node.written if isinstance(write, PutState) and "tagged" in write.name]
    assert names == ["tagged/1", "tagged/1"]
    (first, *_) = [index for index, write in enumerate(node.written) if isinstance(write, PutState)]
    assert isinstance(node.written[first - 1], PutRecord)
    assert [tail.tagged_start for tail in sealed(node).tails] == [lsn("e1n2")]
    assert [tail.tagged_start for tail in sealed(node.reboot()).tails] == [lsn("e1n2")]


def test_records_without_a_tag_and_clean_epochs_leave_no_note() -> None:
    """O13."""
    node = Node()
    node.request(store("e1n1"))
    assert sealed(node, 1).tails[0].tagged_start == Lsn(0)
    node.ask(clean(1, "e1n1", "e1n2", seal=1))
    node.request(release("e2n1"))
    late = tagged("e1n9")
    recovered = replace(late, record=replace(late.record, flags=4, wave=1))
    node.request(recovered)
    assert not [write for write in node.written if isinstance(write, PutState) and "tagged" in write.name]


def test_the_newest_received_table_is_kept_and_told_with_the_seal() -> None:
    """O12."""
    node = Node()
    for end, table in (("e2n5", b"five"), ("e2n3", b"three"), ("e2n5", b"again")):
        assert node.ask(KeepWriters(LOG, lsn(end), table)) is None
    answer = sealed(node)
    assert (answer.writers_end, answer.writers) == (lsn("e2n5"), b"five")
    again = sealed(node.reboot())
    assert (again.writers_end, again.writers) == (lsn("e2n5"), b"five")
    refused = node.ask(seal(1))
    assert isinstance(refused, Sealed)
    assert (refused.status, refused.writers_end, refused.writers) == (SealStatus.PREEMPTED, Lsn(0), b"")


def test_below_a_point_a_digest_reads_headers_only() -> None:
    """O11."""
    node = Node()
    node.request(replace(digest(1, "e1n3"), headers_end=lsn("e1n7")))
    (effect,) = node.reads
    assert (effect.headers_only, effect.start, effect.end) == (True, lsn("e1n3"), lsn("e1n7"))
    node.request(replace(digest(1, "e1n7"), headers_end=lsn("e1n7")))
    (effect,) = node.reads
    assert (effect.headers_only, effect.end) == (False, Lsn.of(2, 0))
