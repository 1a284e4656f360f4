"""Starts processes in the background, and inspects, signals and awaits them by their process id.

An id alone proves nothing, because the system reuses ids. So a process is identified by its id and by a word
that must be on its command line. Any other process with that id is never touched. Nothing is cached: every
call asks the system.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_POLL_S: Final = 0.01
_POLL_S_MAX: Final = 0.1
_POLL_SHARE: Final = 0.05  # of the time waited so far
_BIRTH_TIMEOUT_MS: Final = 5_000


class ProcessState(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class LocalProcess:
    """One process: its id, and a word of its command line that no other process has."""

    pid: int
    word: str

    @property
    def state(self) -> ProcessState:
        letter, command = _inspect(self.pid)
        # A process that has ended and was not awaited is still listed, as Z, without a command line. A live
        # process without a command line is just replacing its program.
        if letter in ("", "Z", "X") or (command and self.word not in command):
            return ProcessState.DOWN
        return ProcessState.PAUSED if letter in ("T", "t") else ProcessState.RUNNING

    def signal(self, number: signal.Signals) -> bool:
        """Sends a signal; returns whether the process was there to receive it."""
        if self.state is ProcessState.DOWN:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait_for(self, wanted: ProcessState, timeout_ms: int) -> bool:
        return wait_until(lambda: self.state is wanted, timeout_ms)


def start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts a process whose output is appended to `log`.

    It runs in its own session, so that Ctrl-C in the terminal reaches only the process that started it.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    # For a moment a new process has no command line yet, and would be taken for a foreign one.
    wait_until(lambda: child.poll() is not None or bool(_inspect(child.pid)[1]), _BIRTH_TIMEOUT_MS)
    return child


def wait_until(is_so: Callable[[], bool], timeout_ms: int) -> bool:
    """Waits until `is_so` returns true; returns whether it did so in time."""
    begin = time.monotonic()
    while not is_so():
        waited_s = time.monotonic() - begin
        if waited_s >= timeout_ms / 1000:
            return False
        # A check uses a processor that the awaited work may need: check less often the longer it takes.
        time.sleep(min(max(_POLL_S, waited_s * _POLL_SHARE), _POLL_S_MAX))
    return True


def _inspect(pid: int) -> tuple[str, str]:
    """The state letter and the command line of a process; both are empty if there is no such process."""
    return _inspect_proc(pid) if _PROC.is_dir() else _ask_ps(pid)


def _inspect_proc(pid: int) -> tuple[str, str]:
    try:
        # "4711 (name, which may hold anything) S 1 ..."
        letter = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        command = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
    except (FileNotFoundError, ProcessLookupError):
        return "", ""
    return letter, os.fsdecode(command)


def _ask_ps(pid: int) -> tuple[str, str]:
    command = ["ps", "-o", "state=", "-o", "command=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    letter, _, rest = answer.strip().partition(" ")
    # For a process without a command line, ps shows its name in brackets.
    return letter[:1], "" if rest.startswith("[") else rest
