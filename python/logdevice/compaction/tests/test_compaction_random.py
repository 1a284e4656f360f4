"""Keyed logs under crashes, missed orders, lost disks and moved copies: the newest of every key is there.

`make mutants` shows that each rule is needed.
"""

from __future__ import annotations

from logdevice.compaction.tests.keyed_world import played


def test_the_newest_of_every_key_is_there_whatever_happens() -> None:
    """K21, K23, K28, K30 to K32; every kind of event occurs in these runs."""
    worlds = [played(seed) for seed in range(60)]
    assert sum(world.purged for world in worlds) > 20
    assert sum(world.consumer.rebuilds for world in worlds) > 5
