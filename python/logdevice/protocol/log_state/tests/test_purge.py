"""Purge: a node learns how an epoch was recovered."""

from __future__ import annotations

from logdevice.protocol.io import Answered, Ask, Lost
from logdevice.protocol.log_state.events import Effect, ReleaseAdvanced
from logdevice.protocol.log_state.store_write import DeleteRecords
from logdevice.protocol.log_state.tests.node_log import LOG, Node, lsn, release, store
from logdevice.protocol.messages.write import EpochRecovered, GetEpochRecovery
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead, ReadMetadataLog
from logdevice.protocol.timers import WakeAt
from logdevice.types import Epoch, EpochMetadata, Lsn, NodeId, Replication, nodes

HISTORY = (
    EpochMetadata(Epoch(1), nodes([0, 1, 2, 3]), Replication.parse("3")),
    EpochMetadata(Epoch(5), nodes([6, 7, 8]), Replication.parse("3")),
)
IS_OVER = [ReleaseAdvanced(lsn("e5n1"))]


def purging(history: tuple[EpochMetadata, ...] | None = HISTORY) -> Node:
    """N1, which missed the recovery of epoch 4; it has asked the others."""
    node = Node()
    node.ask(store("e4n3"))
    node.ask(release("e5n1"))
    assert node.others == [ReleaseAdvanced(lsn("e4n1")), ReadMetadataLog(LOG)]
    assert node.wanted(WakeAt) == [WakeAt(500)]
    if history is not None:
        node.feed(MetadataLogRead(history))
    return node


def answer(node: int, *, known: bool, epoch: int = 4) -> Answered[EpochRecovered]:
    end = lsn("e4n2") if known else Lsn(0)
    recovered = EpochRecovered(epoch=Epoch(epoch), is_known=known, good_end=end, end=end)
    return Answered(NodeId(node), recovered)


def asked(effects: list[Effect]) -> list[NodeId]:
    return [effect.node for effect in effects if isinstance(effect, Ask)]


def has_deleted(node: Node) -> bool:
    return any(isinstance(write, DeleteRecords) for write in node.written)


def test_the_nodes_of_the_epochs_nodeset_are_asked() -> None:
    """Y1: not the node itself."""
    node = purging(None)
    assert node.feed(MetadataLogRead(None)) == []
    request = GetEpochRecovery(LOG, Epoch(4))
    assert node.feed(MetadataLogRead(HISTORY)) == [Ask(other, request) for other in nodes([0, 2, 3])]
    assert node.feed(MetadataLogRead(HISTORY)) == []


def test_the_answer_of_one_node_that_took_part_is_enough() -> None:
    """Y2."""
    node = purging()
    assert node.feed(answer(2, known=True, epoch=3)) == []
    assert node.feed(answer(2, known=True)) == IS_OVER
    assert has_deleted(node)
    assert node.feed(answer(0, known=True)) == []
    assert node.feed(MetadataLogRead(HISTORY)) == []


def test_a_purge_ignores_other_answers_while_its_result_is_written() -> None:
    """Y2: and it does not ask again."""
    node = purging()
    node.prompt = False
    assert node.feed(answer(2, known=True)) == []
    assert node.feed(answer(3, known=True)) == []
    node.now_ms = 900
    node.wait(0)
    assert asked(node.effects) == []
    assert node.write() == IS_OVER


def test_a_purge_ends_unknown_if_no_node_knows() -> None:
    """Y4: only once all nodes have answered."""
    node = purging()
    assert node.feed(answer(0, known=False)) == []
    assert node.feed(answer(2, known=False)) == []
    assert node.feed(answer(3, known=False)) == IS_OVER
    assert not has_deleted(node)


def test_the_purge_of_a_node_alone_in_its_nodeset_ends_unknown_at_once() -> None:
    """Y4."""
    node = purging(None)
    alone = (EpochMetadata(Epoch(1), nodes([1]), Replication.parse("1")),)
    assert node.feed(MetadataLogRead(alone)) == IS_OVER
    assert not has_deleted(node)


def test_silent_nodes_are_asked_again_after_pauses_that_grow() -> None:
    """Y5: nodes that have answered are not; before that, the metadata log is asked again, too."""
    node = purging(None)
    node.wait(499)
    assert node.effects == []
    node.wait(1)
    assert node.effects == [ReadMetadataLog(LOG), WakeAt(1000)]  # progress is written then
    node.now_ms = 600
    node.feed(MetadataLogRead(HISTORY))
    assert node.feed(Lost(NodeId(0), GetEpochRecovery(LOG, Epoch(4)))) == []
    node.feed(answer(2, known=False))
    node.wait(499)
    assert asked(node.effects) == []
    node.wait(1)
    assert asked(node.effects) == list(nodes([0, 3]))
    assert node.effects[-1] == WakeAt(2100)
