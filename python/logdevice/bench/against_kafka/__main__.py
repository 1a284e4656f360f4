"""Measures LogDevice against Kafka, on this machine.

    python -m logdevice.bench.against_kafka run [--quick] [--only scan,etl]   measures, then reports
    python -m logdevice.bench.against_kafka report                            reports what was measured last

Both write docs/benchmarks.md and its picture, from build/bench/results.json alone. A quick run, or a run of
only some workloads, prints its results and does not write the documents.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from pathlib import Path
from typing import Final

from logdevice.bench.against_kafka import report
from logdevice.bench.against_kafka.results import Results
from logdevice.bench.against_kafka.runner import BenchRun, recover
from logdevice.bench.against_kafka.workload import FULL, QUICK, Workload

ROOT: Final = Path(__file__).resolve().parents[4]
BUILD: Final = ROOT / "build" / "bench"
RESULTS: Final = BUILD / "results.json"
QUICK_RESULTS: Final = BUILD / "quick.json"
LIMIT_S: Final = 600.0
QUICK_LIMIT_S: Final = 150.0
# In the order in which they run, with the seconds that each took on two cores.
WORKLOADS: Final = {
    "scan": 240.0,
    "scan_tcp": 60.0,
    "many_logs": 60.0,
    "catch_up": 100.0,
    "etl": 120.0,
    "trickle": 150.0,
    "appends": 150.0,
    "growth": 100.0,
    "idle": 60.0,
    "limits": 90.0,
    "slow_node": 90.0,
    "failure": 200.0,
}
QUICK_WORKLOADS: Final = ("scan", "appends")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m logdevice.bench.against_kafka",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, then report")
    run.add_argument("--quick", action="store_true", help="small sizes and few workloads; prints ratios")
    run.add_argument("--only", type=_names, default=(), metavar="A,B", help="run only these workloads")
    commands.add_parser("report", help="report what was measured last")
    options = parser.parse_args()
    if options.command == "report":
        report.write(Results.load(RESULTS), ROOT / "docs")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process is left running
    return _run(options.only, is_quick=options.quick)


def _run(only: tuple[str, ...], *, is_quick: bool) -> int:
    path = QUICK_RESULTS if is_quick or only else RESULTS
    names = only or (QUICK_WORKLOADS if is_quick else tuple(WORKLOADS))
    measured = BenchRun(
        workloads=[_workload(name) for name in names],
        sizes=QUICK if is_quick else FULL,
        limit_s=QUICK_LIMIT_S if is_quick else LIMIT_S,
        expected_s={name: seconds / (5 if is_quick else 1) for name, seconds in WORKLOADS.items()},
        say=lambda words: print(words, flush=True),
        recover=recover,
    ).run(BUILD / "stand", keep=lambda results: results.save(path))
    if not is_quick and not only:
        report.write(measured, ROOT / "docs")
    print(report.summary(measured, has_targets=not is_quick))
    return 1 if measured.failures else 0


def _workload(name: str) -> Workload:
    found: Workload = importlib.import_module(f"logdevice.bench.against_kafka.{name}").WORKLOAD
    return found


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in WORKLOADS:
            raise argparse.ArgumentTypeError(f"no workload {name!r}; there are: {', '.join(WORKLOADS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
