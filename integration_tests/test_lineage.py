"""Histories of logs with real processes: lost disks end a history, failovers never do."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from integration_tests.cluster import Cluster
from integration_tests.command_line import CommandLine
from integration_tests.lost_disks import COPIES, lose_disk, lost_records, running, written
from logdevice.cli.local.processes import wait_until
from logdevice.client import Checkpoint
from logdevice.client.blocking import Client
from logdevice.errors import LogDeviceError, OutcomeUnknownError, RollbackError
from logdevice.types import Lsn

FAILOVERS = int(os.environ.get("LOGDEVICE_LINEAGE_FAILOVERS", "5"))
PATIENCE_MS = 60_000


def all_read(client: Client, log: str, end: Lsn) -> Checkpoint:
    with client.read(log, "oldest", end, lineage="newest") as reader:
        for _ in reader:
            pass
        return reader.checkpoint(end)


def is_done(command: CommandLine, *words: str) -> bool:
    return command(*words).code == 0


def test_a_block_that_is_lost_for_good_is_a_rollback_to_where_it_began(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """L29, L30, L34: more than R - 1 nodes of a block are lost, even if the sequencer is one of them."""
    with running(tmp_path / "data", nodes=5, replication=COPIES) as cluster, cluster.client() as client:
        command = CommandLine(cluster, capfdbinary)
        log = "/lineage/lost"
        holders = written(client, log)
        end = Lsn(max(holders) + 1)
        kept = all_read(client, log, end)
        gone = holders[sorted(holders)[len(holders) // 2]]
        lost = sorted(lost_records(holders, gone))
        assert not client.check(kept).is_rollback
        for node in sorted(gone):
            lose_disk(cluster, node)
        # The nodes stay down, and an operator gives up their data.
        give_up = ("mark-unrecoverable", "--yes", *(str(node) for node in sorted(gone)))
        assert wait_until(partial(is_done, command, *give_up), PATIENCE_MS)
        assert wait_until(partial(takes_appends, client, log), PATIENCE_MS)
        checked = client.check(kept)
        assert checked.safe == lost[0]
        assert {lsn for part in checked.lost for lsn in map(Lsn, range(part.start, part.end))} == set(lost)
        with pytest.raises(RollbackError, match=f"the safe LSN is {lost[0]}"):
            client.read(log, kept.next, lineage=kept.lineage, follow=True).next()
        shown = command.done("logs", "lineage", log, "--json").objects
        assert shown[0]["id"] == kept.lineage
        # A sequencer that takes over a second time may have to add another branch.
        assert checked.lineage in [row["id"] for row in shown[1:]]
        assert min(Lsn.parse(row["base"]) for row in shown[1:]) <= lost[0]
        below = all_read(client, log, lost[0])
        assert not client.check(below).is_rollback


def takes_appends(client: Client, log: str) -> bool:
    try:
        client.append(log, b"after")
    except LogDeviceError:
        return False
    return True


def test_failovers_never_cause_a_rollback(cluster: Cluster, log: str) -> None:
    """L31: the sequencer is killed again and again; LOGDEVICE_LINEAGE_FAILOVERS says how often."""
    with cluster.client() as client:
        client.create_log(log, {"replication": "3"})
        append(client, log)
        kept = all_read(client, log, append(client, log).next)
        for _ in range(FAILOVERS):
            victim = cluster.sequencer_of(log)
            cluster.kill(victim)
            last = append(client, log)
            cluster.up()
            checked = client.check(kept)
            assert (checked.is_rollback, checked.lineage) == (False, kept.lineage)
            kept = all_read(client, log, last.next)
        assert client.lineage(log).version == 1
        assert kept.next.epoch > FAILOVERS


def append(client: Client, log: str) -> Lsn:
    while True:
        try:
            return client.append(log, b"x")
        except OutcomeUnknownError:
            continue  # an entry may be in the log twice, but none may be missing
