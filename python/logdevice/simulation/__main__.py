"""Runs seeds and says which of them broke a promise.

    python -m logdevice.simulation --seeds 2000 --seed-start 0 --jobs 2
    python -m logdevice.simulation --seed 17
    python -m logdevice.simulation --cluster --seeds 1000

The first form ends with a line `2000 seeds, 1234567 events, 0 violations` and with exit code 1 if
there were violations; the second prints everything that happens in one run, then the verdict. Without
`--cluster` readers read what an oracle writes; with it the write path writes, under faults of its own;
with `--losses` disks are lost and nodes drained besides.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.run import simulate_chain
from logdevice.simulation.histories.run import simulate_histories
from logdevice.simulation.plan import Plan
from logdevice.simulation.rebuilding.run import simulate_rebuilding
from logdevice.simulation.run import Outcome, simulate
from logdevice.simulation.whole.plan import ClusterPlan
from logdevice.simulation.whole.run import simulate_cluster

PROGRESS_EVERY = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """What is simulated, and how a person repeats it."""

    simulate: Callable[..., Outcome]
    lines: Callable[[int], list[str]]
    command: str


READ_PATH = Kind(simulate, lambda seed: Plan.draw(seed).lines(), "make sim")
CLUSTER = Kind(simulate_cluster, lambda seed: ClusterPlan.draw(seed).lines(), "make sim CLUSTER=1")
CHAIN = Kind(simulate_chain, lambda seed: ChainPlan.draw(seed).lines(), "make sim CHAIN=1")
HISTORIES = Kind(simulate_histories, lambda seed: [], "make sim HISTORIES=1")
LOSSES = Kind(simulate_rebuilding, lambda seed: ClusterPlan.draw(seed).lines(), "make sim LOSSES=1")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="logdevice.simulation", description="Simulates faults.")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--seed-start", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use")
    parser.add_argument("--seed", type=int, help="run only this seed and show what happens")
    parser.add_argument("--cluster", action="store_true", help="the whole cluster, not only the read path")
    parser.add_argument("--chain", action="store_true", help="the whole cluster, with a chain log")
    parser.add_argument("--losses", action="store_true", help="the whole cluster, with lost disks")
    parser.add_argument("--histories", action="store_true", help="a log whose history branches")
    options = parser.parse_args(arguments)
    chosen = {
        HISTORIES: options.histories,
        CHAIN: options.chain,
        LOSSES: options.losses,
        CLUSTER: options.cluster,
        READ_PATH: True,
    }
    kind = next(kind for kind, is_chosen in chosen.items() if is_chosen)
    if options.seed is not None:
        return show(options.seed, kind)
    seeds = range(options.seed_start, options.seed_start + options.seeds)
    if options.jobs == 1 or len(seeds) < 2:
        return report(len(seeds), map(kind.simulate, seeds), kind)
    with multiprocessing.Pool(options.jobs) as pool:
        return report(len(seeds), pool.imap(kind.simulate, seeds, chunksize=10), kind)


def report(count: int, outcomes: Iterable[Outcome], kind: Kind = READ_PATH) -> int:
    done = events = broken = 0
    for outcome in outcomes:
        done += 1
        events += outcome.events
        if outcome.violations:
            broken += len(outcome.violations)
            print(f"seed {outcome.seed}: {len(outcome.violations)} violations")
            for violation in outcome.violations[:5]:
                print(f"    {violation}")
            for line in kind.lines(outcome.seed):
                print(f"    | {line}")
            print(f"    replay: {kind.command} SEED={outcome.seed}", flush=True)
        if done % PROGRESS_EVERY == 0:
            print(f"{done} of {count} seeds, {events} events, {broken} violations", flush=True)
    print(f"{done} seeds, {events} events, {broken} violations")
    return 1 if broken else 0


def show(seed: int, kind: Kind = READ_PATH) -> int:
    for line in kind.lines(seed):
        print(f"| {line}")
    trace: list[str] = []
    outcome = kind.simulate(seed, trace)
    for line in trace:
        print(line)
    for violation in outcome.violations:
        print(f"violation: {violation}")
    print(
        f"seed {seed}: {outcome.events} events, {outcome.records} records, {outcome.gaps} gaps, "
        f"{outcome.rewinds} rewinds, {len(outcome.violations)} violations"
    )
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
