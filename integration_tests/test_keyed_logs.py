"""Keyed logs in real processes: compacted in the background, while nodes are killed and lose their disks."""

from __future__ import annotations

import random
import runpy
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.command_line import CommandLine
from integration_tests.lost_disks import lose_disk
from logdevice.cli.commands.clusters import bring_up
from logdevice.cli.local.processes import wait_until
from logdevice.client import Client, RecordsBatch
from logdevice.errors import OutcomeUnknownError, RebuildError
from logdevice.types import GapType

EXAMPLE = Path(__file__).parents[1] / "examples" / "latest_per_key.py"
QUICK = {"node": {"compaction_interval_ms": 200, "compaction_share": 0.0}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data = tmp_path_factory.mktemp("keyed") / "data"
    cluster = Cluster.create(data, nodes=4, replication=3, settings=QUICK)
    try:
        bring_up(cluster)
        yield cluster
    finally:
        cluster.kill_all()


def read(client: Client, log: str) -> tuple[dict[bytes, bytes], int, set[GapType]]:
    """What a new consumer has in the end, how many entries it has read, and the gaps it has met.

    It starts over if the reader says so, because deletions may be removed while it reads.
    """
    while True:
        with suppress(RebuildError):
            return read_once(client, log)


def read_once(client: Client, log: str) -> tuple[dict[bytes, bytes], int, set[GapType]]:
    state: dict[bytes, bytes] = {}
    gaps: set[GapType] = set()
    entries = 0
    with client.read(log) as reader:
        for item in reader:
            if isinstance(item, RecordsBatch):
                entries += len(item)
                state |= {entry.key: entry.payload for entry in item.entries() if entry.key is not None}
            else:
                gaps.add(item.type)
    return {key: value for key, value in state.items() if value}, entries, gaps


class Writer:
    """Puts and deletes random keys, and knows which values the log should have."""

    def __init__(self, client: Client, log: str) -> None:
        self.client, self.log = client, log
        self.state: dict[bytes, bytes] = {}
        self._random = random.Random(7)
        self._number = 0

    def write(self, count: int) -> None:
        for _ in range(count):
            self._number += 1
            key = b"key-%d" % self._random.randrange(10)
            value = b"" if self._random.random() < 0.2 else b"%d" % self._number
            while True:
                # Appending it twice does no harm: it is the same value of the same key.
                with suppress(OutcomeUnknownError):
                    self.client.append(self.log, value, key=key)
                    break
            self.state[key] = value

    @property
    def values(self) -> dict[bytes, bytes]:
        return {key: value for key, value in self.state.items() if value}


def test_the_newest_of_every_key_survives_kills_and_a_lost_disk(
    cluster: Cluster, log: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with cluster.client() as client:
        client.create_log(log, {"compaction": "keyed", "tombstone_grace_ms": 500})
        writer = Writer(client, log)
        writer.write(40)
        assert wait_until(lambda: read(client, log)[1] <= 12, PATIENCE_MS), "it was not compacted"
        cluster.kill(cluster.sequencer_of(log))
        writer.write(40)
        assert read(client, log)[0] == writer.values
        cluster.up()
        lose_disk(cluster, cluster.other_than(cluster.sequencer_of(log))[0])
        writer.write(20)
        assert read(client, log)[0] == writer.values
        cluster.up()
        assert wait_until(lambda: not client.node_states().nodes, PATIENCE_MS), client.node_states()
        # All nodes are up: only the newest entries are left, and in the end no deletions either.
        assert wait_until(lambda: read(client, log)[1] == len(writer.values), PATIENCE_MS), read(client, log)
        state, _, gaps = read(client, log)
        assert state == writer.values
        assert gaps <= {GapType.COMPACTED, GapType.BRIDGE, GapType.HOLE}
        assert CommandLine(cluster, capfdbinary)("check", log, "--json").code == 0
        assert client.tail(log).entry_end >= 100


def test_a_view_of_the_latest_values_survives_crashes_rollbacks_and_missed_deletions(
    cluster: Cluster, log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(EXAMPLE))
    with cluster.client() as client:
        # At first nothing is dropped, so that the history can be read.
        found = client.create_log(log)
        assert found.log is not None
        writer = Writer(client, log)
        writer.write(30)
        middle, then = client.tail(log).next, writer.values
        writer.write(10)
        view = example["View"](tmp_path, found.log)
        example["catch_up"](client, log, view)
        _, lineage, purged = view.reached()
        view.roll_back(middle, lineage, purged)
        table = dict(view.table.execute("select key, value from latest").fetchall())
        assert table == then
        # Killed after the ring was written and before the table was.
        view.ring.keep([example["Change"](middle, key, value) for key, value in then.items()])
        view.close()
        writer.write(10)
        example["main"](cluster.endpoint, str(tmp_path), log)
        assert capsys.readouterr().out == f"{log}: {len(writer.values)} keys\n"
        # A deletion is appended and removed while no consumer reads.
        client.set_attributes(log, {"compaction": "keyed", "tombstone_grace_ms": 0})
        gone = min(writer.values)
        position = client.tail(log).next
        client.append(log, b"", key=gone)
        assert wait_until(lambda: client.purged_end(log) > position, PATIENCE_MS)
        with pytest.raises(RebuildError), client.read(log, position) as reader:
            list(reader)
        example["main"](cluster.endpoint, str(tmp_path), log)
        assert capsys.readouterr().out == f"{log}: {len(writer.values) - 1} keys\n"
