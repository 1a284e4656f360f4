"""Write-once positions on a storage node."""

from __future__ import annotations

from logdevice.protocol.chain.tests.chaining import HOLE, LOG, chain_store, record
from logdevice.protocol.io import Tell
from logdevice.protocol.log_state.events import RebuildingChanged
from logdevice.protocol.log_state.store_read import ReadEnd, ReadFailed, RecordsRead
from logdevice.protocol.log_state.store_write import PersistError, PutRecord
from logdevice.protocol.log_state.tests.node_log import Node, clean, digest, seal, store
from logdevice.protocol.messages.chain import ChainCompleted, ChainCopy, ChainRead
from logdevice.protocol.messages.write import Release, Stored, StoreStatus, Trim
from logdevice.types import Epoch, Lsn, NodeId, nodes

OK, TAKEN, PREEMPTED = StoreStatus.OK, StoreStatus.TAKEN, StoreStatus.PREEMPTED


def at(esn: int, epoch: int = 2) -> Lsn:
    return Lsn.of(epoch, esn)


def stored(answer: object) -> Stored:
    assert isinstance(answer, Stored)
    return answer


def writing() -> Node:
    """A node that has records of the epoch; its writes are durable when the test says so."""
    node = Node()
    node.ask(chain_store(at(1)))
    node.prompt = False
    node.replies.clear()
    return node


def status(answer: object) -> StoreStatus:
    return stored(answer).status


def test_what_comes_first_to_a_position_stays() -> None:
    # P5
    node = Node()
    assert status(node.ask(chain_store())) is OK
    assert status(node.ask(chain_store())) is OK
    assert status(node.ask(chain_store(flags=HOLE))) is TAKEN
    assert status(node.ask(chain_store(at(6), flags=HOLE))) is OK
    assert status(node.ask(chain_store(at(6), flags=HOLE))) is OK
    assert status(node.ask(chain_store(at(6)))) is TAKEN
    puts = [write.record for write in node.written if isinstance(write, PutRecord)]
    assert puts == [record(), record(at(6), flags=HOLE)]


def test_a_node_that_was_restarted_reads_its_copies_first() -> None:
    # P5
    node = Node()
    node.ask(chain_store(at(5)))
    node.ask(chain_store(at(7), flags=HOLE))
    again = node.reboot()
    again.copies = node.copies
    assert status(again.ask(chain_store(at(5), flags=HOLE))) is TAKEN
    assert status(again.ask(chain_store(at(7)))) is TAKEN
    assert status(again.ask(chain_store(at(6)))) is OK  # nothing was there
    assert len([write for write in again.written if isinstance(write, PutRecord)]) == 1


def test_stores_of_one_position_take_turns() -> None:
    # P7
    node = writing()
    first = node.request(chain_store())
    second = node.request(chain_store(flags=HOLE))
    other = node.request(chain_store(at(6)))
    assert not node.replies  # J7: answered only once it is durable
    node.write()
    assert status(node.replies[first]) is OK
    (look,) = node.look_ups
    node.find(look)
    assert status(node.replies[second]) is TAKEN
    node.write()
    assert status(node.replies[other]) is OK


def test_a_store_that_failed_leaves_the_position_to_the_next() -> None:
    # P7
    node = writing()
    first = node.request(chain_store())
    second = node.request(chain_store(flags=HOLE))
    node.fail(PersistError.NO_SPACE)
    assert status(node.replies[first]) is StoreStatus.NO_SPACE
    node.find(node.look_ups[0])
    node.write()
    assert status(node.replies[second]) is OK


def test_too_many_stores_of_one_position_are_refused() -> None:
    # P7
    node = writing()
    for _ in range(16):
        node.request(chain_store())
    assert status(node.replies[node.request(chain_store())]) is StoreStatus.OVERLOADED


def test_a_store_of_a_sealed_epoch_is_refused() -> None:
    # P6
    node = Node()
    node.ask(seal(2, by=4))
    answer = stored(node.ask(chain_store()))
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (PREEMPTED, Epoch(2), NodeId(4))
    assert status(node.ask(chain_store(at(1, epoch=3)))) is OK


def test_a_store_of_a_higher_epoch_seals_the_lower_ones() -> None:
    # P6
    node = Node()
    node.ask(chain_store(at(1, epoch=4)))
    answer = stored(node.ask(chain_store()))
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (PREEMPTED, Epoch(3), NodeId(9))


def test_a_seal_that_comes_while_the_node_reads_counts() -> None:
    # P6
    node = Node()
    node.ask(chain_store(at(9)))
    again = node.reboot()
    again.prompt = False
    request = again.request(chain_store(at(5)))
    (look,) = again.look_ups
    again.request(seal(2))
    again.find(look)
    assert status(again.replies[request]) is PREEMPTED


def test_nothing_is_stored_at_a_position_that_cannot_be_read() -> None:
    # P5
    node = Node()
    node.ask(chain_store(at(9)))
    again = node.reboot()
    again.prompt = False
    request = again.request(chain_store(at(5)))
    (look,) = again.look_ups
    again.feed(ReadFailed(look.read_id))
    assert status(again.replies[request]) is StoreStatus.FAILED


def test_nothing_is_stored_in_an_epoch_that_is_clean_even_if_its_seal_was_forgotten() -> None:
    # P6
    node = Node()
    node.ask(Release(LOG, at(1, epoch=4), NodeId(0)))
    node.wait(2_000)
    assert status(node.reboot().ask(chain_store())) is PREEMPTED


def test_the_tail_reports_to_the_sequencer() -> None:
    # P7: the tail is the first of the copyset
    node = Node()
    node.request(chain_store(copyset=nodes([1, 2])))
    assert node.others == [Tell(NodeId(9), ChainCompleted(LOG, at(5), False))]
    node.request(chain_store(at(6), flags=HOLE, copyset=nodes([1, 2])))
    assert node.others == [Tell(NodeId(9), ChainCompleted(LOG, at(6), True))]
    node.request(chain_store(at(7), copyset=nodes([2, 1])))
    assert node.others == []


def test_a_store_below_the_trim_point_is_acknowledged() -> None:
    # J11
    node = Node()
    node.ask(Trim(LOG, at(6)))
    assert status(node.ask(chain_store())) is OK
    assert status(node.ask(chain_store(flags=HOLE))) is OK
    assert not [write for write in node.written if isinstance(write, PutRecord)]


def test_a_node_that_is_being_rebuilt_takes_no_chain_stores() -> None:
    # J9
    node = Node()
    node.feed(RebuildingChanged(True))
    assert status(node.ask(chain_store())) is StoreStatus.REBUILDING


def test_a_digest_waits_for_chain_stores() -> None:
    # J12
    node = writing()
    node.request(chain_store())
    node.request(seal(2))
    node.request(digest(2, "e2n1", seal=2))
    assert not node.reads
    node.write()
    assert [read.start for read in node.reads] == [at(1)]


def test_a_recovery_replaces_what_a_chain_has() -> None:
    # P13: recovery decides for all
    node = Node()
    node.ask(chain_store(at(5)))
    node.ask(seal(2))
    node.ask(store("e2n5", wave=2, recovery=True))
    node.ask(clean(2, "e2n1", "e2n6", seal=2))
    assert status(node.ask(chain_store(at(5)))) is PREEMPTED
    assert node.copies[at(5)].wave == 2


def test_any_process_may_ask_what_is_at_a_position() -> None:
    # P9
    node = Node()
    request = node.request(ChainRead(LOG, at(5)))
    (read,) = node.reads
    assert (read.start, read.end, read.headers_only) == (at(5), at(6), False)
    node.feed(RecordsRead(read.read_id, (record(),), at(6), ReadEnd.LIMIT))
    assert node.replies[request] == ChainCopy(lsn=at(5), records=(record(),))
    request = node.request(ChainRead(LOG, at(5)))
    (read,) = node.reads
    node.feed(ReadFailed(read.read_id))
    assert node.replies[request] == ChainCopy(lsn=at(5), has_failed=True)


def test_the_answer_says_that_the_epoch_is_sealed() -> None:
    # P27: also when the seal came while the node read
    node = Node()
    node.ask(chain_store(at(5)))
    request = node.request(ChainRead(LOG, at(5)))
    (read,) = node.reads
    node.ask(seal(2))
    node.feed(RecordsRead(read.read_id, (record(),), at(6), ReadEnd.LIMIT))
    assert node.replies[request] == ChainCopy(lsn=at(5), records=(record(),), is_sealed=True)


def test_a_node_that_is_being_rebuilt_does_not_answer_what_is_at_a_position() -> None:
    # P27
    node = Node()
    node.feed(RebuildingChanged(True))
    request = node.request(ChainRead(LOG, at(5)))
    assert not node.reads
    assert node.replies[request] == ChainCopy(lsn=at(5), has_failed=True)
