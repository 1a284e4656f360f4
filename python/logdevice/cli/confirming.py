"""Asks before a command does something that cannot be undone, such as giving up data."""

from __future__ import annotations

import argparse
import sys

from logdevice.errors import InvalidArgumentError


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def confirm(options: argparse.Namespace, question: str) -> None:
    """Returns if a person at the terminal answers yes, or if --yes was given. Otherwise raises an error."""
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgumentError(f"{question} There is no terminal to ask on: give --yes to confirm")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidArgumentError("not confirmed, nothing was changed")
