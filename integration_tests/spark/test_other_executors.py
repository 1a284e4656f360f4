"""Executors in other processes than the driver read logs: a task carries everything that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from integration_tests.cluster import Cluster
from integration_tests.spark.reading import append_numbers
from integration_tests.spark.session import SURFACES, cluster_environment
from logdevice.client.blocking import Client

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240


def test_executors_in_other_processes_read_the_same(
    cluster: Cluster, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = [entry.payload.decode() for entry in append_numbers(client, log, records=40)]
    command = [sys.executable, "-m", "integration_tests.spark.other_executors"]
    done = subprocess.run(
        [*command, cluster.endpoint, log, str(tmp_path), *SURFACES],
        cwd=ROOT,
        env=cluster_environment(tmp_path / "home"),
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("executors") == 2
    for surface in SURFACES:
        assert found[surface]["payloads"] == appended
        assert found[surface]["tasks"] >= 4
