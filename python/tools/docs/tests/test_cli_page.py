"""What docs/cli.md promises: every command is on it once, and nothing that is not a command."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from logdevice.cli.main import parser
from tools.docs.generate import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(top: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """Every command that runs something: `logdevice cat`, `logdevice logs create`."""
    groups = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    for group in groups:
        for word, inner in group.choices.items():
            yield from commands(inner, f"{name} {word}")
    if not groups:
        yield name


def commands_of(page: str) -> list[str]:
    """The commands in the first column of the page's tables, without their arguments."""
    return re.findall(r"^\| `(logdevice(?: [a-z][a-z-]*)+)", page, re.MULTILINE)


def test_the_page_has_every_command_once_and_no_other() -> None:
    assert sorted(commands_of(PAGE)) == sorted(commands(parser(), "logdevice"))


def test_the_arguments_of_a_command_are_no_part_of_its_name() -> None:
    assert commands_of("| `logdevice logs create PATH [NAME=VALUE]` | ... |") == ["logdevice logs create"]
    assert commands_of("| `logdevice etl --logs LOG` | ... |") == ["logdevice etl"]


def test_the_page_has_every_exit_code_of_the_command() -> None:
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == ["0", "1", "2", "3", "4", "5", "130", "141"]
