"""The command line as a whole: every command has a help text, and every failure has an exit code."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdevice.cli import target_cluster
from logdevice.cli.main import exit_code, main, parser
from logdevice.errors import (
    DataLossError,
    InvalidArgumentError,
    LogDeviceError,
    NoSequencerError,
    OutcomeUnknownError,
)


def all_commands(
    top: argparse.ArgumentParser, name: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    inner = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield name, top
    for action in inner:
        for word, command in action.choices.items():
            yield from all_commands(command, f"{name} {word}".strip())


COMMANDS = dict(all_commands(parser()))


def test_all_commands_are_there() -> None:
    assert set(COMMANDS) >= {
        *("up", "down", "status", "nodes", "append", "cat", "tail", "info", "trim", "find-time"),
        *("logs list", "logs create", "logs show", "logs set", "logs remove", "logs lineage"),
        *("backup", "restore"),
        *("kill-node", "stop-node", "start-node", "pause-node", "resume-node"),
    }


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_help_text_and_the_json_option(name: str) -> None:
    command = COMMANDS[name]
    assert command.description
    assert command.description.endswith(".")
    for action in command._actions:
        assert action.help, f"{name}: {action.dest} has no help"
    assert "--json" in command.format_help()


def test_help_does_not_import_the_libraries_of_the_client() -> None:
    """Importing them takes most of a second, so a command imports them when it runs."""
    program = """
import sys
from logdevice.cli.main import parser
parser().format_help()
print(sorted({"pyarrow", "numpy", "grpc", "pyspark"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgumentError("x"), 2),
        (NoSequencerError("x"), 3),
        (OutcomeUnknownError("x"), 4),
        (DataLossError("x"), 5),
        (LogDeviceError("x"), 1),
    ],
)
def test_an_exit_code_says_what_kind_of_failure_it_was(error: LogDeviceError, code: int) -> None:
    assert exit_code(error) == code


def test_a_wrong_call_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["cat", "/log", "--from", "yesterday"])
    assert end.value.code == 2
    assert "--from: must be an LSN, such as e5n3" in capsys.readouterr().err


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(target_cluster.ENDPOINT_VARIABLE, raising=False)


@pytest.mark.usefixtures("nowhere")
def test_without_a_cluster_a_command_says_how_to_name_one(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "/log"]) == 2
    message = capfd.readouterr().err
    assert all(
        way in message for way in ("--endpoint", "--data", target_cluster.ENDPOINT_VARIABLE, "logdevice up")
    )


@pytest.mark.usefixtures("nowhere")
def test_an_error_gives_advice_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["kill-node", "1"]) == 2
    message = capfd.readouterr().err
    assert re.search(r"start one with: logdevice up --data \S+/logdevice-data\.\n$", message)


@pytest.mark.usefixtures("nowhere")
def test_with_json_a_failure_is_an_object_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["kill-node", "1", "--json"]) == 2
    said = json.loads(capfd.readouterr().out)
    assert said["error"] == "InvalidArgumentError"
    assert said["code"] == 102


@pytest.mark.usefixtures("nowhere")
def test_more_copies_than_nodes_are_refused_before_a_file_is_written(tmp_path: Path) -> None:
    assert main(["up", "--nodes", "2", "--replication", "3"]) == 2
    assert list(tmp_path.iterdir()) == []
