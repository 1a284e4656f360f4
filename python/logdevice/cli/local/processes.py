"""Processes of this machine, by number: started in the background, looked at, signalled, waited for.

A number alone proves nothing, because the system gives it out again. So a process is named by its
number and by a word that must be on its command line; whatever else has that number is not ours and is
never touched. Nothing here is kept: everything is asked of the system each time.
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
_POLL_SHARE: Final = 0.05  # of the time that was waited already
_BIRTH_TIMEOUT_MS: Final = 5_000


class ProcessState(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class LocalProcess:
    """One process: its number, and a word of its command line that no other process has."""

    pid: int
    word: str

    @property
    def state(self) -> ProcessState:
        letter, command = _inspect(self.pid)
        # A process that ended and was not waited for is still listed, as Z, without a command line. One that
        # is alive and has none is just replacing its program.
        if letter in ("", "Z", "X") or (command and self.word not in command):
            return ProcessState.DOWN
        return ProcessState.PAUSED if letter in ("T", "t") else ProcessState.RUNNING

    def signal(self, number: signal.Signals) -> bool:
        """Whether there was such a process to send it to."""
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
    """Runs in a session of its own, so that Ctrl-C in the terminal reaches whoever started it first."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    # For a moment a new process has no command line yet, and would be taken for somebody else's.
    wait_until(lambda: child.poll() is not None or bool(_inspect(child.pid)[1]), _BIRTH_TIMEOUT_MS)
    return child


def wait_until(is_so: Callable[[], bool], timeout_ms: int) -> bool:
    """Whether it became so in time."""
    begin = time.monotonic()
    while not is_so():
        waited_s = time.monotonic() - begin
        if waited_s >= timeout_ms / 1000:
            return False
        # To look may cost a processor that what is waited for could use: less often the longer it takes.
        time.sleep(min(max(_POLL_S, waited_s * _POLL_SHARE), _POLL_S_MAX))
    return True


def _inspect(pid: int) -> tuple[str, str]:
    """The state letter and the command line of a process; both empty if there is none."""
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
    # Where there is no command line, ps shows the name of the process in brackets.
    return letter[:1], "" if rest.startswith("[") else rest
