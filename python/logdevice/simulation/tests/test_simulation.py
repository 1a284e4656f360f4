"""Runs of the read path: no promise is broken, a seed always gives the same run, the report is readable."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from logdevice.simulation.__main__ import WORLDS, main, report, run
from logdevice.simulation.faults import Faults
from logdevice.simulation.network import Connection, Network
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.plan import Plan
from logdevice.simulation.reading.run import RunOutcome, simulate
from logdevice.simulation.world import World

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_no_promise_is_broken(seed: int) -> None:
    outcome = simulate(seed)
    assert outcome.violations == (), f"replay with: make sim SEED={seed}"
    assert outcome.records > 0


def test_the_fixed_seeds_see_faults_gaps_and_rewinds() -> None:
    # A simulator without faults proves nothing.
    plans = [Plan.draw(seed) for seed in SEEDS]
    assert sum(plan.faults.wipes_per_s > 0 for plan in plans) >= 5
    assert sum(plan.faults.message_loss > 0 for plan in plans) >= 5
    assert sum(not plan.epochs[0].metadata.bridges for plan in plans) >= 5
    assert any(str(plan.faults) != "none" for plan in plans)
    outcomes = [simulate(seed) for seed in range(10)]
    assert sum(outcome.gaps for outcome in outcomes) > 10
    assert sum(outcome.rewinds for outcome in outcomes) > 10


def trace_hash(seed: int) -> str:
    trace: list[str] = []
    simulate(seed, trace)
    return hashlib.sha256("\n".join(trace).encode()).hexdigest()


def test_writing_a_trace_does_not_change_the_run() -> None:
    assert simulate(3, []) == simulate(3)


@pytest.mark.parametrize("hash_seed", ["1", "12345"])
def test_the_same_seed_is_the_same_run_in_another_process(hash_seed: str) -> None:
    code = (
        "from logdevice.simulation.tests.test_simulation import trace_hash\n"
        "import sys; sys.stdout.write(' '.join(trace_hash(seed) for seed in (1, 5, 7)))"
    )
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == " ".join(trace_hash(seed) for seed in (1, 5, 7))


def test_the_last_line_counts_seeds_events_and_violations(capsys: pytest.CaptureFixture[str]) -> None:
    good = RunOutcome(seed=1, events=10, violations=(), records=1, gaps=0, rewinds=0)
    bad = RunOutcome(seed=2, events=5, violations=("5 ms reader0: something",), records=1, gaps=0, rewinds=0)
    assert report([("read", 1)], [good]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 seed, 10 events, 0 violations"
    assert report([("read", 1), ("read", 2)], [good, bad]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 seeds, 15 events, 1 violation"
    assert "    replay: make sim SEED=2" in lines


def test_the_seeds_of_a_run_of_all_worlds_are_divided_among_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all", "--seeds", "6", "--seed-start", "1", "--jobs", "1"]) == 0
    events = sum(run((name, 1)).events for name in WORLDS) + run(("read", 2)).events
    assert capsys.readouterr().out.splitlines()[-1] == f"6 seeds, {events} events, 0 violations"


def test_a_violation_is_replayed_in_its_own_world(capsys: pytest.CaptureFixture[str]) -> None:
    bad = RunOutcome(seed=2, events=5, violations=("5 ms log: something",), records=1, gaps=0, rewinds=0)
    assert report([("losses", 2)], [bad]) == 1
    assert "    replay: make sim LOSSES=1 SEED=2" in capsys.readouterr().out.splitlines()


def test_one_seed_is_shown_with_everything_that_happens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| seed 3"
    assert any("sequencer  releases everything below" in line for line in lines)
    assert lines[-1].startswith("seed 3: ")
    assert lines[-1].endswith(" 0 violations")


def test_two_processes_report_what_one_reports(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--seeds", "4", "--jobs", "1"])
    alone = capsys.readouterr().out
    main(["--seeds", "4", "--jobs", "2"])
    assert capsys.readouterr().out == alone


def test_things_planned_for_the_same_moment_happen_in_the_order_of_planning() -> None:
    world, seen = World(0), []
    for name in "cab":
        world.after(5, lambda name=name: seen.append(name))  # type: ignore[misc]
    world.run_until(5)
    assert seen == []
    world.run_until(6)
    assert seen == ["c", "a", "b"]


class Line:
    """A connection between two processes that notes what its ends are told."""

    def __init__(self, *, is_up: bool = True, **faults: float) -> None:
        self.world = World(7, faults=Faults(latency_ms_max=50, **faults))  # type: ignore[arg-type]
        self.network = Network(self.world)
        self.reader: list[object] = []
        self.node: list[object] = []
        self.target = SimProcess("N1", self.network)
        self.target.is_up = is_up
        source = SimProcess("reader", self.network)
        lost, closed = partial(self.reader.append, "lost"), partial(self.node.append, "closed")
        self.connection = Connection(source, self.target, lost, closed)
        self.network.open(self.connection)

    def to_reader(self, message: object) -> None:
        self.network.to_source(self.connection, partial(self.reader.append, message))

    def to_node(self, message: object) -> None:
        self.network.to_target(self.connection, partial(self.node.append, message))


def test_a_connection_keeps_the_order_of_messages() -> None:
    line = Line()
    for number in range(20):
        line.to_reader(number)
    line.world.run_until(1_000)
    assert line.reader == list(range(20))


def test_a_lost_message_ends_the_connection_for_both_ends_once() -> None:
    line = Line(message_loss=1.0)
    line.to_reader(1)
    line.to_reader(2)
    line.world.run_until(1_000)
    assert (line.reader, line.node) == (["lost"], ["closed"])


def test_a_connection_closed_by_the_reader_still_carries_what_was_sent() -> None:
    line = Line()
    line.to_node("stop")
    line.network.close(line.connection)
    line.to_reader("too late")
    line.world.run_until(1_000)
    assert (line.reader, line.node) == ([], ["stop", "closed"])


def test_a_node_that_is_down_refuses_connections() -> None:
    line = Line(is_up=False)
    line.to_node("start")
    line.world.run_until(1_000)
    assert (line.reader, line.node) == (["lost"], [])


def test_a_node_that_hangs_does_everything_when_it_goes_on() -> None:
    line = Line()
    line.target.hang()
    line.to_node("start")
    line.world.run_until(1_000)
    assert line.node == []
    line.target.wake()
    assert line.node == ["start"]


def test_messages_to_a_process_that_died_are_dropped() -> None:
    line = Line()
    line.to_node("start")
    line.target.end_life()
    line.target.begin_life()
    line.world.run_until(1_000)
    assert (line.reader, line.node) == (["lost"], [])
