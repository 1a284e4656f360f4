"""The received table in recovery: where it comes from, what is read for it, when it forgets writers."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.io import Answered, Ask
from logdevice.protocol.messages.write import DigestRequest, EpochTail, Sealed, SealStatus, Store
from logdevice.protocol.recovery.tests.recovering import (
    ALL,
    LOG,
    METADATA,
    NODESET,
    Recovering,
    bridge,
    copy,
    tail,
)
from logdevice.protocol.sequencer.events import RecoveryCompleted
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.protocol.writers.tests.known_writers import find, progress
from logdevice.settings import RecoverySettings
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Lsn,
    NodeId,
    Record,
    Replication,
    WriterTag,
    nodes,
)

WRITER = 5


def tag(seq: int) -> WriterTag:
    return WriterTag(WRITER, 1, seq, 1, 0)


def table(count: int, epoch: int = 1) -> bytes:
    """Appends 0 to `count` are in the log."""
    made = ReceivedTable()
    for seq in range(count):
        made.note(tag(seq), Lsn.of(epoch, seq + 1))
    return made.encode()


def tagged(epoch: int, esn: int, seq: int) -> Record:
    return replace(copy(epoch, esn), tag=tag(seq))


def asks(recovering: Recovering) -> dict[NodeId, DigestRequest]:
    return {
        effect.node: effect.request
        for effect in recovering.bridge_asks
        if isinstance(effect.request, DigestRequest)
    }


def completed(recovering: Recovering) -> ReceivedTable:
    recovering.note_clean()
    (complete,) = recovering.wanted(RecoveryCompleted)
    return ReceivedTable.decode(complete.writers)


def seal(recovering: Recovering, *tails: EpochTail, keep: Lsn = Lsn(0), kept: bytes = b"") -> None:
    """Seals all nodes; those with even numbers report the received table that they were sent."""
    for node in ALL:
        sealed = Sealed(
            epoch=Epoch(2),
            status=SealStatus.OK,
            tails=tails,
            writers_end=keep if node % 2 == 0 else Lsn(0),
            writers=kept if node % 2 == 0 else b"",
        )
        recovering.feed(Answered(NodeId(node), sealed))


def test_the_bridge_of_the_last_clean_epoch_is_searched_after_its_last_record() -> None:
    """O11: on its own nodes."""
    other = nodes([5, 6, 7])
    history = (
        EpochMetadata(Epoch(1), other, Replication.parse("3")),
        replace(METADATA, first_epoch=Epoch(2)),
    )
    recovering = Recovering(history=history, tail_end=Lsn.of(1, 7), finds_bridge=False)
    request = DigestRequest(log=LOG, epoch=Epoch(1), start=Lsn.of(1, 7), seal_epoch=Epoch(2), attempt=0)
    assert asks(recovering) == dict.fromkeys(other, request)


def test_the_next_bridge_has_the_table_of_the_last_one_and_of_all_records_that_stay() -> None:
    """O11: nothing is decided before an f-majority has answered about the bridge."""
    recovering = Recovering(finds_bridge=False)
    recovering.seal(ALL, tail(2, 1, 1))
    recovering.digest(ALL, tagged(2, 1, 3))
    recovering.find_bridge([0], bridge(1, 3, table=table(1), seal=1))
    recovering.find_bridge([1, 1], bridge(1, 3, table=table(3), seal=2))
    assert recovering.sent(Store) == {}
    recovering.find_bridge([2])
    written = {
        effect.request.record.lsn: effect.request.record
        for effect in recovering.all
        if isinstance(effect, Ask) and isinstance(effect.request, Store)
    }
    assert progress(ReceivedTable.decode(written[Lsn.of(2, 2)].body), WRITER) == (1, 4)
    assert find(ReceivedTable.decode(written[Lsn.of(2, 2)].body), WRITER, 2) == (True, Lsn.of(1, 3))


def test_nodes_that_do_not_answer_about_the_bridge_are_asked_again() -> None:
    """O11: also nodes that could not read it; and each node is asked for the rest of its records."""
    recovering = Recovering(finds_bridge=False)
    recovering.find_bridge([0], failed=True)
    recovering.find_bridge([0], lossy=True)
    recovering.find_bridge([1], next=Lsn.of(1, 4))
    assert asks(recovering) == {
        NodeId(1): replace(asks(Recovering(finds_bridge=False))[NodeId(1)], start=Lsn.of(1, 4))
    }
    recovering.bridge_asks = []
    recovering.wait(500)
    assert {node: request.start for node, request in asks(recovering).items()} == {
        node: Lsn.of(1, 4 if node == 1 else 1) for node in NODESET
    }
    recovering.find_bridge([0, 2, 3], bridge(1, 1), start=Lsn.of(1, 1))
    recovering.bridge_asks = []
    recovering.wait(5_000)
    assert recovering.bridge_asks == []
    recovering.bridge_asks = Recovering(finds_bridge=False).bridge_asks
    recovering.find_bridge([4], bridge(1, 1))  # too late to matter


def test_a_table_that_no_node_has_counts_as_one_that_has_forgotten_every_writer() -> None:
    """O8: an f-majority has no bridge, so all copies of it are lost."""
    recovering = Recovering(finds_bridge=False)
    recovering.find_bridge([0, 1, 2])
    recovering.seal(ALL, tail(2, 1, 1))
    recovering.recover(2)
    assert completed(recovering).horizon == Lsn.of(2, 0)


def test_recovery_does_not_wait_for_ever_for_a_bridge() -> None:
    """O8: its nodes may be gone for good."""
    recovering = Recovering(finds_bridge=False, settings=RecoverySettings(recovery_timeout_ms=1_000))
    recovering.seal(ALL, tail(2, 1, 1))
    recovering.find_bridge([0], bridge(1, 1, table=table(2)))
    recovering.digest(ALL)
    assert recovering.sent(Store) == {}
    recovering.wait(1_000)
    assert recovering.sent(Store) != {}
    recovering.wait(1_000)


def test_nodes_that_are_away_are_not_waited_for() -> None:
    """O11, V4."""
    away = {NodeId(node): AuthoritativeStatus.UNAVAILABLE for node in (2, 3, 4)}
    recovering = Recovering(finds_bridge=False, statuses=away)
    recovering.find_bridge([0, 1], bridge(1, 1, table=table(2)))
    recovering.seal([0, 1], tail(2, 1, 1))
    recovering.digest([0, 1])
    recovering.wait(100)
    assert recovering.machine._writers is not None
    assert progress(recovering.machine._writers, WRITER) == (1, 2)


def test_the_table_that_the_sequencer_sent_to_nodes_replaces_the_bridge() -> None:
    """O11: it is complete below its end, and only tags from there on are read."""
    recovering = Recovering(finds_bridge=False)
    seal(
        recovering,
        replace(tail(2, 9, 9), tagged_start=Lsn.of(2, 3)),
        keep=Lsn.of(2, 6),
        kept=table(4, epoch=2),
    )
    requests = recovering.sent(DigestRequest)
    assert {(request.start, request.headers_end) for request in requests.values()} <= {
        (Lsn.of(2, 6), Lsn.of(2, 8))
    }
    recovering.digest(ALL, tagged(2, 6, 4), start=6, next=Lsn.of(2, 8))
    recovering.digest(ALL, copy(2, 8), start=8)
    recovering.write(2)
    assert progress(completed(recovering), WRITER) == (1, 5)


def test_without_that_table_all_tags_of_the_epoch_are_read() -> None:
    """O11, O13: from the first tagged record that any node knows; none are read if there is none."""
    recovering = Recovering()
    recovering.seal([0, 1], tail(2, 9, 9))
    recovering.seal([2], replace(tail(2, 9, 9), tagged_start=Lsn.of(2, 4)))
    requests = recovering.sent(DigestRequest)
    assert {(request.start, request.headers_end) for request in requests.values()} == {
        (Lsn.of(2, 4), Lsn.of(2, 8))
    }
    plain = Recovering()
    plain.seal([0, 1, 2], tail(2, 9, 9))
    assert {(request.start, request.headers_end) for request in plain.sent(DigestRequest).values()} == {
        (Lsn.of(2, 8), Lsn(0))
    }


def test_every_writer_is_forgotten_if_tags_were_trimmed_that_no_table_contains() -> None:
    """O8."""
    recovering = Recovering()
    recovering.seal(ALL, replace(tail(2, 9, 9), tagged_start=Lsn.of(2, 4)), trim=Lsn.of(2, 6))
    recovering.digest(ALL, start=4, next=Lsn.of(2, 8))
    recovering.digest(ALL, start=8)
    recovering.write(2)
    assert completed(recovering).horizon == Lsn.of(2, 6)


def test_each_epoch_begins_with_the_table_of_the_one_before() -> None:
    """O11."""
    recovering = Recovering(seal=3, finds_bridge=False)
    recovering.find_bridge(ALL, bridge(1, 1, table=table(1)))
    recovering.seal(ALL, tail(2, 1, 2), tail(3, 1, 2))
    recovering.recover(2, ALL, tagged(2, 1, 1))
    recovering.note_clean()
    recovering.recover(3, ALL, tagged(3, 1, 2))
    assert progress(completed(recovering), WRITER) == (1, 3)


def test_a_digest_of_an_epoch_that_was_not_asked_for_is_dropped() -> None:
    """O11, V15."""
    recovering = Recovering()
    recovering.seal(ALL, tail(2, 1, 1))
    recovering.digest([0], copy(5, 1), epoch=5)
    assert recovering.sent(DigestRequest) == {}
