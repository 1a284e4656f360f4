"""Breaks one rule of the protocol at a time and shows what notices: a unit test or the simulator.

Each mutant (`table.py`) is a small change of one function, applied to a temporary copy of `python/`,
never to the work tree. First the unit tests of the protocol run, those that cite its rule before the
others; if they stay green, some hundred simulated runs of its part. A mutant that nothing notices means
that a rule is not guarded, or not needed.

    python -m tools.mutants [--only WORD] [--simulator-only] [--seeds 300] [--jobs 2]

The last line is `N mutants, N noticed`; the exit code is 1 if any was not noticed, or does not fit the
code.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.mutants.finder import PYTHON, Code, MisfitError
from tools.mutants.table import Mutant, all_mutants

UNIT_TESTS = "logdevice/protocol"
SIMULATIONS = {
    "read_path": "from logdevice.simulation.reading.run import simulate",
    "write_path": "from logdevice.simulation.cluster.run import simulate_cluster as simulate",
    "rebuilding": "from logdevice.simulation.losses.run import simulate_rebuilding as simulate",
    "chain": "from logdevice.simulation.chain.run import simulate_chain as simulate",
    "lineage": "from logdevice.simulation.histories.run import simulate_histories as simulate",
    "cuts": "from logdevice.protocol.tests.cut_world import simulate_cut as simulate",
    "keyed": "from logdevice.compaction.tests.keyed_world import simulate_keyed as simulate",
}
PLAIN = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "-o", "addopts=")
# No deadlines: on a busy machine a slow example would pass for a mutant that was noticed.
PROFILE = ("--hypothesis-profile=ci", "--hypothesis-seed=0")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Breaks one rule at a time and shows what notices.")
    parser.add_argument("--only", default="", help="only mutants with this in rule, text or place")
    parser.add_argument("--simulator-only", action="store_true", help="do not run the unit tests")
    parser.add_argument("--seeds", type=int, default=300, help="simulated runs for each mutant")
    parser.add_argument("--jobs", type=int, default=2, help="mutants examined at the same time")
    options = parser.parse_args(arguments)
    code = Code()
    chosen = [
        mutant for mutant in all_mutants() if options.only in f"{mutant.rule} {mutant.why} {mutant.place}"
    ]
    problems = misfits(chosen, code)
    if problems:
        print("\n".join(problems))
        return 1

    with_tests = not options.simulator_only
    for part in sorted({mutant.part for mutant in chosen}):
        unbroken = Mutant(part, "-", "nothing is broken")
        if noticed_by := examine(unbroken, code, seeds=options.seeds, with_tests=with_tests):
            print(f"without any mutant there is already a failure: {noticed_by}")
            return 1
        with_tests = False  # they are the same for every part

    def examine_one(mutant: Mutant) -> str:
        return examine(mutant, code, seeds=options.seeds, with_tests=not options.simulator_only)

    noticed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, noticed_by in zip(chosen, pool.map(examine_one, chosen), strict=True):
            noticed += bool(noticed_by)
            print(f"{mutant.rule:<4} {mutant.why:<68} {noticed_by or 'NOT NOTICED'}", flush=True)
    print(f"{len(chosen)} mutants, {noticed} noticed")
    return 0 if noticed == len(chosen) else 1


def misfits(mutants: list[Mutant], code: Code) -> list[str]:
    """Mutants whose code is not found exactly once, or that change nothing."""
    problems = []
    for mutant in mutants:
        try:
            code.broken(mutant.place, mutant.old, mutant.new)
        except (MisfitError, SyntaxError) as problem:
            problems.append(f"{mutant.rule} {mutant.why}: {problem}")
    return problems


def examine(mutant: Mutant, code: Code, *, seeds: int, with_tests: bool) -> str:
    """The test or the seed that notices; empty: none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "python"
        shutil.copytree(PYTHON, copy, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.egg-info"))
        if mutant.place:
            path, text = code.broken(mutant.place, mutant.old, mutant.new)
            (copy / path.relative_to(PYTHON)).write_text(text, encoding="utf-8")
        return (with_tests and failing_test(copy, mutant.rule)) or violating_seed(copy, seeds, mutant.part)


def failing_test(copy: Path, rule: str) -> str:
    """The first unit test that fails, or nothing. The files that cite the rule go first, by themselves: most
    mutants end there, and collecting all the others would take longer than these run.
    """
    cites = re.compile(rf"\b{re.escape(rule)}\b|_{re.escape(rule.lower())}_")
    files = sorted((copy / UNIT_TESTS).rglob("test_*.py"))
    assert files, f"there are no tests in {UNIT_TESTS}"
    citing = [file for file in files if cites.search(file.read_text(encoding="utf-8"))]
    others = [file for file in files if file not in citing]
    return (citing and first_failure(copy, citing)) or first_failure(copy, others)


def first_failure(copy: Path, files: list[Path]) -> str:
    done = run(copy, "-m", "pytest", *PLAIN, *PROFILE, *map(str, files))
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) \S*?([\w-]+\.py(?:::\S+)?)", done.stdout, re.MULTILINE)
    return failed.group(1) if failed else f"pytest, exit code {done.returncode}"


def violating_seed(copy: Path, seeds: int, part: str) -> str:
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
