"""Histories that branch: no consumer is told that records exist which are gone. `make sim HISTORIES=1`."""

from __future__ import annotations

from logdevice.simulation.histories.run import simulate_histories


def test_every_consumer_is_told_the_truth_about_what_it_holds() -> None:
    """I9, I11, L29, L30, L31, L35: through losses, recoveries without nodes, restores and re-creations."""
    outcomes = [simulate_histories(seed) for seed in range(60)]
    assert [violation for outcome in outcomes for violation in outcome.violations] == []
    assert sum(outcome.rewinds for outcome in outcomes) > 100, "there was something to undo"


def test_the_same_seed_is_the_same_run() -> None:
    first: list[str] = []
    again: list[str] = []
    simulate_histories(7, first)
    simulate_histories(7, again)
    assert first == again
    assert first
