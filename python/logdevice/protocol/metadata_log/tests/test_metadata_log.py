"""Metadata logs: what counts as written, what a read accepts, what a node copies. Rules M20 to M27."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from logdevice.protocol.io import Ask, Asked
from logdevice.protocol.messages.write import Store
from logdevice.protocol.metadata_log.entries import (
    entry_of,
    is_metadata_log,
    joined,
    metadata_log_of,
    record_of,
)
from logdevice.protocol.metadata_log.log import (
    AdoptMetadataLogs,
    MetadataLog,
    StorageNodesChanged,
    copies_of,
)
from logdevice.protocol.metadata_log.tests.metadata_world import LOG, TIMEOUT_MS, MetadataWorld, entry
from logdevice.protocol.sequencer.epoch_state import ReadMetadataLog, WriteMetadataLog
from logdevice.protocol.timers import WakeAt
from logdevice.types import AuthoritativeStatus, LogId, Lsn, NodeId, nodes

N0, N1, N2, N3, N4 = nodes(range(5))


def world(held: dict[int, list[int]], lost: dict[int, AuthoritativeStatus] | None = None) -> MetadataWorld:
    """The nodes, and the first epochs of the entries they hold."""
    made = MetadataWorld()
    made.held = {NodeId(node): [entry(epoch) for epoch in epochs] for node, epochs in held.items()}
    statuses = {NodeId(node): status for node, status in (lost or {}).items()}
    assert made.feed(StorageNodesChanged(tuple(made.held), statuses)) == []
    return made


def test_an_entry_is_a_record_of_a_separate_log_at_its_epoch() -> None:
    """M20."""
    store = next(
        effect.request
        for effect in asked_to_write()
        if isinstance(effect, Ask) and isinstance(effect.request, Store)
    )
    assert (store.log, store.record.lsn) == (LogId(LOG + (1 << 62)), Lsn.of(4, 1))
    assert entry_of(store.record.body) == entry(4)
    assert (store.record.copyset, store.record.timestamp_ms) == ((N0, N1, N2), 5)
    # A repair may bring an older entry after a newer one; it must not be refused.
    assert store.is_draining
    assert is_metadata_log(metadata_log_of(LOG))
    assert not is_metadata_log(LOG)


def asked_to_write() -> list[object]:
    machine = MetadataLog(N0, TIMEOUT_MS)
    machine.handle(StorageNodesChanged((N0, N1, N2), {}), 0)
    return list(machine.handle(Asked(1, WriteMetadataLog(LOG, entry(4))), 5))


def test_entries_survive_their_encoding_and_damaged_ones_count_as_missing() -> None:
    body = bytes(record_of(entry(4), (N0,), 0).body)
    # The encoding on disk must not change.
    assert body == b"\x94\x04\x93\x00\x01\x02\xa7node: 2\xc3"
    assert entry_of(body) == entry(4)
    for damaged in (b"", b"\xc1", b"\x91\x01", body[:-1], b"\x94\x01\x01\x01\x01", body + b"\x00"):
        assert entry_of(damaged) is None


def test_entries_of_several_nodes_are_joined_in_the_order_of_epochs() -> None:
    assert joined([(entry(4),), (entry(1), entry(4)), ()]) == (entry(1), entry(4))


@pytest.mark.parametrize(("storage_nodes", "copies"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (9, 3)])
def test_an_entry_counts_as_written_once_enough_nodes_have_it(storage_nodes: int, copies: int) -> None:
    """M21."""
    assert copies_of(storage_nodes) == copies
    made = world({node: [] for node in range(storage_nodes)})
    assert len(made.ask(WriteMetadataLog(LOG, entry(1)))) == storage_nodes
    said = [made.answers(NodeId(node)) for node in range(storage_nodes)]
    assert said == [["written 1"] if node == copies - 1 else [] for node in range(storage_nodes)]


def test_an_entry_that_too_few_nodes_can_take_is_not_written() -> None:
    """M21: neither a refusal nor a missing answer is a copy."""
    made = world({0: [], 1: [], 2: []})
    made.ask(WriteMetadataLog(LOG, entry(1)))
    assert made.refuses(N1) == []
    assert made.answers(N0) == []
    assert made.fails(N2) == ["not written 1"]
    assert world({}).ask(WriteMetadataLog(LOG, entry(1))) == ["not written 1"]


@pytest.mark.parametrize("storage_nodes", range(1, 7))
def test_every_read_that_succeeds_has_every_written_entry(storage_nodes: int) -> None:
    """M21, M22: every set of nodes that is enough to read intersects every set that is enough to write."""
    copies = copies_of(storage_nodes)
    for holders in combinations(range(storage_nodes), copies):
        for silent in combinations(range(storage_nodes), copies - 1):
            made = world({node: [1] if node in holders else [] for node in range(storage_nodes)})
            made.ask(ReadMetadataLog(LOG, confirm=False))
            said = [made.answers(NodeId(node)) for node in range(storage_nodes) if node not in silent]
            assert said[-1][-1] == "read 1"


def test_the_history_is_not_known_while_a_copy_may_be_on_silent_nodes() -> None:
    """M22."""
    for first, second, third in permutations(nodes(range(3))):
        made = world({0: [1], 1: [1], 2: [1]})
        made.ask(ReadMetadataLog(LOG))
        assert made.answers(first) == []
        assert made.fails(second) == []
        assert made.answers(third) == ["read 1"]
        made.ask(ReadMetadataLog(LOG))
        assert made.fails(first) == []
        assert made.fails(second) == []
        assert made.answers(third) == ["not read: 1 answered"]
    assert world({}).ask(ReadMetadataLog(LOG)) == ["not read: 0 answered"]


def test_a_node_whose_data_is_lost_is_not_waited_for_and_proves_nothing() -> None:
    """M23."""
    lost = AuthoritativeStatus.UNDERREPLICATION
    made = world({0: [1], 1: [1], 2: []}, {2: lost})
    made.ask(ReadMetadataLog(LOG, confirm=False))
    assert made.answers(N2) == []
    assert made.answers(N0) == []
    assert made.answers(N1)[-1] == "read 1"
    # All nodes that still have data have answered: more will never be known.
    made = world({0: [1], 1: [], 2: []}, {1: lost, 2: lost})
    made.ask(ReadMetadataLog(LOG, confirm=False))
    assert made.answers(N0) == ["read 1"]
    # Even if all nodes have lost their data, at least one must answer first.
    made = world({0: [1]}, {0: lost})
    assert made.ask(ReadMetadataLog(LOG, confirm=False)) == ["ask N0"]
    assert made.answers(N0) == ["read 1"]


def test_the_status_of_a_node_that_stores_no_metadata_logs_is_ignored() -> None:
    made = world({0: [1]}, {9: AuthoritativeStatus.UNAVAILABLE})
    made.ask(ReadMetadataLog(LOG))
    assert made.answers(N0) == ["read 1"]


def test_an_entry_on_too_few_nodes_is_brought_to_enough_before_a_sequencer_gets_it() -> None:
    """M24: its writer may have died before it was written, and the next read may miss it."""
    made = world({0: [1], 1: [1, 4], 2: [1], 3: [1], 4: [1]})
    made.ask(ReadMetadataLog(LOG))
    assert made.answers(N0) == []
    assert made.answers(N1) == []
    others = (N0, N2, N3, N4)
    assert made.answers(N2) == [f"store e4n1 on {node}" for node in others]
    assert made.answers(N3) == []  # its answer to the read; too late to count
    assert made.answers(N3) == []
    assert made.fails(N0) == []
    assert made.answers(N2) == ["read 1,4"]


def test_a_read_fails_if_an_entry_cannot_be_put_on_enough_nodes() -> None:
    """M24."""
    made = world({0: [1], 1: []})
    made.ask(ReadMetadataLog(LOG))
    assert made.answers(N0) == ["store e1n1 on N1"]
    assert made.fails(N1) == []  # its answer to the read
    assert made.fails(N1) == ["not read: 1 answered"]


def test_an_entry_that_an_answering_node_lacks_is_stored_there_without_waiting() -> None:
    """M25."""
    made = world({0: [], 1: [1], 2: [1]})
    made.ask(ReadMetadataLog(LOG, confirm=False))
    made.answers(N2)
    assert made.answers(N0) == ["store e1n1 on N0", "read 1"]
    # The outcome of the repair changes nothing.
    assert made.fails(N0) == []
    assert made.held[N0] == []
    made.ask(ReadMetadataLog(LOG))
    made.answers(N0)
    assert made.answers(N1) == ["store e1n1 on N0", "store e1n1 on N2"]


def test_a_repair_does_not_count_for_another_entry_that_the_read_waits_for() -> None:
    """M24, M25: e1n1 is on enough nodes, and e4n1 is not."""
    made = world({0: [1, 4], 1: [1], 2: [1], 3: [], 4: [], 5: []})
    made.ask(ReadMetadataLog(LOG))
    for node in (N0, N1, N2):
        assert made.answers(node) == []
    spread = [f"store e4n1 on {node}" for node in nodes(range(1, 6))]
    assert made.answers(N3) == ["store e1n1 on N3", *spread]
    assert made.answers(N3) == []
    assert made.answers(N3) == []
    assert made.answers(N1) == ["read 1,4"]


def test_a_node_adopts_every_entry_that_any_node_holds_of_every_log() -> None:
    """M26."""
    made = world({0: [2], 1: [1], 2: [1, 2, 4]})
    both = AdoptMetadataLogs((LOG, LogId(8)), frozenset({N0, N1, N2}))
    assert made.ask(both) == ["ask N0", "ask N1", "ask N2"]
    made.answers(N0)
    made.answers(N1)
    assert made.answers(N2) == ["store e1n1 on N0", "store e4n1 on N0"]
    assert made.answers(N0) == []
    assert made.answers(N0) == ["ask N0", "ask N1", "ask N2"]
    made.fails(N0)  # a node that is being restored does not answer
    made.answers(N1)
    assert made.answers(N2) == ["store e1n1 on N0", "store e2n1 on N0", "store e4n1 on N0"]
    made.answers(N0)
    made.answers(N0)
    assert made.answers(N0) == ["adopted"]
    # No other node is alive, so there is nothing to ask.
    assert made.ask(both) == ["adopted"]


def test_an_adoption_is_enough_once_the_unasked_nodes_cannot_have_another_entry() -> None:
    """M26: an entry that the node itself has lost is on at least two others."""
    all_nodes = frozenset(nodes(range(5)))
    for silent in (N1, N2, N3, N4):
        made = world({node: [] for node in range(5)})
        made.ask(AdoptMetadataLogs((LOG,), all_nodes - {silent}))
        said = [made.answers(node) for node in (N0, N1, N2, N3, N4) if node != silent]
        assert said[-1] == ["adopted"]
        made.ask(AdoptMetadataLogs((LOG,), all_nodes))
        said = [made.answers(node) for node in (N0, N1, N2, N3, N4)]
        assert said[-1] == ["adopted"]
    made = world({node: [] for node in range(5)})
    made.ask(AdoptMetadataLogs((LOG,), all_nodes))
    said = [made.answers(N0), made.fails(N1), made.fails(N2), made.answers(N3), made.answers(N4)]
    assert said[-1] == ["adopted, not enough"]
    assert world({0: []}).ask(AdoptMetadataLogs((LOG,), frozenset({N0}))) == ["adopted"]


def test_a_node_that_could_not_store_an_entry_has_not_adopted_it() -> None:
    """M26."""
    made = world({0: [], 1: [1], 2: []})
    made.ask(AdoptMetadataLogs((LOG,), frozenset({N1, N2})))
    made.answers(N0)
    made.answers(N1)
    assert made.answers(N2) == ["store e1n1 on N0"]
    assert made.refuses(N0) == ["adopted, not enough"]
    assert made.ask(AdoptMetadataLogs((LOG,), frozenset({N1, N2})))[0] == "ask N0"


def test_a_question_without_further_answers_ends() -> None:
    """M27."""
    made = world({0: [1], 1: [1], 2: [1]})
    made.ask(ReadMetadataLog(LOG))
    made.answers(N0)
    made.ask(WriteMetadataLog(LOG, entry(4)))
    made.answers(N0)
    made.ask(AdoptMetadataLogs((LOG,), frozenset({N1, N2})))
    assert made.wait(TIMEOUT_MS - 1) == []
    assert made.wait(1) == ["not read: 1 answered", "not written 4", "adopted, not enough"]
    # Later answers are ignored.
    assert made.answers(N1) == []
    assert made.wait(TIMEOUT_MS) == []


def test_each_answer_extends_the_deadline() -> None:
    """M27: an adoption may take long as long as nodes answer."""
    machine = MetadataLog(N0, TIMEOUT_MS)
    machine.handle(StorageNodesChanged((N0, N1, N2), {}), 0)
    assert machine.handle(Asked(1, ReadMetadataLog(LOG)), 0)[-1] == WakeAt(TIMEOUT_MS)
    made = world({0: [1], 1: [1], 2: [1]})
    made.ask(ReadMetadataLog(LOG))
    made.wait(TIMEOUT_MS - 1)
    made.answers(N0)
    assert made.wait(TIMEOUT_MS - 1) == []
    assert made.answers(N2) == ["read 1"]


def test_a_refusal_does_not_count_as_a_copy() -> None:
    """M24."""
    made = world({0: [1], 1: []})
    made.ask(ReadMetadataLog(LOG))
    made.answers(N0)
    made.answers(N1)
    assert made.refuses(N1) == ["not read: 2 answered"]
