"""`logdevice`: reads the command line, runs one command, and turns errors into messages and exit codes.

0  done                          4  the outcome is unknown: it may or may not have happened
1  failed                        5  the log has lost, or no longer has, what was asked for
2  the call is wrong             130  interrupted
3  not possible now, try again   141  the program that reads the output has stopped

Commands import the client, Arrow and gRPC when they run, so that --help need not wait for them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from logdevice.cli.commands import (
    append,
    backup,
    bench,
    check,
    clusters,
    cuts,
    etl,
    faults,
    logs,
    read,
    rebuild,
    status,
)
from logdevice.cli.output import Output
from logdevice.errors import (
    DataError,
    LogDeviceError,
    OutcomeUnknownError,
    UnavailableError,
    UsageError,
)

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
_EXIT_CODES: Final = ((UsageError, 2), (UnavailableError, 3), (OutcomeUnknownError, 4), (DataError, 5))
_EPILOG: Final = """\
To try it: `logdevice up` in one terminal; in another, in the same directory,

  logdevice logs create /hello
  echo world | logdevice append /hello
  logdevice cat /hello

Each command describes its arguments with --help."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="logdevice",
        description="Replicated, totally ordered logs: run a cluster, append to logs and read them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for group in (clusters, status, logs, append, read, backup, cuts, etl, rebuild, check, faults, bench):
        group.add_commands(commands)
    return top


def exit_code(error: LogDeviceError) -> int:
    """The exit code for an error: 1, unless its kind has another."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. `arguments` are by default those of the process."""
    options = parser().parse_args(arguments)
    output = Output.standard(is_json=options.json)
    try:
        code: int | None = options.run(options, output)
        output.flush()
        return code or 0
    except LogDeviceError as error:
        output.flush()
        report(error, output)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Otherwise Python would report the same error again when it closes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def report(error: LogDeviceError, output: Output) -> None:
    output.remark(f"logdevice: {error}")
    output.json({"error": type(error).__name__, "code": int(error.code), "message": error.message})
