"""Runs seeds and says which of them broke a promise.

    python -m logdevice.simulation --seeds 2000 --seed-start 0 --jobs 2
    python -m logdevice.simulation --seed 17

The first form ends with a line `2000 seeds, 1234567 events, 0 violations` and with exit code 1 if
there were violations; the second prints everything that happens in one run, then the verdict.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable

from logdevice.simulation.plan import Plan
from logdevice.simulation.run import Outcome, simulate

PROGRESS_EVERY = 100


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="logdevice.simulation", description="Simulates the read path.")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--seed-start", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use")
    parser.add_argument("--seed", type=int, help="run only this seed and show what happens")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return show(options.seed)
    seeds = range(options.seed_start, options.seed_start + options.seeds)
    if options.jobs == 1 or len(seeds) < 2:
        return report(len(seeds), map(simulate, seeds))
    with multiprocessing.Pool(options.jobs) as pool:
        return report(len(seeds), pool.imap(simulate, seeds, chunksize=10))


def report(count: int, outcomes: Iterable[Outcome]) -> int:
    done = events = broken = 0
    for outcome in outcomes:
        done += 1
        events += outcome.events
        if outcome.violations:
            broken += len(outcome.violations)
            print(f"seed {outcome.seed}: {len(outcome.violations)} violations")
            for violation in outcome.violations[:5]:
                print(f"    {violation}")
            for line in Plan.draw(outcome.seed).lines():
                print(f"    | {line}")
            print(f"    replay: make sim SEED={outcome.seed}", flush=True)
        if done % PROGRESS_EVERY == 0:
            print(f"{done} of {count} seeds, {events} events, {broken} violations", flush=True)
    print(f"{done} seeds, {events} events, {broken} violations")
    return 1 if broken else 0


def show(seed: int) -> int:
    for line in Plan.draw(seed).lines():
        print(f"| {line}")
    trace: list[str] = []
    outcome = simulate(seed, trace)
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
