"""Purge: finding out how an epoch was recovered."""

from __future__ import annotations

from logdevice.protocol.epoch_state import MetadataLogRead, ReadMetadataLog
from logdevice.protocol.purge import AnswerPurge, Effect, EpochRecoveredReceived, Purge, SendGetEpochRecovery
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import EpochRecovered, GetEpochRecovery
from logdevice.types import Epoch, EpochMetadata, LogId, Lsn, NodeId, Replication, nodes
from logdevice.write_settings import RecoverySettings

LOG = LogId(7)
HISTORY = (
    EpochMetadata(Epoch(1), nodes([0, 1, 2, 3]), Replication.parse("3")),
    EpochMetadata(Epoch(5), nodes([6, 7, 8]), Replication.parse("3")),
)


def machine(history: tuple[EpochMetadata, ...] | None = HISTORY) -> Purge:
    """Of N1, which missed the recovery of epoch 4; it has asked the others."""
    purge = Purge(LOG, NodeId(1), Epoch(4), RecoverySettings())
    assert purge.start(0) == [ReadMetadataLog(LOG), WakeAt(500)]
    if history is not None:
        purge.handle(MetadataLogRead(history), 10)
    return purge


def answer(node: int, *, known: bool, epoch: int = 4) -> EpochRecoveredReceived:
    end = Lsn.of(4, 9) if known else Lsn(0)
    recovered = EpochRecovered(log=LOG, epoch=Epoch(epoch), is_known=known, good_end=end, end=end)
    return EpochRecoveredReceived(NodeId(node), recovered)


def asked(effects: list[Effect]) -> list[NodeId]:
    return [effect.node for effect in effects if isinstance(effect, SendGetEpochRecovery)]


def test_the_nodes_of_the_epochs_nodeset_are_asked() -> None:
    """Y1: not the node itself."""
    purge = machine(None)
    assert purge.handle(MetadataLogRead(None), 5) == []
    effects = purge.handle(MetadataLogRead(HISTORY), 10)
    request = GetEpochRecovery(LOG, Epoch(4))
    assert effects == [
        *(SendGetEpochRecovery(node, request) for node in nodes([0, 2, 3])),
        WakeAt(510),
    ]
    assert purge.handle(MetadataLogRead(HISTORY), 11) == []


def test_one_who_took_part_is_enough() -> None:
    """Y2."""
    purge = machine()
    assert purge.handle(answer(2, known=True, epoch=3), 20) == []
    known = answer(2, known=True)
    assert purge.handle(known, 20) == [AnswerPurge(known.recovered)]
    assert purge.is_over
    assert purge.handle(Woken(), 10_000) == []


def test_when_nobody_knows_that_is_the_answer() -> None:
    """Y4: only when everybody has spoken."""
    purge = machine()
    assert purge.handle(answer(0, known=False), 20) == []
    assert purge.handle(answer(2, known=False), 20) == []
    (effect,) = purge.handle(answer(3, known=False), 20)
    assert isinstance(effect, AnswerPurge)
    assert not effect.recovered.is_known


def test_a_node_alone_in_its_nodeset_has_nobody_to_ask() -> None:
    """Y4."""
    purge = machine(None)
    alone = (EpochMetadata(Epoch(1), nodes([1]), Replication.parse("1")),)
    (effect,) = purge.handle(MetadataLogRead(alone), 10)
    assert isinstance(effect, AnswerPurge)


def test_who_is_silent_is_asked_again_after_pauses_that_grow() -> None:
    """Y5: who has spoken is not; first the metadata log, too."""
    purge = machine(None)
    assert purge.handle(Woken(), 499) == []
    assert purge.handle(Woken(), 500) == [ReadMetadataLog(LOG), WakeAt(1500)]
    purge.handle(MetadataLogRead(HISTORY), 600)
    purge.handle(answer(2, known=False), 700)
    effects = purge.handle(Woken(), 1100)
    assert asked(effects) == list(nodes([0, 3]))
    assert effects[-1] == WakeAt(2100)
