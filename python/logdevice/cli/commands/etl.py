"""`logdevice etl`: copies logs into a Delta table, every entry exactly once.

Runs Spark inside this command, or on the cluster that --master names. No other command needs pyspark, so it
is imported when the command runs. If it is missing, the error says what to install.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from logdevice.cli import arguments, declaring
from logdevice.cli.output import Output, counted
from logdevice.cli.target_cluster import add_options, find
from logdevice.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from pyspark_logdevice.etl import Etl, EtlOptions

MASTER_DEFAULT: Final = "local[*]"
EVERY_DEFAULT: Final = "5 seconds"
_DETAILS: Final = """With --schema, payloads are parsed as JSON; without it they are kept as bytes.
Entries that do not fit the schema go to a table of dead letters. Parts of a log that are lost become rows of
a table of gaps. The first run begins with the oldest record; each later run continues from the checkpoint,
however the previous one ended. Ctrl-C ends the command after the current batch."""


def add_commands(group: declaring.Commands) -> None:
    parser = declaring.add_plain(
        group, "etl", run_etl, "copy logs into a Delta table, every entry exactly once", details=_DETAILS
    )
    add_options(parser)
    parser.add_argument(
        "--logs", required=True, metavar="LOG,LOG", help="paths or numbers of the logs, such as /ads/clicks"
    )
    parser.add_argument(
        "--to", required=True, metavar="DIR|TABLE", help="a directory (./clicks, s3://...) or a table name"
    )
    parser.add_argument(
        "--schema", metavar="COLUMNS", help="columns of the JSON, such as: user string, at timestamp"
    )
    parser.add_argument(
        "--partition-by",
        metavar="COLUMN,COLUMN",
        default="",
        help="columns of the schema, log_path, or log_date (the day of the append)",
    )
    parser.add_argument(
        "--dead-letters", metavar="DIR|TABLE", help="table of dead letters (default TO_dead_letters)"
    )
    parser.add_argument("--gaps", metavar="DIR|TABLE", help="table of gaps (default TO_gaps)")
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="where positions are kept (default TO/_checkpoint if TO is a directory)",
    )
    parser.add_argument("--once", action="store_true", help="copy what is in the logs now, then end")
    parser.add_argument(
        "--every",
        metavar="TIME",
        default=EVERY_DEFAULT,
        help=f"how often to copy a batch (default {EVERY_DEFAULT})",
    )
    _add_spark_options(parser)


def _add_spark_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--option",
        type=arguments.attribute,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the source, such as startingTimestamp=2026-01-31T12:00:00Z (docs/spark.md)",
    )
    group.add_argument(
        "--conf",
        type=arguments.attribute,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of Spark, such as spark.driver.memory=4g",
    )
    group.add_argument(
        "--master", default=MASTER_DEFAULT, help=f"where Spark runs (default {MASTER_DEFAULT})"
    )
    group.add_argument("--spark-log", metavar="FILE", help="file for what Spark writes to standard error")


def run_etl(options: argparse.Namespace, output: Output) -> None:
    try:
        from pyspark_logdevice import delta, etl, etl_run, sessions

        delta.package()
    except ImportError as problem:
        raise InvalidArgumentError(
            f"etl needs Spark and Delta ({problem}); install them: pip install 'logdevice-spark[spark,delta]'"
        ) from None
    wanted = etl_options(options)
    output.remark("starting Spark")
    with sessions.session(options.master, dict(options.conf), options.spark_log) as spark:
        work = etl.Etl(spark, wanted)
        with stopped_by_signals(work):
            output.remark(f"copying {options.logs} to {options.to}")
            etl_run.run(work, lambda progress: _show(progress, work, output))
    _sum_up(work, output)


@contextmanager
def stopped_by_signals(work: Etl) -> Iterator[None]:
    """While the block runs, SIGINT and SIGTERM end the work after its batch. Spark's own handlers would
    interrupt the batch.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: work.stop_after_batch()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def etl_options(options: argparse.Namespace) -> EtlOptions:
    """The command line as options of the query."""
    from pyspark_logdevice.etl import EtlOptions, Target

    to = Target(options.to)
    if options.checkpoint is None and not to.is_directory:
        raise InvalidArgumentError(
            f"--checkpoint is missing: {options.to!r} is the name of a table, so give a directory for the "
            "positions (a --to with a slash, such as ./clicks, is a directory and needs no --checkpoint)"
        )
    source = {"endpoint": find(options).endpoint, "logs": options.logs, "startingOffsets": "earliest"}
    if any(name.lower() == "startingtimestamp" for name, _ in options.option):
        del source["startingOffsets"]
    return EtlOptions(
        source={**source, **dict(options.option)},
        to=to,
        checkpoint=options.checkpoint or f"{options.to.rstrip('/')}/_checkpoint",
        schema=options.schema,
        partition_by=tuple(name.strip() for name in options.partition_by.split(",") if name.strip()),
        dead_letters=Target(options.dead_letters) if options.dead_letters else None,
        gaps=Target(options.gaps) if options.gaps else None,
        once=options.once,
        every=options.every,
    )


def _show(progress: StreamingQueryProgress, work: Etl, output: Output) -> None:
    from pyspark_logdevice.listener import of_progress

    waiting = "".join(f", {source.records_behind} waiting" for source in of_progress(progress))
    output.remark(
        f"batch {progress.batchId}: {counted(progress.numInputRows, 'row', 'rows')}, "
        f"{progress.processedRowsPerSecond:.0f}/s, {work.written.rows} written so far{waiting}"
    )


def _sum_up(work: Etl, output: Output) -> None:
    written = work.written
    how = "stopped, the next run continues from here" if work.is_stopping else "done"
    output.result(
        f"{how}: {counted(written.rows, 'row', 'rows')}, "
        f"{counted(written.dead_letters, 'dead letter', 'dead letters')}, "
        f"{counted(written.gaps, 'gap', 'gaps')} in {work.options.to.name}",
        {
            "to": work.options.to.name,
            "rows": written.rows,
            "dead_letters": written.dead_letters,
            "gaps": written.gaps,
            "stopped": work.is_stopping,
        },
    )
