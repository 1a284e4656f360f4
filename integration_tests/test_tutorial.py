"""docs/tutorial.md, run by a shell in an empty directory: every command prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
COMMAND_TIMEOUT_S = 90


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the page, each with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(lines: list[str]) -> str:
    """A regular expression for what a command prints. On the page, "…" stands for any value, and a line "…"
    for any number of lines. Columns may be wider than on the page.
    """
    return "".join("(?:.*\n)*?" if line == "…" else f"{_of_line(line)}\n" for line in lines)


def _of_line(line: str) -> str:
    return r"[ \t]+".join(re.escape(word).replace("…", ".*?") for word in line.split())


class Shell:
    """Runs commands one after the other in one directory, as a user of the tutorial does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said: list[tuple[str, str]] = []  # commands and their output
        # The environment after `make setup` and the export of PATH.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path} | {"LOGDEVICE_ENDPOINT": ""}

    def run(self, command: str) -> str:
        """Runs it and returns what it prints, as a terminal shows it."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        self.said.append((command, done.stdout))
        return done.stdout + done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    if (tmp_path / "logdevice-data").exists():
        shell.run("logdevice down")


def test_the_tutorial_does_what_it_says(shell: Shell) -> None:
    for command, lines in steps():
        printed = shell.run(command)
        assert re.fullmatch(pattern(lines), re.sub(r"^[ \t]+|[ \t]+$", "", printed, flags=re.M)), (
            f"{command} prints\n{printed}"
        )
    assert ("logdevice cat /web/clicks | wc -l", "1002\n") in shell.said
    assert ("logdevice cat /web/clicks", "") in shell.said
    lasts = [said for command, said in shell.said if command == "logdevice cat /web/clicks | tail -n 1"]
    assert lasts == ["after the kill\n", "while one is dead and one hangs\n"]
    assert "click 1000" in dict(shell.said)["logdevice tail -n 2 --json /web/clicks"]
    assert list(shell.directory.iterdir()) == []
