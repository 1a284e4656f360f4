"""What a planner decides, with a small cluster: where queries begin, and how they continue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from logdevice.client import Client
from logdevice.client.tests.small_cluster import CLUSTER, FIRST_RECORD_MS, SmallCluster, quick
from logdevice.cuts import Cut, CutEnd, CutKind
from logdevice.errors import (
    CheckpointAheadError,
    CheckpointClusterError,
    CheckpointTrimmedError,
    InvalidArgumentError,
    InvalidOptionError,
    LogRemovedError,
    TrimmedError,
    UnknownLogError,
)
from logdevice.protocol.messages import service
from logdevice.types import LogId, LogPoint, Lsn
from pyspark_logdevice.options.read import parse
from pyspark_logdevice.options.values import Edge
from pyspark_logdevice.plan import selection
from pyspark_logdevice.plan.offsets import Offsets, from_json
from pyspark_logdevice.plan.planner import Planner
from pyspark_logdevice.plan.tasks import splits


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_LOOK_PAUSE_MS", 1)


@pytest.fixture(scope="module")
def connected(cluster: SmallCluster) -> Iterator[Client]:
    with Client(quick(cluster.endpoints)) as client:
        yield client


@pytest.fixture
def client(connected: Client) -> Client:
    for view in connected.logs("/"):
        if view.log is not None:
            connected.remove_log(view.path)
    return connected


def planner(client: Client, logs: str = "/a", **options: str) -> Planner:
    chosen = {"logs": logs} if "logsPattern" not in options else {}
    return Planner(parse({"endpoint": "a:1", "logRefresh": "1ms", **chosen, **options}), client)


def fill(client: Client, log: str, records: int = 6, entries: int = 2) -> list[Lsn]:
    if not any(view.path == log for view in client.logs("/")):
        client.create_log(log, {"replication": 2})
    return [client.append_many(log, [b"%d" % number] * entries) for number in range(records)]


def number(client: Client, log: str) -> LogId:
    found = client.logs(log)[0].log
    assert found is not None
    return found


def starts(offsets: Offsets) -> dict[str, Lsn]:
    return {position.path: position.next for position in offsets.logs.values()}


def kept(offsets: Offsets) -> Offsets:
    """The offsets as Spark gives them back."""
    read = from_json(json.loads(json.dumps(offsets.to_json())))
    assert read == offsets
    return read


def entries(start: Offsets, end: Offsets | None) -> int:
    """The number of entries between the two offsets."""
    assert end is not None
    return sum(found.at.entry_end for found in end.logs.values()) - sum(
        found.at.entry_end for found in start.logs.values()
    )


def test_a_query_begins_where_the_options_say(client: Client) -> None:
    a, b = fill(client, "/a"), fill(client, "/b")
    client.trim("/b", b[2])
    both = "/a,/b"
    earliest, latest = {"/a": Lsn(1), "/b": b[2]}, {"/a": a[5].next, "/b": b[5].next}
    assert starts(planner(client, both).begin(Edge.EARLIEST)) == earliest
    assert starts(planner(client, both).begin(Edge.LATEST)) == latest
    assert starts(planner(client, both, startingOffsets="earliest").begin(Edge.LATEST)) == earliest
    places = json.dumps({"/a": str(a[3]), str(number(client, "/b")): "latest"})
    assert starts(planner(client, both, startingOffsets=places).begin(Edge.EARLIEST)) == {
        "/a": a[3],
        "/b": b[5].next,
    }
    begun = planner(client, "/a", startingOffsets=str(int(a[3]))).begin(Edge.EARLIEST)
    assert begun.logs[number(client, "/a")].at.entry_end == 6
    assert begun.cluster == CLUSTER


def test_a_named_cut_says_where_to_begin_and_to_end(client: Client, cluster: SmallCluster) -> None:
    a, b = fill(client, "/a"), fill(client, "/b")
    places = {"/a": a[2], "/b": b[4]}
    ends = [CutEnd(log=number(client, path), path=path, end=lsn) for path, lsn in places.items()]
    cluster.cuts = [Cut(kind=CutKind.CONSISTENT, time_ms=1, ends=tuple(ends), cookie="x.1")]
    assert starts(planner(client, "/a,/b", startingOffsets="cut:x.1").begin(Edge.LATEST)) == places
    found = planner(client, "/a,/b", endingOffsets='{"/a": "cut:x.1", "*": "latest"}').plan_batch()[0]
    assert [part.end for split in found for part in split.ranges] == [a[2], b[5].next]
    fill(client, "/c")
    with pytest.raises(InvalidOptionError, match="which has no position for /c"):
        planner(client, "/a,/c", startingOffsets="cut:x.1").begin(Edge.LATEST)
    with pytest.raises(InvalidArgumentError, match="no cut"):
        planner(client, "/a", endingOffsets="cut:y").plan_batch()


def test_batches_that_end_at_cuts(client: Client) -> None:
    """Each record is one second newer than the one before: /b, where more waits, is not read ahead of /a."""
    a, b = fill(client, "/a", records=3), fill(client, "/b", records=6)
    planning = planner(client, "/a,/b", cut="consistent", maxRecordsPerTrigger="7")
    at = planning.begin(Edge.EARLIEST)
    ends = []
    while (end := planning.next_end(kept(at), limited=True)) is not None:
        assert entries(at, end) <= 7
        ends.append(starts(end))
        at = kept(end)
    assert ends[0] == {"/a": a[1], "/b": b[1]}
    assert ends[-1] == {"/a": a[2].next, "/b": b[5].next}
    for found in ends:
        seen = {path: sum(lsn < found[path] for lsn in lsns) for path, lsns in (("/a", a), ("/b", b))}
        assert seen["/a"] == min(3, seen["/b"]), "a batch does not end at one time in all logs"


def test_a_batch_read_ends_at_a_cut(client: Client) -> None:
    fill(client, "/a"), fill(client, "/b", records=2)
    found = planner(client, "/a,/b", cut="consistent").plan_batch()[0]
    assert len([part for split in found for part in split.ranges]) == 2


def test_a_query_begins_at_a_time(client: Client) -> None:
    lsns = fill(client, "/a")
    times = {1000: lsns[1], 1500: lsns[2], 99_000: lsns[5].next}
    for after_ms, lsn in times.items():
        begun = planner(client, startingTimestamp=str(FIRST_RECORD_MS + after_ms)).begin(Edge.EARLIEST)
        assert starts(begun) == {"/a": lsn}


def test_a_batch_read_is_everything_between_its_ends(client: Client) -> None:
    lsns = fill(client, "/a")

    def read(**options: str) -> list[tuple[Lsn, Lsn]]:
        found = planner(client, **options).plan_batch()[0]
        return [(part.start, part.end) for split in found for part in split.ranges]

    assert read() == [(1, lsns[5].next)]
    assert read(endingOffsets=str(lsns[3])) == [(1, lsns[3])]
    assert read(startingOffsets=str(lsns[1]), endingOffsets=f'{{"/a": "{lsns[3]}"}}') == [(lsns[1], lsns[3])]
    assert read(endingTimestamp=str(FIRST_RECORD_MS + 2000)) == [(1, lsns[2])]
    assert read(startingTimestamp=str(FIRST_RECORD_MS + 3000), endingTimestamp="5") == []
    assert read(startingOffsets="latest") == []
    assert read(minPartitions="3") == [(1, lsns[2]), (lsns[2], lsns[4]), (lsns[4], lsns[5].next)]
    assert read(maxRecordsPerPartition="5", maxRecordsPerTrigger="1") == read(minPartitions="3")


def refusal(client: Client, logs: str = "/a", **options: str) -> str:
    with pytest.raises(InvalidOptionError) as caught:
        planner(client, logs, **options).plan_batch()
    return caught.value.message


def test_positions_that_make_no_sense_are_refused(client: Client) -> None:
    lsns = fill(client, "/a")
    fill(client, "/b", records=1)
    end = lsns[5].next
    assert refusal(client, "/a,/b", startingOffsets='{"/a": "latest"}') == (
        'option startingOffsets has no position for /b; add one, or one for "*", all others'
    )
    assert refusal(client, startingOffsets='{"/a": "latest", "/c": 5}') == (
        "option startingOffsets names /c, which the query does not read"
    )
    assert refusal(client, endingOffsets=f'{{"/b": "{lsns[0]}"}}') == (
        "option endingOffsets names /b, which the query does not read"
    )
    assert refusal(client, startingOffsets="e9n1") == (
        f"option startingOffsets has position e9n1 for /a, which is past its end {end}"
    )
    assert refusal(client, endingOffsets="e9n1") == (
        f"option endingOffsets has position e9n1 for /a, which is past its end {end}"
    )
    assert refusal(client, startingOffsets=str(lsns[3]), endingOffsets=str(lsns[2])) == (
        f"option endingOffsets ends /a at {lsns[2]}, before its start {lsns[3]}"
    )


def test_a_start_that_is_trimmed_counts_as_loss(client: Client) -> None:
    lsns = fill(client, "/a")
    client.trim("/a", lsns[2])
    assert starts(planner(client, startingOffsets=str(lsns[1])).begin(Edge.LATEST)) == {"/a": lsns[1]}
    with pytest.raises(TrimmedError) as caught:
        planner(client, startingOffsets=str(lsns[1]), failOnDataLoss="true").begin(Edge.LATEST)
    assert caught.value.message == (
        f"option startingOffsets begins /a at {lsns[1]}, but the log is trimmed up to {lsns[2]}, "
        "and failOnDataLoss is true"
    )


def test_an_error_names_the_log_that_does_not_exist(client: Client) -> None:
    fill(client, "/a")
    for name in ("/nowhere", "77777"):
        with pytest.raises(UnknownLogError) as caught:
            planner(client, f"/a,{name}").begin(Edge.LATEST)
        assert caught.value.message == f"option logs names {name!r}, which does not exist"


def test_a_stream_continues_from_its_offsets_alone(client: Client) -> None:
    fill(client, "/a")
    begun = planner(client, maxRecordsPerTrigger="5").begin(Edge.EARLIEST)
    total, at = 0, begun
    for expected in (4, 4, 4):
        end = planner(client, maxRecordsPerTrigger="5").next_end(at, limited=True)
        assert entries(at, end) == expected
        assert end is not None
        at, total = kept(end), total + expected
    assert planner(client).next_end(at, limited=True) is None
    assert (
        entries(begun, planner(client, maxRecordsPerTrigger="5").next_end(begun, limited=False))
        == total
        == 12
    )
    fill(client, "/a", records=1)
    assert entries(at, planner(client).next_end(at, limited=True)) == 2


def test_the_lag_is_what_a_batch_leaves(client: Client) -> None:
    lsns = fill(client, "/a")
    fill(client, "/b", records=1, entries=1)
    plan = planner(client, "/a,/b", maxRecordsPerTrigger="5")
    assert plan.next_end(plan.begin(Edge.EARLIEST), limited=True) is not None
    a, b = plan.lag[number(client, "/a")], plan.lag[number(client, "/b")]
    assert (a.path, a.end, a.records, b.records) == ("/a", lsns[5].next, 8, 0)
    assert a.bytes > 0
    assert a.oldest_ms == FIRST_RECORD_MS + 2000
    assert b.oldest_ms is None


def test_a_run_with_a_target_does_not_read_what_is_appended_later(client: Client) -> None:
    fill(client, "/a", records=2)
    plan = planner(client)
    at = plan.begin(Edge.EARLIEST)
    plan.hold_target()
    assert plan.has_target
    fill(client, "/a", records=2)
    end = plan.next_end(at, limited=True)
    assert entries(at, end) == 4
    assert end is not None
    assert plan.next_end(end, limited=True) is None
    assert entries(end, planner(client).next_end(end, limited=True)) == 4


def test_logs_that_match_join_from_their_start(client: Client) -> None:
    fill(client, "/x/a", records=2)
    plan = planner(client, logsPattern="/x/.*")
    at = plan.begin(Edge.LATEST)
    fill(client, "/x/b", records=3)
    fill(client, "/y", records=3)
    end = plan.next_end(at, limited=True)
    assert end is not None
    assert starts(end).keys() == {"/x/a", "/x/b"}
    (split,) = splits(at, kept(end), parse({"endpoint": "a:1", "logs": "/a"}))
    assert [(part.path, part.start) for part in split.ranges] == [("/x/b", Lsn(1))]


def test_a_renamed_log_is_still_read(client: Client) -> None:
    fill(client, "/a", records=2)
    at = planner(client).begin(Edge.EARLIEST)
    client.rename("/a", "/new")
    plan = planner(client)
    plan.hold_target()
    end = plan.next_end(at, limited=True)
    assert end is not None
    assert starts(end).keys() == {"/new"}
    assert entries(at, end) == 4


def test_a_removed_log_fails_the_query_unless_losses_are_allowed(client: Client) -> None:
    fill(client, "/x/a", records=2)
    fill(client, "/x/b", records=2)
    log = number(client, "/x/a")
    begun = planner(client, logsPattern="/x/.*").begin(Edge.LATEST)
    position = begun.logs[log].next
    client.remove_log("/x/a")
    expected = f"/x/a was removed; the query had read it up to {position}"
    for options in ({"logsPattern": "/x/.*", "failOnDataLoss": "true"}, {"logs": "/x/a,/x/b"}):
        plan = Planner(parse({"endpoint": "a:1", **options}), client)
        with pytest.raises(LogRemovedError) as caught:
            plan.next_end(begun, limited=True)
        assert caught.value.message == expected
    plan = planner(client, logsPattern="/x/.*")
    assert plan.next_end(begun, limited=True) is None
    assert not plan.is_there(log)
    fill(client, "/x/b", records=1)
    assert entries(begun, plan.next_end(begun, limited=True)) == 2
    # A user who removes it from the options knows that it is gone.
    assert planner(client, "/x/b").next_end(begun, limited=True) is not None


def test_a_node_that_does_not_know_a_log_yet_does_not_make_it_disappear(
    cluster: SmallCluster, client: Client
) -> None:
    fill(client, "/x/a", records=2)
    begun = planner(client, logsPattern="/x/.*").begin(Edge.EARLIEST)
    plan = planner(client, logsPattern="/x/.*", failOnDataLoss="true")
    answer, stale = cluster._answers[service.GetLogs], iter([True, True])
    cluster._answers[service.GetLogs] = lambda node, ask: (
        service.LogsView(()) if next(stale, False) else answer(node, ask)
    )
    try:
        assert entries(begun, plan.next_end(begun, limited=True)) == 4
    finally:
        cluster._answers[service.GetLogs] = answer
    assert next(stale, None) is None
    assert plan.is_there(number(client, "/x/a"))


def test_a_log_that_was_made_again_is_another_log(client: Client) -> None:
    fill(client, "/a", records=2)
    old = number(client, "/a")
    begun = planner(client).begin(Edge.LATEST)
    client.remove_log("/a")
    lsns = fill(client, "/a", records=1)
    new = number(client, "/a")
    with pytest.raises(LogRemovedError) as caught:
        planner(client, failOnDataLoss="true").next_end(begun, limited=True)
    assert caught.value.message.startswith(f"/a was removed and made again as log {new}; ")
    end = planner(client).next_end(begun, limited=True)
    assert end is not None
    assert (end.logs[new].since, end.logs[new].next) == (1, lsns[0].next)
    assert end.logs[old] == begun.logs[old]


def test_a_checkpoint_of_another_cluster_is_refused(client: Client) -> None:
    fill(client, "/a", records=1)
    begun = replace(planner(client).begin(Edge.EARLIEST), cluster="other")
    expected = f"the checkpoint belongs to cluster 'other', but a:1 belongs to cluster {CLUSTER!r}"
    with pytest.raises(CheckpointClusterError) as caught:
        planner(client).next_end(begun, limited=True)
    assert caught.value.message == expected
    with pytest.raises(CheckpointClusterError) as caught:
        planner(client).resume(None, begun)
    assert caught.value.message == expected


def test_a_checkpoint_past_the_end_of_the_log_is_refused(client: Client) -> None:
    lsns = fill(client, "/a", records=1)
    log = number(client, "/a")
    begun = planner(client).begin(Edge.EARLIEST)
    ahead = Offsets(CLUSTER, {log: begun.logs[log].moved("/a", LogPoint(Lsn.of(7, 1), 5, 5))})
    with pytest.raises(CheckpointAheadError) as caught:
        planner(client).next_end(ahead, limited=True)
    assert caught.value.message == (
        f"the checkpoint says that /a was read up to e7n1, but the log ends at {lsns[0].next}"
    )


def test_records_that_were_trimmed_while_the_query_was_stopped_count_as_loss(client: Client) -> None:
    lsns = fill(client, "/a")
    begun = planner(client, startingOffsets=str(lsns[1])).begin(Edge.EARLIEST)
    client.trim("/a", lsns[3])
    with pytest.raises(CheckpointTrimmedError) as caught:
        planner(client, failOnDataLoss="true").next_end(begun, limited=True)
    expected = f"/a was trimmed up to {lsns[3]}, but the query must continue at {lsns[1]}"
    assert caught.value.message == expected
    # Otherwise the readers find the gap and make it a row.
    end = planner(client).next_end(begun, limited=True)
    assert end is not None
    assert splits(begun, end, parse({"endpoint": "a:1", "logs": "/a"}))[0].ranges[0].start == lsns[1]


def test_many_logs_are_asked_about_at_the_same_time(client: Client) -> None:
    for name in range(20):
        fill(client, f"/many/{name}", records=1)
    plan = planner(client, logsPattern="/many/.*")
    at = plan.begin(Edge.EARLIEST)
    end = plan.next_end(at, limited=True)
    assert entries(at, end) == 40
    plan.close()
