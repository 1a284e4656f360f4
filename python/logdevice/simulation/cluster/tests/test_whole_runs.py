"""Runs of the whole cluster: no promise is broken, a seed always gives the same run, faults really happen."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from logdevice.simulation.__main__ import main
from logdevice.simulation.cluster.plan import ClusterPlan
from logdevice.simulation.cluster.run import simulate_cluster

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_no_promise_is_broken(seed: int) -> None:
    outcome = simulate_cluster(seed)
    assert outcome.violations == (), f"replay with: make sim CLUSTER=1 SEED={seed}"
    assert outcome.events > 0


def test_the_fixed_seeds_see_crashes_hangs_failovers_purges_and_holes() -> None:
    # A simulator without faults proves nothing.
    lines: list[str] = []
    for seed in range(24):
        simulate_cluster(seed, lines)
    text = "\n".join(lines)
    signs = ("crashes", "hangs", "boots", "recovers the epochs after", "has to purge", "gets HOLE")
    for sign in (*signs, "gives up: FENCED", "gives up: UNKNOWN_WRITER", "dies", "knows that w"):
        assert sign in text, f"{sign!r} never happened"
    assert any(str(ClusterPlan.draw(seed).reading.faults) != "none" for seed in SEEDS)


def trace_hash(seed: int) -> str:
    trace: list[str] = []
    simulate_cluster(seed, trace)
    return hashlib.sha256("\n".join(trace).encode()).hexdigest()


def test_writing_a_trace_does_not_change_the_run() -> None:
    assert simulate_cluster(3, []) == simulate_cluster(3)


@pytest.mark.parametrize("hash_seed", ["1", "12345"])
def test_the_same_seed_is_the_same_run_in_another_process(hash_seed: str) -> None:
    # Imported by its path: test folders are not packages.
    code = (
        "import sys, hashlib\n"
        "from logdevice.simulation.cluster.run import simulate_cluster\n"
        "for seed in (1, 5, 7):\n"
        "    trace = []\n"
        "    simulate_cluster(seed, trace)\n"
        "    sys.stdout.write(hashlib.sha256('\\n'.join(trace).encode()).hexdigest() + ' ')\n"
    )
    root = Path(__file__).resolve().parents[4]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.decode().split() == [trace_hash(seed) for seed in (1, 5, 7)]


def test_the_command_line_ends_with_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster", "--seeds", "2", "--jobs", "1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("2 seeds, ")
    assert last.endswith(" events, 0 violations")


def test_one_seed_is_shown_with_everything_that_happens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| seed 3"
    assert any("sequencer  acknowledges" in line for line in lines)
    assert lines[-1].startswith("seed 3: ")
