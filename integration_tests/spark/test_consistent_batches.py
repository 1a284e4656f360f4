"""Streams whose batches end at consistent cuts, and reads that end at named cuts, on a real cluster."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from integration_tests.cluster import Cluster
from integration_tests.spark.reading import Source, append_numbers, entries_of, run_available
from logdevice.client import RecordsBatch
from logdevice.client.blocking import Client

# Both surfaces plan with the same code.
pytestmark = pytest.mark.parametrize("source", ["python"], indirect=True)
AHEAD_MS = 5_000  # nodes on one machine share a clock, so causes get a later time instead

PAUSE_S = 0.02  # so that limited batches keep up


class Traffic:
    """Causes are appended to one log. Another client reads them and appends their effects to a second log."""

    def __init__(self, cluster: Cluster, log: str) -> None:
        self.causes, self.effects = f"{log}/causes", f"{log}/effects"
        self._cluster = cluster
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._cause, self._effect)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _cause(self) -> None:
        with self._cluster.client() as client:
            client.append(self.causes, b"first")
            client.saw(client.clock_ms + AHEAD_MS)
            number = 0
            while not self._is_over.wait(PAUSE_S):
                client.append(self.causes, b"%d" % number)
                number += 1

    def _effect(self) -> None:
        with self._cluster.client() as client, client.read(self.causes, follow=True) as reader:
            while not self._is_over.is_set():
                try:
                    item = reader.next(100)
                except TimeoutError:
                    continue
                if isinstance(item, RecordsBatch):
                    client.append_many(self.effects, [entry.payload for entry in item.entries()])


@pytest.mark.parametrize("limits", [{}, {"maxRecordsPerTrigger": "200"}], ids=["all", "limited"])
def test_after_every_batch_there_is_no_effect_without_its_cause(
    source: Source, client: Client, cluster: Cluster, log: str, tmp_path: Path, limits: dict[str, str]
) -> None:
    traffic = Traffic(cluster, log)
    for path in (traffic.causes, traffic.effects):
        client.create_log(path)
    stream = source.stream(f"{traffic.causes},{traffic.effects}", cut="consistent", **limits)
    causes: set[bytes] = set()
    effects: set[bytes] = set()
    with traffic:
        for _ in range(3):
            for rows in run_available(stream, tmp_path):
                for entry in entries_of(rows):
                    (causes if entry.log == traffic.causes else effects).add(entry.payload)
                assert effects <= causes
    assert effects, "no effects were written, so the test proves nothing"


def test_a_batch_read_ends_at_a_named_cut(source: Source, client: Client, log: str, tmp_path: Path) -> None:
    logs = [f"{log}/a", f"{log}/b"]
    for path in logs:
        client.create_log(path)
    appended = [entry for path in logs for entry in append_numbers(client, path, records=5)]
    name = log.strip("/").replace("/", ".")
    client.create_cut(name, logs)
    try:
        for path in logs:
            append_numbers(client, path, records=5)
        before = source.batch(",".join(logs), endingOffsets=f"cut:{name}").collect()
        assert sorted(entries_of(before)) == sorted(appended)
        rest = source.batch(",".join(logs), startingOffsets=f"cut:{name}").collect()
        assert len(entries_of(rest)) == 30
    finally:
        client.remove_cut(name)
