"""A sequencer and its writers: duplicates, order, waiting for recovery, and what storage nodes are told."""

from __future__ import annotations

from logdevice.protocol.io import Ask
from logdevice.protocol.messages.write import (
    AppendStatus,
    GetWriter,
    KeepWriters,
    Store,
    StoreStatus,
    WriterIs,
)
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    NodeConnected,
    OwnerChanged,
    RecoveryCompleted,
    TailFound,
)
from logdevice.protocol.sequencer.tests.sequencing import LOG, ME, METADATA, NODESET, Sequencing, state
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.protocol.writers.tests.known_writers import progress
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, LogPoint, Lsn, NodeId, WriterTag

WRITER = 5


def tag(seq: int, *, stable: int = 0, incarnation: int = 1, ordered: bool = True) -> WriterTag:
    return WriterTag(WRITER, incarnation, seq, 1, stable, ordered)


def active(**settings: int) -> Sequencing:
    sequencing = Sequencing(WriteSettings(release_interval_ms=0, **settings))
    sequencing.activate(state(1))
    return sequencing


def table_of(*seqs: int) -> bytes:
    table = ReceivedTable()
    for seq in seqs:
        table.note(tag(seq), Lsn.of(1, seq + 1))
    return table.encode()


def send(sequencing: Sequencing, tagged: WriterTag) -> tuple[int, list[Ask[Store]]]:
    request = sequencing.append(tag=tagged)
    return request, sequencing.stores()


def test_a_duplicate_of_a_stored_append_is_answered_at_once() -> None:
    """O1."""
    sequencing = active()
    first, stores = send(sequencing, tag(0))
    sequencing.store(stores)
    again, stores = send(sequencing, tag(0))
    assert stores == []
    answer = sequencing.answers[again]
    assert (answer.status, answer.lsn) == (AppendStatus.DUPLICATE, sequencing.answers[first].lsn)
    assert (answer.incarnation, answer.expected) == (1, 1)


def test_a_duplicate_of_an_append_on_its_way_waits_for_it() -> None:
    """O1: it gets the same outcome, no matter which client sends it."""
    sequencing = active()
    first, stores = send(sequencing, tag(0))
    again, more = send(sequencing, tag(0))
    assert (more, sequencing.answers) == ([], {})
    sequencing.store(stores)
    assert sequencing.status(first) is AppendStatus.OK
    assert sequencing.status(again) is AppendStatus.DUPLICATE
    assert sequencing.answers[again].lsn == sequencing.answers[first].lsn


def test_an_append_that_is_refused_for_its_tag_takes_no_number() -> None:
    """O2, O4."""
    sequencing = active()
    before = sequencing.tail().end.lsn
    early, _ = send(sequencing, tag(2))
    assert sequencing.answers[early].status is AppendStatus.OUT_OF_ORDER
    assert sequencing.answers[early].expected == 0
    assert sequencing.tail().end.lsn == before


def test_an_ordered_writer_is_answered_in_the_order_of_its_numbers() -> None:
    """O9."""
    sequencing = active()
    first, stores_of_first = send(sequencing, tag(0))
    second, stores_of_second = send(sequencing, tag(1))
    third, stores_of_third = send(sequencing, tag(2))
    sequencing.store(stores_of_second)
    assert sequencing.answers == {}
    sequencing.store(stores_of_first)
    assert list(sequencing.answers) == [first, second]
    sequencing.store(stores_of_third)
    assert list(sequencing.answers) == [first, second, third]


def test_an_unordered_writer_and_one_without_a_tag_are_answered_as_they_are_stored() -> None:
    """O9."""
    sequencing = active()
    send(sequencing, tag(0, ordered=False))
    second, stores = send(sequencing, tag(1, ordered=False))
    sequencing.store(stores)
    plain = sequencing.append()
    sequencing.store(sequencing.stores())
    assert list(sequencing.answers) == [second, plain]


def test_appends_not_answered_when_a_higher_epoch_comes_are_unknown() -> None:
    """O9: also those that are stored and waited for another one; every waiting request is answered."""
    sequencing = active()
    first, stores_of_first = send(sequencing, tag(0))
    second, stores = send(sequencing, tag(1))
    again, _ = send(sequencing, tag(1))
    sequencing.store(stores)
    sequencing.store(stores_of_first, StoreStatus.PREEMPTED)
    assert sequencing.status(first) is AppendStatus.PREEMPTED  # every node refused it
    assert sequencing.status(second) is sequencing.status(again) is AppendStatus.UNKNOWN


def test_tagged_appends_wait_until_all_earlier_epochs_are_recovered() -> None:
    """O10: others do not."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(2, 1, owner=3))
    sequencing.feed(MetadataLogRead((METADATA,)))
    sequencing.feed(TailFound(Epoch(3), LogPoint()))
    known, stores = send(sequencing, tag(0))
    new, more = send(sequencing, tag(1))
    plain = sequencing.append()
    assert (stores, more) == ([], [])
    assert len(sequencing.stores()) == 3
    sequencing.store(sequencing.stores())
    assert list(sequencing.answers) == [plain]
    sequencing.feed(RecoveryCompleted(Epoch(3), table_of(0)))
    assert sequencing.answers[known].lsn == Lsn.of(1, 1)
    sequencing.store(sequencing.stores())
    assert sequencing.answers[new].lsn == Lsn.of(3, 2)


def test_appends_that_wait_for_a_recovery_leave_room_for_others() -> None:
    """O10, U8: writers send waiting appends again, and a recovery may take long."""
    sequencing = Sequencing(WriteSettings(release_interval_ms=0, window_records_max=4))
    sequencing.feed(OwnerChanged(ME))
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(2, 1, owner=3))
    sequencing.feed(TailFound(Epoch(3), LogPoint()))
    waiting = [send(sequencing, tag(0))[0] for _ in range(3)]
    assert [sequencing.status(request) for request in waiting] == [None, None, AppendStatus.OVERLOADED]
    plain = sequencing.append()
    sequencing.store(sequencing.stores())
    assert sequencing.status(plain) is AppendStatus.OK


def test_a_new_epoch_of_the_same_sequencer_begins_by_waiting() -> None:
    """O10: its table in memory may contain appends that recovery gives up."""
    sequencing = active()
    _, stores = send(sequencing, tag(0))
    sequencing.store(stores)
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(2, 1))
    request, stores = send(sequencing, tag(0))
    assert (stores, request in sequencing.answers) == ([], False)
    sequencing.feed(MetadataLogRead((METADATA,)))
    sequencing.feed(RecoveryCompleted(Epoch(3)))
    assert len(sequencing.stores()) == 3


def test_a_sequencer_says_what_a_writer_has_in_the_log() -> None:
    """O1: another node names the sequencer."""
    sequencing = active()
    _, stores = send(sequencing, tag(0))
    sequencing.store(stores)
    sequencing.ask(7, GetWriter(LOG, WRITER, 0))
    assert sequencing.replies(WriterIs)[7] == WriterIs(
        status=AppendStatus.OK,
        is_known=True,
        is_stored=True,
        lsn=Lsn.of(2, 1),
        incarnation=1,
        next_seq=1,
    )
    sequencing.ask(8, GetWriter(LOG, 99, 0))
    answer = sequencing.replies(WriterIs)[8]
    assert (answer.is_known, answer.is_stored) == (False, False)
    elsewhere = Sequencing()
    elsewhere.feed(OwnerChanged(NodeId(3)))
    elsewhere.ask(1, GetWriter(LOG, WRITER, 0))
    answer = elsewhere.replies(WriterIs)[1]
    assert (answer.status, answer.node) == (AppendStatus.REDIRECTED, NodeId(3))


def sent(sequencing: Sequencing) -> dict[NodeId, KeepWriters]:
    return sequencing.told(KeepWriters)


def test_storage_nodes_are_told_of_writers_a_while_after_their_appends() -> None:
    """O12: only up to the good end."""
    sequencing = active(writers_keep_ms=500, store_timeout_ms_min=10_000, store_timeout_ms_max=10_000)
    _, stores = send(sequencing, tag(0))
    _, others = send(sequencing, tag(1))
    sequencing.store(stores)
    sequencing.wait(499)
    assert sent(sequencing) == {}
    sequencing.wait(1)
    keeps = sent(sequencing)
    assert set(keeps) == set(NODESET)
    keep = keeps[NODESET[0]]
    kept = ReceivedTable.decode(keep.table)
    assert (keep.end, progress(kept, WRITER)) == (Lsn.of(2, 2), (1, 1))
    sequencing.store(others)
    sequencing.wait(500)
    assert progress(ReceivedTable.decode(sent(sequencing)[NODESET[0]].table), WRITER) == (1, 2)
    sequencing.wait(5_000)
    assert sent(sequencing) == {}


def test_many_tagged_appends_are_told_sooner() -> None:
    """O12."""
    sequencing = active(writers_keep_ms=10_000, writers_keep_records=2)
    _, stores = send(sequencing, tag(0))
    sequencing.store(stores)
    assert sent(sequencing) == {}
    _, stores = send(sequencing, tag(1))
    assert sent(sequencing)[NODESET[0]].end == Lsn.of(2, 2)
    sequencing.store(stores)
    assert sent(sequencing) == {}


def test_at_the_beginning_of_an_epoch_nodes_get_the_table_of_the_last_bridge() -> None:
    """O12: the bridge may be trimmed. Nodes that connect get the table, other nodes do not."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    sequencing.feed(ActivationAsked())
    sequencing.take_epoch(state(1))
    sequencing.feed(MetadataLogRead((METADATA,)))
    sequencing.feed(RecoveryCompleted(Epoch(2), table_of(0)))
    keep = KeepWriters(LOG, Lsn.of(2, 1), table_of(0))
    assert sent(sequencing) == dict.fromkeys(NODESET, keep)
    sequencing.feed(NodeConnected(NODESET[1]))
    assert sent(sequencing) == {NODESET[1]: keep}
    sequencing.feed(NodeConnected(NodeId(77)))
    assert sent(sequencing) == {}
