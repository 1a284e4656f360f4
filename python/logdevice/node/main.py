"""`logdeviced`: one node as a process.

It runs until SIGTERM or SIGINT. The first signal lets it finish the work it has begun; a second signal ends
it at once. Exit codes: 0 stopped by a signal, 2 wrong configuration or command line, 3 could not start, 1 a
bug in LogDevice.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from logdevice.errors import InvalidSettingError, LogDeviceError, UsageError
from logdevice.node import logging_setup
from logdevice.node.assembly import Node
from logdevice.node.config import COMPONENTS, NodeConfig, config_from, read_file
from logdevice.settings.declarations import declared, no_setting
from logdevice.settings.retired import RETIRED
from logdevice.wire.transport import tune_malloc

EXIT_OK, EXIT_BUG, EXIT_USAGE, EXIT_START = 0, 1, 2, 3

_logger = logging.getLogger(__name__)


def parser() -> argparse.ArgumentParser:
    """The command line. Every setting is a flag; a flag that is not given is taken from the file."""
    made = argparse.ArgumentParser(prog="logdeviced", description="A node of a LogDevice cluster.")
    made.add_argument("--config", type=Path, required=True, help="The node's configuration, JSON or TOML.")
    made.add_argument("--log-file", type=Path, help="Where to log instead of stderr.")
    made.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="Default: info."
    )
    for component in filter(declared, COMPONENTS.values()):
        group = made.add_argument_group(str(component.__doc__))
        for name, knob in declared(component).items():
            # argparse formats help with %, so a percent sign in a text has to be doubled.
            text = f"{knob.text} ({knob.kind.allowed}; {knob.shown_default} by default)".replace("%", "%%")
            group.add_argument("--" + name.replace("_", "-"), metavar="VALUE", help=text)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    if sys.flags.optimize:
        # The machines assert what they rely on. Without assertions a bug would go unnoticed.
        sys.stderr.write("logdeviced does not run under python -O\n")
        return EXIT_USAGE
    try:
        given = parsed(arguments)
        logging_setup.configure(given.log_level, given.log_file)
        config = config_from(read_file(given.config), given_settings(given))
    except UsageError as error:
        sys.stderr.write(f"logdeviced: {error}\n")
        return EXIT_USAGE
    tune_malloc()
    return asyncio.run(run(config))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says. InvalidSettingError for a retired setting: it says what became of it."""
    program = parser()
    given, unknown = program.parse_known_args(arguments)
    for word in unknown:
        name = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if word.startswith("--") and name in RETIRED:
            raise InvalidSettingError(no_setting(name, ()))
    if unknown:
        program.error(f"unrecognized arguments: {' '.join(unknown)}")
    return given


def given_settings(given: argparse.Namespace) -> dict[str, str]:
    names = [name for component in COMPONENTS.values() for name in declared(component)]
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


async def run(config: NodeConfig) -> int:
    node = Node(config)
    try:
        await node.start()
    except LogDeviceError as error:
        _logger.error("the node could not start: %s", error)
        sys.stderr.write(f"logdeviced: {error}\n")
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_START
    # Objects made while modules were imported live as long as the process. Without the freeze, the garbage
    # collector would now and then visit them all, and the node would not answer for some 20 ms.
    gc.collect()
    gc.freeze()
    await _asked_to_stop()
    _logger.info("%s stops", node.id)
    stopping = asyncio.create_task(node.stop())
    again = asyncio.create_task(_asked_to_stop())
    await asyncio.wait({stopping, again}, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if stopping.done():
        stopping.result()
    _logger.info("%s has stopped", node.id)
    return EXIT_OK


async def _asked_to_stop() -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    await asked.wait()
