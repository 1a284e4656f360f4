"""Cuts amid appends, reads and failovers: invariant I10, and that each rule it rests on is missed."""

from __future__ import annotations

import pytest

from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.tests.cut_world import CutWorld, Rules

SEEDS = 200
ALL = Rules()


def violations(rules: Rules = ALL, *, is_consistent: bool = True) -> list[str]:
    found = (CutWorld(seed, rules).play(is_consistent=is_consistent) for seed in range(SEEDS))
    return [f"seed {seed}: {problem}" for seed, problem in enumerate(found) if problem is not None]


def test_a_consistent_cut_has_all_causes_and_all_that_was_acknowledged() -> None:
    """T11, T13, T21, T23."""
    assert violations() == []


def test_a_fresh_cut_has_all_that_was_acknowledged() -> None:
    """T18, T20."""
    assert violations(is_consistent=False) == []


@pytest.mark.parametrize(
    "rules",
    [Rules(clients_carry_time=False), Rules(is_confirmed=False), Rules(is_tails=True)],
    ids=["clients do not carry their time", "sequencers are not confirmed", "one look at the tails"],
)
def test_each_rule_is_needed(rules: Rules) -> None:
    """T11, T23; and what a vector of tails is worth."""
    assert violations(rules)


def test_clocks_have_to_pass_the_time_of_a_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    """T13."""
    monkeypatch.setattr(LogClock, "pass_by", lambda self, time_ms: None)
    assert violations()
