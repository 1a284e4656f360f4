"""Asks before a command does what cannot be undone: data is given up, or a history ends."""

from __future__ import annotations

import argparse
import sys

from logdevice.errors import InvalidArgumentError


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def confirm(options: argparse.Namespace, question: str) -> None:
    """Goes on if a person at the terminal agrees, or the command was given --yes."""
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgumentError(f"{question}: say --yes if that is meant")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidArgumentError("nothing was changed")
