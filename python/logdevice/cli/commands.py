"""How a command is declared: its name, its help, what it takes and what it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from logdevice.cli import arguments, finding
from logdevice.cli.output import Output

Run = Callable[[argparse.Namespace, Output], int | None]  # the exit code, if it is not always 0
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


def add_group(commands: Commands, name: str, help: str) -> Commands:
    """Commands of commands, such as `logdevice logs create`."""
    parser = commands.add_parser(name, help=help, description=f"{help.capitalize()}.")
    return parser.add_subparsers(metavar="COMMAND", required=True)


def add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "log", type=arguments.log, metavar="LOG", help="its path, such as /ads/clicks, or its number"
    )


def add_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", type=arguments.node, metavar="NODE", help="its number: 3, or N3")


def add_attributes(parser: argparse.ArgumentParser, count: str, help: str) -> None:
    parser.add_argument("attributes", type=arguments.attribute, nargs=count, metavar="NAME=VALUE", help=help)
