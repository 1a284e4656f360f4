"""If a log has lost records that a query has read, the query fails or gets a row that says what to undo."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from logdevice.client import Client
from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.client.tests.small_cluster import FIRST_LINEAGE, SmallCluster, quick
from logdevice.errors import CheckpointFormatError, InvalidOptionError, RollbackError
from logdevice.protocol.lineage import shown_id
from logdevice.types import Epoch, LogId, LogPoint, Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.options.read import ReadOptions, parse
from pyspark_logdevice.options.values import Edge
from pyspark_logdevice.plan import selection
from pyspark_logdevice.plan.offsets import Offsets, Undone, from_json
from pyspark_logdevice.plan.planner import Planner
from pyspark_logdevice.plan.tasks import LogRange, splits
from pyspark_logdevice.read.reader import read_split
from pyspark_logdevice.read.rows import SCHEMA, Columns

NEW = FIRST_LINEAGE.branched(2, Epoch(2), Lsn(1))


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with cluster_in_a_thread() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(selection, "_LOOK_PAUSE_MS", 1)
    with Client(quick(cluster.endpoints)) as client:
        monkeypatch.setattr(connections, "client", lambda options: client)
        client.create_log("/a", {"replication": 2})
        yield client


def options(**more: str) -> ReadOptions:
    return parse({"endpoint": "a:1", "logs": "/a", "logRefresh": "1ms", **more}, streaming=True)


def appended(client: Client, count: int) -> list[Lsn]:
    return [client.append("/a", b"%d" % number) for number in range(count)]


def all_read(client: Client) -> Offsets:
    plan = Planner(options(), client)
    end = plan.next_end(plan.begin(Edge.EARLIEST), limited=True)
    assert end is not None
    return kept(end)


def kept(offsets: Offsets) -> Offsets:
    """The offsets as Spark gives them back."""
    read = from_json(json.loads(json.dumps(offsets.to_json())))
    assert read == offsets
    return read


def lose(cluster: SmallCluster, lsn: Lsn) -> None:
    for node in cluster.nodes.values():
        if node.store.get(LogId(1), lsn) is not None:
            node.store.corrupt(LogId(1), lsn)
    cluster.lineages[LogId(1)] = NEW


def rows(start: Offsets, end: Offsets, chosen: ReadOptions) -> list[tuple[int, str | None, int | None]]:
    batches = [
        batch
        for split in splits(start, end, chosen)
        for batch in read_split(chosen, Columns.of(SCHEMA), split)
    ]
    found = pa.Table.from_batches(batches).select(["lsn", "gap", "gap_end_lsn"]).to_pylist()
    return [(row["lsn"], row["gap"], row["gap_end_lsn"]) for row in found]


def test_a_query_whose_records_are_gone_fails_and_names_them(cluster: SmallCluster, client: Client) -> None:
    lsns = appended(client, 6)
    end = all_read(client)
    assert end.logs[LogId(1)].lineage == shown_id(1)
    lose(cluster, lsns[3])
    with pytest.raises(RollbackError) as caught:
        Planner(options(), client).next_end(end, limited=True)
    error = caught.value
    assert error.message == (
        f"/a has lost records that were read: the checkpoint is at {lsns[-1].next}, the safe LSN is "
        f"{lsns[3]}, lost: [{lsns[3]}, {lsns[4]})"
    )
    assert "onRollback" in str(error)


def test_with_emit_a_row_says_what_to_undo_and_reading_goes_on_from_the_safe_lsn(
    cluster: SmallCluster, client: Client
) -> None:
    """L33: the batch is the same when it is run again."""
    lsns = appended(client, 6)
    before = all_read(client)
    lose(cluster, lsns[3])
    later = appended(client, 1)
    chosen = options(onRollback="emit")
    end = Planner(chosen, client).next_end(before, limited=True)
    assert end is not None
    position = kept(end).logs[LogId(1)]
    assert position.undone == Undone(LogId(1), lsns[3], lsns[-1].next)
    assert position.lineage == shown_id(2)
    wanted = [
        (lsns[3], "ROLLBACK", lsns[-1].next),
        (lsns[3], "DATALOSS", lsns[4]),
        *((lsn, None, None) for lsn in (*lsns[4:], *later)),
    ]
    assert rows(before, kept(end), chosen) == wanted
    assert rows(before, kept(end), chosen) == wanted
    # The next batch does not say it again.
    more = appended(client, 1)
    following = Planner(chosen, client).next_end(kept(end), limited=True)
    assert following is not None
    assert rows(end, kept(following), chosen) == [(more[0], None, None)]
    assert Planner(chosen, client).next_end(kept(following), limited=True) is None


def test_the_row_that_says_what_to_undo_comes_even_if_there_is_nothing_to_read(
    cluster: SmallCluster, client: Client
) -> None:
    lsns = appended(client, 3)
    before = all_read(client)
    lose(cluster, lsns[2])
    chosen = options(onRollback="emit", gaps="none")
    end = Planner(chosen, client).next_end(before, limited=True)
    assert end is not None
    assert rows(before, kept(end), chosen) == [(lsns[2], "ROLLBACK", lsns[2].next)]


def test_a_branch_that_lost_nothing_is_no_rollback(cluster: SmallCluster, client: Client) -> None:
    appended(client, 3)
    before = all_read(client)
    cluster.lineages[LogId(1)] = NEW
    later = appended(client, 1)
    end = Planner(options(), client).next_end(before, limited=True)
    assert end is not None
    assert (end.logs[LogId(1)].lineage, end.logs[LogId(1)].undone) == (shown_id(2), None)
    assert rows(before, end, options()) == [(later[0], None, None)]


def test_a_log_that_was_made_again_is_undone_and_read_from_its_start(client: Client) -> None:
    """L35."""
    lsns = appended(client, 3)
    before = all_read(client)
    client.remove_log("/a")
    client.create_log("/a", {"replication": 2})
    later = appended(client, 1)
    chosen = options(onRollback="emit")
    end = Planner(chosen, client).next_end(before, limited=True)
    assert end is not None
    (new,) = set(end.logs) - {LogId(1)}
    assert end.logs[new].undone == Undone(LogId(1), before.logs[LogId(1)].since, lsns[-1].next)
    (split,) = splits(before, end, chosen)
    assert [(part.log, part.is_undone, part.end) for part in split.ranges] == [
        (LogId(1), True, lsns[-1].next),
        (new, False, later[-1].next),
    ]


def test_ranges_that_are_undone_are_not_joined_with_others() -> None:
    chosen = options()
    position = {
        "path": "/a",
        "next": "9",
        "entries": "4",
        "bytes": "4",
        "from": "1",
        "lineage": None,
        "undone": ["1", "5", "7"],
    }
    end = from_json({"version": 2, "cluster": "c", "tasks": [], "logs": {"1": position}})
    assert end is not None
    start = Offsets("c", {LogId(1): end.logs[LogId(1)].moved("/a", LogPoint(Lsn(7), 2, 2))})
    (split,) = splits(start, end, chosen)
    assert split.ranges == (
        LogRange(LogId(1), "/a", Lsn(5), Lsn(7), is_undone=True),
        LogRange(LogId(1), "/a", Lsn(5), Lsn(9)),
    )
    for wrong in (["1", "5"], ["1", "7", "7"], "x", ["1", 5, "7"]):
        with pytest.raises(CheckpointFormatError, match="undone of log 1"):
            from_json(
                {"version": 2, "cluster": "c", "tasks": [], "logs": {"1": {**position, "undone": wrong}}}
            )


def test_emit_and_stopping_at_losses_contradict_each_other() -> None:
    with pytest.raises(InvalidOptionError, match="onRollback = emit"):
        options(onRollback="emit", failOnDataLoss="true")
