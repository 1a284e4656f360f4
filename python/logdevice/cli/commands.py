"""How a command is declared: its name, its help, what it takes and what it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from logdevice.cli import finding
from logdevice.cli.output import Output

Run = Callable[[argparse.Namespace, Output], int]
# argparse keeps the type of its subparsers to itself.
Commands = Any


def add(
    commands: Commands, name: str, run: Run, help: str, *, details: str = "", is_local: bool = False
) -> argparse.ArgumentParser:
    """A command; with `is_local` one that handles the processes of a local cluster."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.{' ' if details else ''}{details}",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="results as JSON, one object per line")
    if is_local:
        finding.add_data_option(parser)
    else:
        finding.add_options(parser)
    return parser
