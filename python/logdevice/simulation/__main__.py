"""Runs seeds and reports which of them broke a promise.

    python -m logdevice.simulation --seeds 2000 --seed-start 0 --jobs 2
    python -m logdevice.simulation --seed 17
    python -m logdevice.simulation --cluster --seeds 1000
    python -m logdevice.simulation --all --seeds 20000

It ends with a line `2000 seeds, 1234567 events, 0 violations`, and with exit code 1 if there were
violations. The second form prints everything that happens in one run, then the result. Without the name of
a world it simulates the read path alone. `--all` divides the seeds among all worlds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.run import simulate_chain
from logdevice.simulation.cluster.plan import ClusterPlan
from logdevice.simulation.cluster.run import simulate_cluster
from logdevice.simulation.histories.run import simulate_histories
from logdevice.simulation.losses.run import simulate_rebuilding
from logdevice.simulation.reading.plan import Plan, lines_of
from logdevice.simulation.reading.run import RunOutcome, simulate

PROGRESS_EVERY = 100


@dataclass(frozen=True, slots=True)
class WorldChoice:
    """What is simulated, and the command that repeats a run."""

    simulate: Callable[..., RunOutcome]
    draw: Callable[[int], object] | None  # draws the plan of a seed; None: there are no plans
    command: str
    text: str

    def lines(self, seed: int) -> list[str]:
        return lines_of(self.draw(seed)) if self.draw else []


WORLDS = {
    "read": WorldChoice(simulate, Plan.draw, "make sim", "the read path alone"),
    "cluster": WorldChoice(
        simulate_cluster,
        ClusterPlan.draw,
        "make sim CLUSTER=1",
        "the whole cluster, not only the read path",
    ),
    "losses": WorldChoice(
        simulate_rebuilding,
        ClusterPlan.draw,
        "make sim LOSSES=1",
        "the whole cluster, with lost disks and nodes that are drained",
    ),
    "chain": WorldChoice(
        simulate_chain,
        ChainPlan.draw,
        "make sim CHAIN=1",
        "the whole cluster, with a chain log",
    ),
    "histories": WorldChoice(
        simulate_histories, None, "make sim HISTORIES=1", "a log whose history branches"
    ),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="logdevice.simulation", description="Simulates clusters with faults and checks their promises."
    )
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--seed-start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes to use")
    parser.add_argument("--seed", type=int, help="run only this seed and show what happens")
    for name, world in WORLDS.items():
        parser.add_argument(
            f"--{name}", dest="worlds", action="append_const", const=name, help=f"simulate {world.text}"
        )
    parser.add_argument(
        "--all", dest="worlds", action="store_const", const=list(WORLDS), help="simulate all worlds, in turn"
    )
    options = parser.parse_args(arguments)
    worlds = options.worlds or ["read"]
    if options.seed is not None:
        return show(options.seed, WORLDS[worlds[0]])
    first = options.seed_start
    runs = [(worlds[number % len(worlds)], first + number // len(worlds)) for number in range(options.seeds)]
    if options.jobs == 1:
        return report(runs, map(run, runs))
    with multiprocessing.Pool(options.jobs) as pool:
        return report(runs, pool.imap(run, runs, chunksize=10))


def run(which: tuple[str, int]) -> RunOutcome:
    name, seed = which
    return WORLDS[name].simulate(seed)


def report(runs: list[tuple[str, int]], outcomes: Iterable[RunOutcome]) -> int:
    done = events = broken = 0
    for (name, seed), outcome in zip(runs, outcomes, strict=True):
        done += 1
        events += outcome.events
        if outcome.violations:
            broken += len(outcome.violations)
            world = WORLDS[name]
            print(f"seed {seed}: {_counted(len(outcome.violations), 'violation')}")
            for violation in outcome.violations[:5]:
                print(f"    {violation}")
            for line in world.lines(seed):
                print(f"    | {line}")
            print(f"    replay: {world.command} SEED={seed}", flush=True)
        if done % PROGRESS_EVERY == 0:
            print(
                f"{done} of {len(runs)} seeds, {events} events, {_counted(broken, 'violation')}", flush=True
            )
    print(f"{_counted(done, 'seed')}, {_counted(events, 'event')}, {_counted(broken, 'violation')}")
    return 1 if broken else 0


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show(seed: int, world: WorldChoice) -> int:
    for line in world.lines(seed):
        print(f"| {line}")
    trace: list[str] = []
    outcome = world.simulate(seed, trace)
    for line in trace:
        print(line)
    for violation in outcome.violations:
        print(f"violation: {violation}")
    print(
        f"seed {seed}: {_counted(outcome.events, 'event')}, {_counted(outcome.records, 'record')}, "
        f"{_counted(outcome.gaps, 'gap')}, {_counted(outcome.rewinds, 'rewind')}, "
        f"{_counted(len(outcome.violations), 'violation')}"
    )
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
