"""Breaks one rule of the protocol at a time and shows who notices: a unit test or the simulator.

Each mutant is a small textual change of one protocol file, applied to a temporary copy of `python/`,
never to the work tree. First the unit tests of its part run (read path, write path); if they stay
green, some hundred simulated runs of that part. A mutant that nobody notices means that a rule is not
guarded, or not needed.

    python python/tools/mutants.py [--only WORD] [--simulator-only] [--seeds 300] [--jobs 2]

The last line is `N mutants, N noticed`; the exit code is 1 if any was not noticed. A mutant whose text
is not found exactly once is an error: the table must follow the code.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.chain_mutant_table import CHAIN_MUTANTS
from tools.cut_mutant_table import CUT_MUTANTS
from tools.keyed_mutant_table import KEYED_MUTANTS
from tools.lineage_mutant_table import LINEAGE_MUTANTS
from tools.mutant_table import MUTANTS, Mutant, Part
from tools.rebuild_mutant_table import REBUILD_MUTANTS
from tools.write_mutant_table import WRITE_MUTANTS
from tools.writer_mutant_table import WRITER_MUTANTS

PYTHON = Path(__file__).resolve().parents[1]
UNIT_TESTS = "logdevice/protocol/tests"
# Only the tests of the part that a mutant breaks are worth the time.
READ_PATH_TESTS = (
    "test_copy_selection*",
    "test_quorum*",
    "test_server_*",
    "test_connections*",
    "test_epochs*",
    "test_gaps*",
    "test_read_stream*",
    "test_detector*",
    "test_scd*",
    "test_scenarios*",
    "test_senders*",
    "test_window*",
)
WRITE_PATH_TESTS = (
    "test_appender*",
    "test_copysets*",
    "test_digest*",
    "test_epoch_state*",
    "test_forward_table*",
    "test_log_*",
    "test_mutation*",
    "test_purge*",
    "test_received_table*",
    "test_recovery_*",
    "test_sequencer*",
)
REBUILDING_TESTS = ("test_node_status*", "test_rebuilding*", "test_copy_budget*", "test_log_*")
TESTS = {
    Part.READ_PATH: READ_PATH_TESTS,
    Part.WRITE_PATH: WRITE_PATH_TESTS,
    Part.REBUILDING: REBUILDING_TESTS,
    Part.CHAIN: ("test_chain_*",),
    Part.LINEAGE: ("test_lineage*", "test_recovery_lineage*"),
    Part.CUTS: ("test_hybrid_clock*", "test_barriers*", "test_cutting*"),
}
SIMULATIONS = {
    Part.READ_PATH: "from logdevice.simulation.run import simulate",
    Part.WRITE_PATH: "from logdevice.simulation.whole.run import simulate_cluster as simulate",
    Part.REBUILDING: "from logdevice.simulation.rebuilding.run import simulate_rebuilding as simulate",
    Part.CHAIN: "from logdevice.simulation.chain.run import simulate_chain as simulate",
    Part.LINEAGE: "from logdevice.simulation.histories.run import simulate_histories as simulate",
    Part.CUTS: "from logdevice.protocol.tests.cut_world import simulate_cut as simulate",
}
# No deadlines: on a busy machine a slow example would pass for a mutant that was noticed.
PROFILE = ("--hypothesis-profile=ci", "--hypothesis-seed=0")
NOT_NOTICED = "NOT NOTICED"
ALL = [
    *MUTANTS,
    *REBUILD_MUTANTS,
    *WRITE_MUTANTS,
    *WRITER_MUTANTS,
    *CHAIN_MUTANTS,
    *LINEAGE_MUTANTS,
    *KEYED_MUTANTS,
    *CUT_MUTANTS,
]


@dataclass(frozen=True, slots=True)
class Verdict:
    mutant: Mutant
    noticed_by: str

    @property
    def is_noticed(self) -> bool:
        return self.noticed_by != NOT_NOTICED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Breaks rules on purpose and shows who notices.")
    parser.add_argument("--only", default="", help="only mutants whose rule or text contains this word")
    parser.add_argument("--simulator-only", action="store_true", help="do not run the unit tests")
    parser.add_argument("--seeds", type=int, default=300, help="simulated runs for each mutant")
    parser.add_argument("--jobs", type=int, default=2, help="mutants examined at the same time")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in ALL if options.only in f"{mutant.rule} {mutant.why} {mutant.file}"]
    problems = list(misfits(chosen))
    for problem in problems:
        print(problem)
    if problems:
        return 1

    def examine_one(mutant: Mutant) -> Verdict:
        return examine(mutant, seeds=options.seeds, with_tests=not options.simulator_only)

    for part in sorted({mutant.part for mutant in chosen}, key=lambda part: part.value):
        unbroken = examine_one(Mutant("-", "nothing is broken", "logdevice/__init__.py", "", "", part))
        if unbroken.is_noticed:
            print(f"without any mutant there is already a failure: {unbroken.noticed_by}")
            return 1
    noticed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(examine_one, chosen):
            noticed += verdict.is_noticed
            print(f"{verdict.mutant.rule:<4} {verdict.mutant.why:<68} {verdict.noticed_by}", flush=True)
    print(f"{len(chosen)} mutants, {noticed} noticed")
    return 0 if noticed == len(chosen) else 1


def misfits(mutants: list[Mutant]) -> Iterator[str]:
    """Mutants whose text is not in its file exactly once."""
    for mutant in mutants:
        count = (PYTHON / mutant.file).read_text().count(mutant.old)
        if count != 1:
            yield f"{mutant.rule} {mutant.why}: found {count} times in {mutant.file}:\n{mutant.old}"


def examine(mutant: Mutant, *, seeds: int, with_tests: bool) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "python"
        shutil.copytree(PYTHON, copy, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.egg-info"))
        broken = copy / mutant.file
        if mutant.old:
            broken.write_text(broken.read_text().replace(mutant.old, mutant.new))
        part = mutant.part
        noticed_by = (with_tests and failing_test(copy, part)) or violating_seed(copy, seeds, part)
    return Verdict(mutant, noticed_by or NOT_NOTICED)


def failing_test(copy: Path, part: Part) -> str:
    """The first unit test that fails, or nothing."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "-o", "addopts="]
    files = sorted(str(path) for name in TESTS[part] for path in (copy / UNIT_TESTS).glob(f"{name}.py"))
    done = run(copy, "-m", "pytest", *options, *PROFILE, *files)
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) \S*?([\w-]+\.py(?:::\S+)?)", done.stdout, re.MULTILINE)
    return failed.group(1) if failed else f"pytest, exit code {done.returncode}"


def violating_seed(copy: Path, seeds: int, part: Part) -> str:
    """The first simulated run that breaks a promise, or nothing."""
    code = (
        "import sys\n"
        f"{SIMULATIONS[part]}\n"
        "for seed in range(int(sys.argv[1])):\n"
        "    if simulate(seed).violations:\n"
        "        sys.exit(f'seed {seed}: {simulate(seed).violations[0]}')\n"
    )
    done = run(copy, "-c", code, str(seeds))
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1][:100]


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
