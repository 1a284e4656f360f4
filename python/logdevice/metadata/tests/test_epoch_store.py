"""The promises of every epoch store: each test runs on all backends."""

from __future__ import annotations

import asyncio

import pytest

from logdevice.cuts import Cut, CutKind
from logdevice.errors import (
    ConflictError,
    InvalidArgumentError,
    NameTakenError,
    OutOfRangeError,
    PayloadTooLargeError,
    UnreadableMetadataError,
    WrongClusterError,
)
from logdevice.metadata.epoch_store import CELL_BYTES_MAX, Cell, CellGroup, EpochStore
from logdevice.metadata.log_directory import LogDirectory
from logdevice.metadata.tests.conftest import OpenStore
from logdevice.metadata.tests.values_for_tests import LOG, epochs
from logdevice.metadata.values import ABSENT, NodeEntry, NodeRole, Version, Versioned
from logdevice.types import Location, LogId, NodeId

N1, N10 = NodeId(1), NodeId(10)


async def test_a_log_without_an_epoch_is_absent(open_store: OpenStore) -> None:
    async with await open_store() as store:
        assert await store.read(LOG) is None


async def test_a_written_value_is_read_with_its_version(open_store: OpenStore) -> None:
    async with await open_store() as store:
        version = await store.write(LOG, epochs(1, size=9), ABSENT)
        assert await store.read(LOG) == Versioned(epochs(1, size=9), version)


async def test_another_process_reads_a_written_value(open_store: OpenStore) -> None:
    async with await open_store() as store, await open_store() as other:
        version = await store.write(LOG, epochs(1), ABSENT)
        assert await other.read(LOG) == Versioned(epochs(1), version)


async def test_metadata_outlives_the_processes_that_wrote_it(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.write(LOG, epochs(3), ABSENT)
    async with await open_store() as store:
        found = await store.read(LOG)
    assert found is not None
    assert found.value == epochs(3)


async def test_a_write_on_the_newest_version_succeeds(open_store: OpenStore) -> None:
    async with await open_store() as store:
        first = await store.write(LOG, epochs(1), ABSENT)
        second = await store.write(LOG, epochs(2), first)
        assert second > first
        assert await store.read(LOG) == Versioned(epochs(2), second)


async def test_a_write_on_an_older_version_changes_nothing(open_store: OpenStore) -> None:
    async with await open_store() as store:
        first = await store.write(LOG, epochs(1), ABSENT)
        second = await store.write(LOG, epochs(2), first)
        with pytest.raises(ConflictError, match=f"logs/7 was expected to be version {first} but is version"):
            await store.write(LOG, epochs(3), first)
        assert await store.read(LOG) == Versioned(epochs(2), second)


async def test_a_value_that_exists_is_not_created_again(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.write(LOG, epochs(1), ABSENT)
        with pytest.raises(ConflictError, match="expected to be absent"):
            await store.write(LOG, epochs(1), ABSENT)


async def test_a_write_that_expects_a_version_does_not_create_a_value(open_store: OpenStore) -> None:
    async with await open_store() as store:
        with pytest.raises(ConflictError, match="expected to be version 5 but is absent"):
            await store.write(LOG, epochs(1), Version(5))
        assert await store.read(LOG) is None


async def test_a_write_of_one_log_does_not_touch_another(open_store: OpenStore) -> None:
    async with await open_store() as store:
        version = await store.write(LOG, epochs(1), ABSENT)
        await store.write(LogId(8), epochs(5), ABSENT)
        assert await store.write(LOG, epochs(2), version) > version


async def increase(store: EpochStore, owner: int, rounds: int) -> list[int]:
    """Takes part in a race until this owner has won `rounds` epochs, and returns them."""
    won: list[int] = []
    while len(won) < rounds:
        found = await store.read(LOG)
        epoch = found.value.epoch + 1 if found else 1
        try:
            await store.write(LOG, epochs(epoch, owner=owner), found.version if found else ABSENT)
        except ConflictError:
            continue
        won.append(epoch)
    return won


async def test_no_epoch_is_given_to_two_owners(open_store: OpenStore) -> None:
    stores = [await open_store() for _ in range(3)]
    won = await asyncio.gather(*(increase(store, owner, rounds=10) for owner, store in enumerate(stores)))
    assert sorted(epoch for epochs_of_one in won for epoch in epochs_of_one) == list(range(1, 31))
    for store in stores:
        await store.close()


async def test_incarnations_of_a_writer_count_up_from_one(open_store: OpenStore) -> None:
    async with await open_store() as store:
        assert [await store.next_incarnation("spark-1") for _ in range(3)] == [1, 2, 3]
        assert await store.next_incarnation("spark-2") == 1


async def test_no_incarnation_is_given_out_twice(open_store: OpenStore) -> None:
    async with await open_store() as store, await open_store() as other:
        calls = [one.next_incarnation("job") for one in (store, other) for _ in range(5)]
        assert sorted(await asyncio.gather(*calls)) == list(range(1, 11))


@pytest.mark.parametrize("writer", ["/", ".", "..", "a/b", "a%2Fb", "zażółć", "\0", " "])
async def test_a_writer_may_have_any_name(open_store: OpenStore, writer: str) -> None:
    async with await open_store() as store:
        await store.next_incarnation("a")
        assert await store.next_incarnation(writer) == 1
        assert await store.next_incarnation(writer) == 2


@pytest.mark.parametrize("writer", ["", "\ud800", "x" * 501, "/" * 167])
async def test_a_writer_name_that_cannot_be_kept_is_refused(open_store: OpenStore, writer: str) -> None:
    async with await open_store() as store:
        with pytest.raises(InvalidArgumentError, match="writer name"):
            await store.next_incarnation(writer)


async def test_a_cluster_gets_its_name_once_and_is_joined_by_that_name(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.join_cluster("berlin")
        await store.join_cluster("berlin")
        with pytest.raises(WrongClusterError, match="belongs to cluster 'berlin', not to 'paris'"):
            await store.join_cluster("paris")
        await store.join_cluster("berlin")


async def test_nodes_are_registered_and_removed(open_store: OpenStore) -> None:
    first = NodeEntry(address="a:1", location=Location.parse("eu.dc1"), roles=(NodeRole.STORAGE,), weight=0.5)
    second = NodeEntry(address="b:2", generation=3)
    async with await open_store() as store:
        version = await store.write_node(N10, second, ABSENT)
        await store.write_node(N1, first, ABSENT)
        found = await store.nodes()
        assert {node: entry.value for node, entry in found.items()} == {N1: first, N10: second}
        assert list(found) == [N1, N10]
        await store.remove_node(N10, version)
        assert list(await store.nodes()) == [N1]
        assert await store.read_node(N10) is None


async def test_a_removed_node_can_be_registered_anew(open_store: OpenStore) -> None:
    async with await open_store() as store:
        first = await store.write_node(N1, NodeEntry(address="a:1"), ABSENT)
        removed = await store.remove_node(N1, first)
        again = await store.write_node(N1, NodeEntry(address="a:2"), ABSENT)
        assert first < removed < again


async def test_a_version_from_before_a_removal_cannot_be_used_after_it(open_store: OpenStore) -> None:
    async with await open_store() as store:
        first = await store.write_node(N1, NodeEntry(address="a:1"), ABSENT)
        await store.remove_node(N1, first)
        await store.write_node(N1, NodeEntry(address="a:1"), ABSENT)
        with pytest.raises(ConflictError):
            await store.write_node(N1, NodeEntry(address="a:3"), first)


async def test_a_cluster_starts_with_an_empty_directory(open_store: OpenStore) -> None:
    async with await open_store() as store:
        assert await store.read_directory() == Versioned(LogDirectory(), ABSENT)


async def test_two_processes_that_change_the_directory_keep_both_changes(open_store: OpenStore) -> None:
    async with await open_store() as store, await open_store() as other:
        await asyncio.gather(
            store.change_directory(lambda directory: directory.with_log("/a")),
            other.change_directory(lambda directory: directory.with_log("/b")),
        )
        found = await store.read_directory()
    assert set(found.value.logs()) == {"/a", "/b"}
    assert sorted(found.value.logs().values()) == [1, 2]


async def test_a_refused_change_of_the_directory_writes_nothing(open_store: OpenStore) -> None:
    async with await open_store() as store:
        with pytest.raises(InvalidArgumentError):
            await store.change_directory(lambda directory: directory.with_log("no path"))
        assert (await store.read_directory()).version == ABSENT


async def test_changes_name_the_cells_written_since_a_version(open_store: OpenStore) -> None:
    async with await open_store() as store:
        start = (await store.changes_since(ABSENT)).version
        await store.join_cluster("berlin")
        version = await store.write_node(N1, NodeEntry(address="a:1"), ABSENT)
        changes = await store.changes_since(start)
        assert changes.names == ("cluster", "node.1")
        await store.remove_node(N1, version)
        await store.change_directory(lambda directory: directory.with_log("/a"))
        changes = await store.changes_since(changes.version)
        assert changes.names == ("directory", "node.1")
        assert await store.changes_since(changes.version) == await store.changes_since(changes.version)
        assert (await store.changes_since(changes.version)).names == ()


async def test_writes_of_epochs_and_writers_do_not_change_the_configuration(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.join_cluster("berlin")
        version = (await store.changes_since(ABSENT)).version
        await store.write(LOG, epochs(1), ABSENT)
        await store.next_incarnation("job")
        changes = await store.changes_since(version)
        assert changes.names == ()


async def test_a_value_too_large_for_one_backend_is_refused_by_all(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.write(LOG, epochs(1, size=CELL_BYTES_MAX - 1000), ABSENT)
        with pytest.raises(PayloadTooLargeError, match="logs/8 would take"):
            await store.write(LogId(8), epochs(1, size=CELL_BYTES_MAX), ABSENT)


async def test_a_damaged_value_is_reported_by_its_name(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.put(Cell(CellGroup.LOGS, str(LOG)), b"\xc1damaged", ABSENT)
        with pytest.raises(UnreadableMetadataError, match="logs/7 is damaged"):
            await store.read(LOG)


async def test_a_wrong_cell_name_among_the_nodes_is_reported(open_store: OpenStore) -> None:
    async with await open_store() as store:
        await store.put(Cell(CellGroup.CONFIGURATION, "node.notes"), b"", ABSENT)
        with pytest.raises(UnreadableMetadataError, match="'notes'"):
            await store.nodes()


def named_cut(name: str, time_ms: int = 1) -> Cut:
    return Cut(kind=CutKind.FRESH, time_ms=time_ms, ends=(), cookie=name)


async def test_a_cut_may_be_sent_again_but_its_name_is_taken_for_others(open_store: OpenStore) -> None:
    """T24."""
    async with await open_store() as store:
        await store.keep_cut(named_cut("one"), 1)
        await store.keep_cut(named_cut("one"), 1)
        with pytest.raises(NameTakenError):
            await store.keep_cut(named_cut("one", time_ms=2), 1)
        with pytest.raises(OutOfRangeError, match="cuts_max"):
            await store.keep_cut(named_cut("two"), 1)
        await store.remove_cut("one")
        await store.keep_cut(named_cut("two"), 1)
        assert await store.cuts() == [named_cut("two")]


async def test_cuts_that_are_kept_at_the_same_time_do_not_exceed_the_limit(open_store: OpenStore) -> None:
    """T24."""
    async with await open_store() as store, await open_store() as other:
        outcomes = await asyncio.gather(
            *((store, other)[number % 2].keep_cut(named_cut(f"c{number}"), 2) for number in range(8)),
            return_exceptions=True,
        )
        kept = {f"c{number}" for number, outcome in enumerate(outcomes) if outcome is None}
        assert len(kept) == 2
        assert {cut.cookie for cut in await store.cuts()} == kept
        assert all(isinstance(outcome, OutOfRangeError) for outcome in outcomes if outcome is not None)
