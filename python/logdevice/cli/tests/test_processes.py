"""Processes are found by id and word, signalled and awaited; other processes are never touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdevice.cli.local import processes
from logdevice.cli.local.processes import LocalProcess, ProcessState, start, wait_until

TIMEOUT_MS = 10_000
SLEEPER = "import time; time.sleep(600)"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    child = start([sys.executable, "-c", SLEEPER, "my-word"], tmp_path / "log")
    yield child
    child.kill()
    child.wait()


@pytest.fixture(params=["proc", "ps"])
def looking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "ps":
        monkeypatch.setattr(processes, "_PROC", Path("/nonexistent"))


@pytest.mark.usefixtures("looking")
def test_a_process_runs_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    process = LocalProcess(sleeper.pid, "my-word")
    assert process.state is ProcessState.RUNNING
    assert process.signal(signal.SIGKILL)
    assert process.wait_for(ProcessState.DOWN, TIMEOUT_MS)


@pytest.mark.usefixtures("looking")
def test_a_process_that_ended_and_was_not_awaited_is_down(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert LocalProcess(sleeper.pid, "my-word").state is ProcessState.DOWN


@pytest.mark.usefixtures("looking")
def test_a_paused_process_runs_again_after_sigcont(sleeper: subprocess.Popen[bytes]) -> None:
    process = LocalProcess(sleeper.pid, "my-word")
    process.signal(signal.SIGSTOP)
    assert process.wait_for(ProcessState.PAUSED, TIMEOUT_MS)
    process.signal(signal.SIGCONT)
    assert process.wait_for(ProcessState.RUNNING, TIMEOUT_MS)


@pytest.mark.usefixtures("looking")
def test_another_process_with_the_same_id_is_not_touched(sleeper: subprocess.Popen[bytes]) -> None:
    stranger = LocalProcess(sleeper.pid, "another-word")
    assert stranger.state is ProcessState.DOWN
    assert not stranger.signal(signal.SIGKILL)
    assert sleeper.poll() is None


@pytest.mark.usefixtures("looking")
def test_an_id_without_a_process_is_down() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert LocalProcess(child.pid, "").state is ProcessState.DOWN


def test_the_output_of_processes_is_appended_to_the_log(tmp_path: Path) -> None:
    for word in ("one", "two"):
        start([sys.executable, "-c", f"print('{word}')"], tmp_path / "log").wait()
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_waiting_ends_when_time_is_up() -> None:
    assert not wait_until(lambda: False, 1)


@pytest.mark.parametrize(
    ("looks", "state"),
    [(("R", ""), ProcessState.RUNNING), (("Z", ""), ProcessState.DOWN), (("", ""), ProcessState.DOWN)],
)
def test_a_process_that_replaces_its_program_is_not_down(
    looks: tuple[str, str], state: ProcessState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment it has no command line. If it counted as down, it would be started a second time."""
    monkeypatch.setattr(processes, "_inspect", lambda pid: looks)
    assert LocalProcess(1, "word").state is state
