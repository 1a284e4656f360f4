"""Write-once positions on a storage node."""

from __future__ import annotations

import pytest

from logdevice.protocol.chain import copies
from logdevice.protocol.chain.messages import ChainCompleted, ChainCopy, ChainRead, ChainStatus, ChainStored
from logdevice.protocol.log_state_events import (
    CopyFound,
    FindCopy,
    ReadCopies,
    RebuildingChanged,
    ReportCompleted,
)
from logdevice.protocol.store_read import ReadEnd, ReadFailed, RecordsRead
from logdevice.protocol.store_write import PersistError, PutRecord
from logdevice.protocol.tests.chaining import HOLE, LOG, chain_store, record
from logdevice.protocol.tests.node_log import Node, clean, digest, seal, store
from logdevice.protocol.write_messages import Release, Trim
from logdevice.types import Epoch, Lsn, NodeId, nodes

DATA, IS_HOLE, PREEMPTED = ChainStatus.DATA, ChainStatus.HOLE, ChainStatus.PREEMPTED


def at(esn: int, epoch: int = 2) -> Lsn:
    return Lsn.of(epoch, esn)


def stored(answer: object) -> ChainStored:
    assert isinstance(answer, ChainStored)
    return answer


def status(answer: object) -> ChainStatus:
    return stored(answer).status


def test_what_comes_first_to_a_position_stays() -> None:
    # P5
    node = Node()
    assert status(node.ask(chain_store())) is DATA
    assert status(node.ask(chain_store(flags=HOLE))) is DATA
    assert status(node.ask(chain_store(at(6), flags=HOLE))) is IS_HOLE
    assert status(node.ask(chain_store(at(6)))) is IS_HOLE
    puts = [write.record for write in node.written if isinstance(write, PutRecord)]
    assert puts == [record(), record(at(6), flags=HOLE)]


def test_a_node_that_was_restarted_looks_at_what_it_has() -> None:
    # P5
    node = Node()
    node.ask(chain_store(at(5)))
    node.ask(chain_store(at(7), flags=HOLE))
    again = node.reboot()
    again.copies = node.copies
    assert status(again.ask(chain_store(at(5), flags=HOLE))) is DATA
    assert status(again.ask(chain_store(at(7)))) is IS_HOLE
    assert status(again.ask(chain_store(at(6)))) is DATA  # nothing was there
    assert len([write for write in again.written if isinstance(write, PutRecord)]) == 1


def test_no_look_is_needed_where_the_node_knows_what_it_has() -> None:
    # P5
    node = Node(prompt=False)
    node.request(chain_store(at(5)))
    node.write()
    for lsn in (at(9), at(6), at(5)):
        node.request(chain_store(lsn))
        assert not node.wanted(FindCopy)


def test_what_was_forgotten_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # P5
    monkeypatch.setattr(copies, "_KNOWN_MAX", 3)
    node = Node()
    for esn in (1, 2, 3, 5):
        node.ask(chain_store(at(esn), flags=HOLE))
    node.prompt = False
    request = node.request(chain_store(at(1)))
    (look,) = node.wanted(FindCopy)
    node.feed(CopyFound(look.look_up_id, node.copies[at(1)]))
    assert status(node.replies[request]) is IS_HOLE
    node.request(chain_store(at(4)))
    assert not node.wanted(FindCopy)  # above what was forgotten
    node.prompt = True
    assert status(node.ask(chain_store(at(5)))) is IS_HOLE


def test_a_position_below_what_is_known_is_written_and_not_remembered() -> None:
    # P5
    node = Node()
    node.ask(chain_store(at(5)))
    again = node.reboot()
    again.copies = node.copies
    assert status(again.ask(chain_store(at(2)))) is DATA
    assert status(again.ask(chain_store(at(2), flags=HOLE))) is DATA


def test_stores_of_one_position_take_turns() -> None:
    # P7
    node = Node(prompt=False)
    first = node.request(chain_store())
    second = node.request(chain_store(flags=HOLE))
    other = node.request(chain_store(at(6)))
    assert not node.replies  # J7: not before it is durable
    node.write()
    assert status(node.replies[first]) is DATA
    assert status(node.replies[second]) is DATA
    node.write()
    assert status(node.replies[other]) is DATA


def test_a_store_that_failed_leaves_the_position_to_the_next() -> None:
    # P7
    node = Node(prompt=False)
    first = node.request(chain_store())
    second = node.request(chain_store(flags=HOLE))
    node.fail(PersistError.NO_SPACE)
    assert status(node.replies[first]) is ChainStatus.NO_SPACE
    node.write()
    assert status(node.replies[second]) is IS_HOLE


def test_too_many_stores_of_one_position_are_refused() -> None:
    # P7
    node = Node(prompt=False)
    for _ in range(16):
        node.request(chain_store())
    assert status(node.replies[node.request(chain_store())]) is ChainStatus.OVERLOADED


def test_a_store_of_a_sealed_epoch_is_refused() -> None:
    # P6
    node = Node()
    node.ask(seal(2, by=4))
    answer = stored(node.ask(chain_store()))
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (PREEMPTED, Epoch(2), NodeId(4))
    assert status(node.ask(chain_store(at(1, epoch=3)))) is DATA


def test_a_store_of_a_higher_epoch_seals_the_lower_ones() -> None:
    # P6
    node = Node()
    node.ask(chain_store(at(1, epoch=4)))
    answer = stored(node.ask(chain_store()))
    assert (answer.status, answer.seal_epoch, answer.sealed_by) == (PREEMPTED, Epoch(3), NodeId(9))


def test_a_seal_that_comes_while_the_node_looks_counts() -> None:
    # P6
    node = Node()
    node.ask(chain_store(at(9)))
    again = node.reboot()
    again.prompt = False
    request = again.request(chain_store(at(5)))
    (look,) = again.wanted(FindCopy)
    again.request(seal(2))
    again.feed(CopyFound(look.look_up_id, None))
    assert status(again.replies[request]) is PREEMPTED


def test_nothing_is_stored_where_something_may_be_that_cannot_be_read() -> None:
    # P5
    node = Node()
    node.ask(chain_store(at(9)))
    again = node.reboot()
    again.prompt = False
    request = again.request(chain_store(at(5)))
    (look,) = again.wanted(FindCopy)
    again.feed(CopyFound(look.look_up_id, None, has_failed=True))
    assert status(again.replies[request]) is ChainStatus.FAILED


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
    assert node.others == [ReportCompleted(NodeId(9), ChainCompleted(log=LOG, records=(at(5),)))]
    node.request(chain_store(at(6), flags=HOLE, copyset=nodes([1, 2])))
    assert node.others == [ReportCompleted(NodeId(9), ChainCompleted(log=LOG, holes=(at(6),)))]
    node.request(chain_store(at(7), copyset=nodes([2, 1])))
    assert node.others == []


def test_what_is_below_the_trim_point_is_as_good_as_stored() -> None:
    # J11
    node = Node()
    node.ask(Trim(LOG, at(6)))
    assert status(node.ask(chain_store())) is DATA
    assert status(node.ask(chain_store(flags=HOLE))) is IS_HOLE
    assert not [write for write in node.written if isinstance(write, PutRecord)]


def test_a_node_that_is_being_rebuilt_takes_no_chain_stores() -> None:
    # J9
    node = Node()
    node.feed(RebuildingChanged(True))
    assert status(node.ask(chain_store())) is ChainStatus.REBUILDING


def test_a_digest_waits_for_chain_stores() -> None:
    # J12
    node = Node(prompt=False)
    node.request(chain_store())
    node.request(seal(2))
    node.request(digest(2, "e2n1", seal=2))
    assert not node.wanted(ReadCopies)
    node.write()
    assert node.wanted(ReadCopies)


def test_a_recovery_replaces_what_a_chain_has() -> None:
    # P13: recovery decides for all
    node = Node()
    node.ask(chain_store(at(5)))
    node.ask(seal(2))
    node.ask(store("e2n5", wave=2, recovery=True))
    node.ask(clean(2, "e2n1", "e2n6", seal=2))
    assert status(node.ask(chain_store(at(5)))) is PREEMPTED
    assert node.copies[at(5)].wave == 2


def test_anybody_may_ask_what_is_at_a_position() -> None:
    # P9
    node = Node()
    request = node.request(ChainRead(LOG, at(5)))
    (read,) = node.wanted(ReadCopies)
    assert (read.read.start, read.read.end, read.read.headers_only) == (at(5), at(6), False)
    node.feed(RecordsRead(read.read.read_id, (record(),), at(6), ReadEnd.LIMIT))
    assert node.replies[request] == ChainCopy(log=LOG, lsn=at(5), records=(record(),))
    request = node.request(ChainRead(LOG, at(5)))
    (read,) = node.wanted(ReadCopies)
    node.feed(ReadFailed(read.read.read_id))
    assert node.replies[request] == ChainCopy(log=LOG, lsn=at(5), has_failed=True)


def test_whoever_asks_is_told_that_the_epoch_is_sealed() -> None:
    # P27: also when the seal came while the node read
    node = Node()
    node.ask(chain_store(at(5)))
    request = node.request(ChainRead(LOG, at(5)))
    (read,) = node.wanted(ReadCopies)
    node.ask(seal(2))
    node.feed(RecordsRead(read.read.read_id, (record(),), at(6), ReadEnd.LIMIT))
    assert node.replies[request] == ChainCopy(log=LOG, lsn=at(5), records=(record(),), is_sealed=True)


def test_a_node_that_is_being_rebuilt_does_not_say_what_it_lacks() -> None:
    # P27
    node = Node()
    node.feed(RebuildingChanged(True))
    request = node.request(ChainRead(LOG, at(5)))
    assert not node.wanted(ReadCopies)
    assert node.replies[request] == ChainCopy(log=LOG, lsn=at(5), has_failed=True)
