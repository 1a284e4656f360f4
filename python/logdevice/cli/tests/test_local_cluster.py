"""A local cluster with stand-ins for nodes: its files, and how its processes start and end. No node runs."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdevice.cli.local.local_cluster import LocalCluster, exists
from logdevice.cli.local.processes import ProcessState
from logdevice.errors import InvalidArgumentError, LogDeviceError, UnavailableError
from logdevice.types import NodeId

TIMEOUT_MS = 10_000
STAND_IN = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
BROKEN = "import sys; sys.exit('the disk is on fire')"


def command(program: str) -> tuple[str, ...]:
    return sys.executable, "-c", program


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster.create(tmp_path / "data", nodes=3)
    cluster.command = command(STAND_IN)
    yield cluster
    cluster.kill_all()


def states(cluster: LocalCluster) -> list[str]:
    return [cluster.state(node).value for node in cluster.nodes]


def test_a_new_cluster_has_files_and_no_processes(cluster: LocalCluster) -> None:
    assert exists(cluster.data)
    assert states(cluster) == ["down"] * 3
    config = json.loads(cluster.find(2).config.read_text())
    assert config["node"] == 2
    assert config["address"] == cluster.find(2).address
    assert config["address"] in cluster.endpoint


def test_an_existing_cluster_is_not_made_again(cluster: LocalCluster) -> None:
    with pytest.raises(InvalidArgumentError, match="already holds a cluster"):
        LocalCluster.create(cluster.data, nodes=3)


@pytest.mark.parametrize("nodes", [0, 101])
def test_a_cluster_of_an_impossible_size_is_refused(tmp_path: Path, nodes: int) -> None:
    with pytest.raises(InvalidArgumentError, match="1 to 100 nodes"):
        LocalCluster.create(tmp_path, nodes=nodes)


@pytest.mark.parametrize(("nodes", "copies"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_a_record_has_three_copies_or_one_on_every_node(tmp_path: Path, nodes: int, copies: int) -> None:
    assert LocalCluster.create(tmp_path, nodes=nodes).replication == copies


def test_more_copies_than_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="replication 4 needs at least 4 nodes, got 3"):
        LocalCluster.create(tmp_path, nodes=3, replication=4)


def test_a_directory_without_a_cluster_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="logdevice up --data"):
        LocalCluster.load(tmp_path)


def test_an_error_names_the_damaged_file(cluster: LocalCluster) -> None:
    (cluster.data / "cluster.json").write_text("{}")
    with pytest.raises(InvalidArgumentError, match=r"cluster\.json cannot be read"):
        LocalCluster.load(cluster.data)


def test_an_error_names_the_unknown_node_and_the_known_ones(cluster: LocalCluster) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no node N7 .* choose from: N1, N2, N3"):
        cluster.kill(7)


def test_all_start_and_all_end(cluster: LocalCluster) -> None:
    cluster.start_all()
    assert states(cluster) == ["running"] * 3
    cluster.stop_all(TIMEOUT_MS)
    assert states(cluster) == ["down"] * 3


def test_a_running_node_is_not_started_twice(cluster: LocalCluster) -> None:
    cluster.start(1)
    before = cluster.find(1).process
    cluster.start(1)
    assert cluster.find(1).process == before


def test_only_the_killed_node_ends(cluster: LocalCluster) -> None:
    cluster.start_all()
    cluster.kill(2)
    assert states(cluster) == ["running", "down", "running"]
    cluster.start(2)
    assert states(cluster) == ["running"] * 3


def test_a_paused_node_can_go_on_and_can_end(cluster: LocalCluster) -> None:
    cluster.start(1)
    cluster.pause(1)
    assert cluster.state(1) is ProcessState.PAUSED
    cluster.resume(1)
    assert cluster.state(1) is ProcessState.RUNNING
    cluster.pause(1)
    cluster.stop(1, TIMEOUT_MS)
    assert cluster.state(1) is ProcessState.DOWN


def test_a_node_that_is_down_cannot_be_paused(cluster: LocalCluster) -> None:
    with pytest.raises(InvalidArgumentError, match="N1 is not running"):
        cluster.pause(1)


def test_a_node_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path, nodes=1)
    cluster.command = command(DEAF)
    cluster.start(1)
    cluster.wait_until_ready(lambda: "deaf" in cluster.find(1).log.read_text(), TIMEOUT_MS)
    cluster.stop(1, timeout_ms=50)
    assert cluster.state(1) is ProcessState.DOWN


def test_another_process_sees_and_ends_the_same_nodes(cluster: LocalCluster) -> None:
    cluster.start_all()
    other = LocalCluster.load(cluster.data)
    assert states(other) == ["running"] * 3
    assert (len(cluster.children), other.children) == (3, [])
    other.kill(3)
    assert cluster.state(3) is ProcessState.DOWN


def test_an_error_says_why_a_node_ended_while_starting(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path, nodes=1)
    cluster.command = command(BROKEN)
    cluster.start(1)
    with pytest.raises(LogDeviceError, match="N1 ended with code 1: the disk is on fire"):
        cluster.wait_until_ready(lambda: False, TIMEOUT_MS)


def test_nodes_that_are_not_ready_in_time_are_an_error(cluster: LocalCluster) -> None:
    cluster.start_all()
    with pytest.raises(UnavailableError, match="not ready within 20 ms"):
        cluster.wait_until_ready(lambda: False, 20)


def test_an_end_is_reported_once_with_its_signal(cluster: LocalCluster) -> None:
    cluster.start(1)
    child = cluster.find(1).process
    assert child is not None
    child.signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert cluster.reap() == {NodeId(1): -signal.SIGKILL}
    assert cluster.reap() == {}
