"""Starts the Spark driver, asks it to end, or kills it and everything it has started with kill -9.

Spark is several processes: Python, its JVM, and Python again for readers. All of them stay in the session of
the first one, so `kill` kills the whole session: a JVM that lives on could still commit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from logdevice.cli.local.processes import start, wait_until

END_TIMEOUT_MS = 120_000
KILL_TIMEOUT_MS = 10_000
RESTARTS_MAX = 3  # of a driver that ended without being told to, as Spark does if it starts too slowly


class Driver:
    def __init__(self, endpoint: str, lake: Path) -> None:
        self._endpoint, self.lake = endpoint, lake
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = 0

    @property
    def log(self) -> Path:
        return self.lake / "driver.log"

    def start(self) -> None:
        self.lake.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "examples.demo.job", self._endpoint, str(self.lake)]
        self._process = start(command, self.log)

    def check(self) -> None:
        """Restarts the driver if it has ended without being told to, up to RESTARTS_MAX times."""
        if self._process is None or self._process.poll() is None:
            return
        words = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        if self._restarts == RESTARTS_MAX:
            raise RuntimeError("\n".join(["the Spark driver has failed too often:", *words[-15:]]))
        self._restarts += 1
        print(f"          Spark has failed and is started again: {reason(words)}", flush=True)
        self.kill()
        self.start()

    def kill(self) -> int:
        """Kills all its processes with kill -9; returns how many there were."""
        if self._process is None:
            return 0
        session = self._process.pid
        killed = kill_all(session_members(session))
        self._process.wait()
        wait_until(lambda: not session_members(session), KILL_TIMEOUT_MS)
        self._process = None
        return killed

    def stop(self) -> None:
        """SIGTERM: the driver finishes its current batches."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_MS / 1000)
        self.kill()


def reason(words: list[str]) -> str:
    """The last line with an exception if there is one, else the last line."""
    return next((line for line in reversed(words) if "Exception: " in line), words[-1] if words else "?")


def session_members(session: int) -> list[int]:
    """The process ids of a session."""
    listed = subprocess.run(["ps", "-axo", "pid="], capture_output=True, text=True, check=True).stdout
    members = []
    for pid in map(int, listed.split()):
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                members.append(pid)
    return members


def kill_all(pids: Iterable[int]) -> int:
    """Kills each with kill -9; returns how many it killed. A process may have ended since it was listed."""
    killed = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed
