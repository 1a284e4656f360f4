"""Runs in which disks are lost and nodes drained: no promise broken, nothing called lost, all restored."""

from __future__ import annotations

import pytest

from logdevice.simulation.rebuilding.run import simulate_rebuilding

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_no_promise_is_broken_where_disks_are_lost(seed: int) -> None:
    outcome = simulate_rebuilding(seed)
    assert outcome.violations == (), f"replay with: make sim LOSSES=1 SEED={seed}"


def test_the_fixed_seeds_see_losses_drains_and_rebuildings() -> None:
    lines: list[str] = []
    for seed in range(10):
        simulate_rebuilding(seed, lines)
    text = "\n".join(lines)
    for sign in (
        "loses its disk",
        "RETURNED_EMPTY",
        "REBUILD N",
        "RETURNED N",
        "DRAIN N",
        "UNDRAIN N",
        "has copied",
        "DONE N",
        "ACKNOWLEDGED N",
    ):
        assert sign in text, f"{sign!r} never happened"
