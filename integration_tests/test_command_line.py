"""Commands on a real cluster: what is appended is read, and every mistake gets a clear error."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.command_line import CommandLine, process
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.local.processes import ProcessState
from logdevice.cli.main import BROKEN_PIPE, INTERRUPTED, main
from logdevice.types import Lsn

ODD_LINES = b"one\n\n  spaces  \ntab\there\r\n\xff\xfe\x00 no text\nend\n"


@pytest.fixture
def logdevice(cluster: Cluster, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(cluster, capfdbinary)


def append(logdevice: CommandLine, log: str, data: bytes, directory: Path) -> None:
    file = directory / "input"
    file.write_bytes(data)
    logdevice.done("append", log, str(file))


def test_a_file_comes_back_as_it_was(logdevice: CommandLine, log: str, tmp_path: Path) -> None:
    logdevice.done("logs", "create", log)
    data = ODD_LINES + b"".join(b"line %d\n" % number for number in range(30_000))
    append(logdevice, log, data, tmp_path)
    assert logdevice.done("cat", log).out == data


def test_entries_and_gaps_are_objects_in_order(logdevice: CommandLine, log: str, tmp_path: Path) -> None:
    logdevice.done("logs", "create", log)
    for data in (b"a\nb\n", b"\xff\n"):
        append(logdevice, log, data, tmp_path)
    entries = [plain for plain in logdevice.done("cat", log, "--json").objects if "lsn" in plain]
    assert [(e["batch_offset"], e.get("payload"), e.get("payload_base64")) for e in entries] == [
        (0, "a", None),
        (1, "b", None),
        (0, None, "/w=="),
    ]
    second = entries[2]["lsn"]
    logdevice.done("trim", log, second)
    *gaps, entry = logdevice.done("cat", log, "--json").objects
    assert gaps[-1]["gap"] == "TRIM"
    assert gaps[-1]["end"] == entry["lsn"] == second
    assert "gap: TRIM" in logdevice.done("cat", log).err
    assert logdevice.done("cat", log, "--from", second).out == b"\xff\n"
    assert logdevice.done("cat", log, "--until", second).out == b""


def test_the_last_entries_are_found(logdevice: CommandLine, log: str, tmp_path: Path) -> None:
    logdevice.done("logs", "create", log)
    assert logdevice.done("tail", log).out == b""
    for number in range(20):
        append(logdevice, log, b"%d first\n%d second\n" % (number, number), tmp_path)
    assert logdevice.done("tail", "-n", "3", log).out == b"18 second\n19 first\n19 second\n"
    assert len(logdevice.done("tail", "-n", "1000", log).out.splitlines()) == 40


def test_following_prints_new_entries_until_it_is_interrupted(
    logdevice: CommandLine, log: str, tmp_path: Path
) -> None:
    logdevice.done("logs", "create", log)
    append(logdevice, log, b"before\n", tmp_path)
    following = logdevice.process("tail", "-f", log)
    assert following.stdout is not None
    assert following.stdout.readline() == b"before\n"
    append(logdevice, log, b"after\n", tmp_path)
    assert following.stdout.readline() == b"after\n"
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=PATIENCE_MS / 1000)
    assert (following.returncode, err) == (INTERRUPTED, b"")


def test_a_reader_of_the_output_may_stop(logdevice: CommandLine, log: str, tmp_path: Path) -> None:
    logdevice.done("logs", "create", log)
    append(logdevice, log, b"x" * 99 + b"\n" + b"many\n" * 100_000, tmp_path)
    printing = logdevice.process("cat", log)
    assert printing.stdout is not None
    assert printing.stdout.readline() == b"x" * 99 + b"\n"
    printing.stdout.close()
    assert printing.wait(PATIENCE_MS / 1000) == BROKEN_PIPE
    assert printing.stderr is not None
    with printing.stderr:
        assert printing.stderr.read() == b""


def test_attributes_are_set_inherited_and_removed(logdevice: CommandLine, log: str) -> None:
    path = f"{log}-directory/inner"
    # Extras are about copysets; chains have none.
    logdevice.done("logs", "create", path, "extras=1", "replication_mode=copyset")
    logdevice.done("logs", "set", f"{log}-directory", "backlog_s=60")
    (shown,) = logdevice.done("logs", "show", path, "--json").objects
    assert (shown["attributes"]["extras"], shown["set_at"]["extras"]) == ("1", path)
    assert (shown["attributes"]["backlog_s"], shown["set_at"]["backlog_s"]) == ("60", f"{log}-directory")
    logdevice.done("logs", "set", path, "extras=")
    assert "extras" not in logdevice.done("logs", "show", path, "--json").objects[0]["set_at"]
    listed = logdevice.done("logs", "list", f"{log}-directory", "--json").objects
    assert [plain["path"] for plain in listed] == [path]
    logdevice.done("logs", "rename", path, f"{path}-new")
    assert logdevice("logs", "show", path).code == 2
    logdevice.done("logs", "rename", f"{path}-new", path)
    logdevice.done("logs", "remove", "--yes", path)
    assert logdevice("logs", "show", path).code == 2


def test_times_and_sizes_are_shown(logdevice: CommandLine, log: str, tmp_path: Path) -> None:
    logdevice.done("logs", "create", log)
    assert logdevice.done("info", log, "--json").objects[0]["is_empty"] is True
    append(logdevice, log, b"one\n", tmp_path)
    (info,) = logdevice.done("info", log, "--json").objects
    assert (info["is_empty"], info["entries_ever"]) == (False, 1)
    long_ago, now = (logdevice.done("find-time", log, time).out.decode() for time in ("1h", "now"))
    assert Lsn.parse(long_ago) < Lsn.parse(now)


def test_status_shows_which_nodes_are_dead_or_hang(
    logdevice: CommandLine, cluster: Cluster, log: str
) -> None:
    logdevice.done("logs", "create", log)
    logdevice.done("kill-node", "2")
    logdevice.done("pause-node", "N3")
    (status,) = logdevice.done("status", "--json").objects
    states = {row["node"]: row["state"] for row in status["nodes"]}
    assert states == {"N1": "alive", "N2": "down", "N3": "paused", "N4": "alive", "N5": "alive"}
    logdevice.done("resume-node", "3")
    # As its own process, because the process that starts a node becomes its parent.
    starting = logdevice.process("start-node", "2")
    assert b"N2 is running" in starting.communicate(timeout=PATIENCE_MS / 1000)[0]
    assert [cluster.state(node) for node in (2, 3)] == [ProcessState.RUNNING] * 2
    assert log in logdevice.done("status").out.decode()
    assert len(logdevice.done("nodes").out.splitlines()) == 6


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["cat", "/no/such/log"], 2, "/no/such/log"),
        (["append", "/no/such/log", "/no/such/file"], 2, "cannot be read"),
        (["logs", "create", "no-slash"], 2, "no-slash"),
        (["logs", "create", "/tests/x", "colour=red"], 2, "no attribute 'colour'"),
        (["cat", "99999999"], 2, "99999999"),
        (["kill-node", "77"], 2, "no node N77"),
    ],
)
def test_a_mistake_is_explained(logdevice: CommandLine, words: list[str], code: int, message: str) -> None:
    said = logdevice(*words)
    assert (said.code, message in said.err) == (code, True), said.err


def test_a_trim_beyond_the_end_is_refused(logdevice: CommandLine, log: str) -> None:
    logdevice.done("logs", "create", log)
    said = logdevice("trim", log, "e999n1")
    assert said.code == 2
    assert "the log ends at" in said.err


def test_an_oversized_line_is_refused_and_the_cluster_lives_on(
    logdevice: CommandLine, log: str, tmp_path: Path
) -> None:
    logdevice.done("logs", "create", log)
    (tmp_path / "large").write_bytes(os.urandom(34_000_000).replace(b"\n", b"x"))
    said = logdevice("append", log, str(tmp_path / "large"))
    assert said.code == 2
    assert "batch_bytes_max allows" in said.err
    append(logdevice, log, b"small\n", tmp_path)
    assert logdevice.done("cat", log).out == b"small\n"


def test_an_address_without_a_node_is_an_error_that_can_be_retried(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["nodes", "--endpoint", "127.0.0.1:1"]) == 3
    assert "127.0.0.1:1" in capfd.readouterr().err


def test_a_port_that_speaks_something_else_is_recognised(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_MS / 1000)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        stranger = threading.Thread(target=answer)
        stranger.start()
        code = main(["nodes", "--endpoint", f"127.0.0.1:{server.getsockname()[1]}"])
        stranger.join()
    assert code in (1, 3)
    assert capfd.readouterr().err.startswith("logdevice: ")


def test_a_cluster_in_the_foreground_ends_with_ctrl_c(tmp_path: Path) -> None:
    up = process("up", "--nodes", "1", "--data", str(tmp_path / "data"), "--json")
    assert up.stdout is not None
    assert b'"endpoint"' in up.stdout.readline()
    cluster = LocalCluster.load(tmp_path / "data")
    assert cluster.state(1) is ProcessState.RUNNING
    up.send_signal(signal.SIGINT)
    up.communicate(timeout=PATIENCE_MS / 1000)
    assert up.returncode == 0
    assert cluster.state(1) is ProcessState.DOWN
