"""Declares commands: name, help text, arguments, and the function to run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logdevice.cli import arguments, target_cluster
from logdevice.cli.output import Output

if TYPE_CHECKING:
    from logdevice.client.blocking import Client

Run = Callable[[argparse.Namespace, Output], int | None]  # the exit code, if it is not always 0
RunWithClient = Callable[["Client", argparse.Namespace, Output], int | None]
# argparse keeps the type of its subparsers to itself.
Commands = Any


def add(
    commands: Commands, name: str, run: RunWithClient, help: str, *, details: str = ""
) -> argparse.ArgumentParser:
    """Declares a command that works on a cluster: `run` gets a connected client."""

    def connected(options: argparse.Namespace, output: Output) -> int | None:
        with target_cluster.connect(options) as client:
            return run(client, options, output)

    parser = add_plain(commands, name, connected, help, details=details)
    target_cluster.add_options(parser)
    return parser


def add_local(
    commands: Commands, name: str, run: Run, help: str, *, details: str = ""
) -> argparse.ArgumentParser:
    """Declares a command that handles the processes of a local cluster."""
    parser = add_plain(commands, name, run, help, details=details)
    target_cluster.add_data_option(parser)
    return parser


def add_plain(
    commands: Commands, name: str, run: Run, help: str, *, details: str = ""
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.{' ' if details else ''}{details}",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="results as JSON, one object per line")
    return parser


def add_group(commands: Commands, name: str, help: str) -> Commands:
    """Declares a group of commands, such as `logdevice logs ...`, and returns where to add them."""
    parser = commands.add_parser(name, help=help, description=f"{help.capitalize()}.")
    return parser.add_subparsers(metavar="COMMAND", required=True)


def add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "log", type=arguments.log, metavar="LOG", help="path of the log, such as /ads/clicks, or its number"
    )


def add_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", type=arguments.node, metavar="NODE", help="number of the node: 3 or N3")


def add_attributes(parser: argparse.ArgumentParser, count: str, help: str) -> None:
    parser.add_argument("attributes", type=arguments.attribute, nargs=count, metavar="NAME=VALUE", help=help)
