"""How often a planner asks the cluster: what it learned for one batch, it does not ask again for the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logdevice.client import Client
from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.client.tests.small_cluster import quick
from logdevice.types import CountedRecord, LogId, Lsn
from pyspark_logdevice.options.read import parse
from pyspark_logdevice.options.values import Edge
from pyspark_logdevice.plan.planner import Planner


@pytest.fixture
def client() -> Iterator[Client]:
    with cluster_in_a_thread() as cluster, Client(quick(cluster.endpoints)) as client:
        client.create_log("/a", {"replication": 2})
        for number in range(9):
            client.append_many("/a", [b"%d" % number] * 2)
        yield client


@pytest.fixture
def asked(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[Lsn]:
    """The LSNs from which the planner searched for records."""
    starts: list[Lsn] = []
    find = client.find_record

    def counted(log: LogId, start: Lsn, **limits: int | None) -> CountedRecord | None:
        starts.append(start)
        return find(log, start, **limits)

    monkeypatch.setattr(client, "find_record", counted)
    return starts


def planner(client: Client) -> Planner:
    return Planner(parse({"endpoint": "a:1", "logs": "/a", "maxRecordsPerTrigger": "5"}), client)


def test_the_first_record_of_a_batch_was_found_by_the_batch_before(client: Client, asked: list[Lsn]) -> None:
    one, questions = planner(client), []
    at = one.begin(Edge.EARLIEST)
    for _ in range(3):
        anew = planner(client).next_end(at, limited=True)
        asked.clear()
        end = one.next_end(at, limited=True)
        assert end is not None
        assert end == anew  # the same end as from a new planner
        questions.append(len(asked))
        at = end
    assert questions == [2, 1, 1]  # the counters at the start; where the limit is passed


def test_from_an_older_start_everything_is_asked_again(client: Client, asked: list[Lsn]) -> None:
    """When a query runs a batch again, or continues in another process, only the offset decides."""
    one = planner(client)
    start = one.begin(Edge.EARLIEST)
    first = one.next_end(start, limited=True)
    asked.clear()
    assert one.next_end(start, limited=True) == first
    assert len(asked) == 2
