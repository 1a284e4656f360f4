"""`logdevice check`: reads all copies of a log and reports records with too few, wrong or different ones."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from logdevice.cli import arguments, declaring
from logdevice.cli.output import Output, counted
from logdevice.cli.progress import ProgressLine

if TYPE_CHECKING:
    from logdevice.client.admin.replication_check import CheckReport
    from logdevice.client.blocking import Client

DAMAGED = 5  # the exit code, as when `cat` or `tail` finds records missing


def add_commands(group: declaring.Commands) -> None:
    check = declaring.add(
        group,
        "check",
        run_check,
        "read all copies of a log and report records with too few, wrong or different ones",
        details="Exits with code 5 if there are any.",
    )
    declaring.add_log(check)
    check.add_argument(
        "--show",
        type=arguments.count,
        metavar="COUNT",
        default=20,
        help="how many findings to show (default 20)",
    )


def run_check(client: Client, options: argparse.Namespace, output: Output) -> int:
    from logdevice.client.admin.replication_check import Checker

    engine = client.engine()

    async def check() -> CheckReport:
        progress = ProgressLine(output)
        async for report in Checker(engine.client, options.log).run():
            progress.show(
                f"{counted(report.records, 'record', 'records')}, "
                f"{counted(len(report.findings), 'finding', 'findings')}, at {report.end}"
            )
        progress.end()
        return report

    report = engine.loop.run(check())
    show(report, options.show, output)
    return 0 if report.is_clean else DAMAGED


def show(report: CheckReport, findings_max: int, output: Output) -> None:
    rows = [
        {"lsn": str(finding.lsn), "problem": finding.problem.value, "details": finding.details}
        for finding in report.findings[:findings_max]
    ]
    output.json(
        {
            "records": report.records,
            "copies": report.copies,
            "findings": len(report.findings),
            "silent": [int(node) for node in report.silent],
            "first_findings": rows,
        }
    )
    if rows:
        output.table(rows, ("lsn", "problem", "details"))
    if len(report.findings) > len(rows):
        output.text(f"and {len(report.findings) - len(rows)} more")
    if report.silent:
        output.remark(f"not checked, because they did not answer: {', '.join(map(str, report.silent))}")
    output.text(
        f"{counted(report.records, 'record', 'records')} in {counted(report.copies, 'copy', 'copies')}: "
        f"{counted(len(report.findings), 'finding', 'findings') if report.findings else 'no findings'}"
    )
