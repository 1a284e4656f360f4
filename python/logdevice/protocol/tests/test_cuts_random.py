"""Cuts amid appends, reads and failovers: invariant I10. `make mutants` shows that each rule is needed."""

from __future__ import annotations

import pytest

from logdevice.protocol.tests.cut_world import CutWorld


@pytest.mark.parametrize("is_consistent", [True, False], ids=["consistent", "fresh"])
def test_a_cut_has_all_that_was_acknowledged_and_a_consistent_one_all_causes(is_consistent: bool) -> None:
    """T11, T13, T18, T20, T21, T23."""
    found = {seed: CutWorld(seed).play(is_consistent=is_consistent) for seed in range(200)}
    assert {seed: problem for seed, problem in found.items() if problem is not None} == {}
