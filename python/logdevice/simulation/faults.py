"""The faults of a run as named numbers, drawn from its seed.

Each seed switches many of them off entirely (swarm testing): a fault that is always there hides
the bugs that show only without it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """Chances are per occasion, rates per simulated second."""

    # The network.
    message_loss: float = 0.0  # chance that a message is lost and takes its connection along
    latency_ms_max: int = 5  # every message takes 1 to this long
    detection_ms_max: int = 100  # how long a dead connection may look alive
    partitions_per_s: float = 0.0  # one reader and one node cannot talk, for a while
    slow_nodes_per_s: float = 0.0  # a node's messages all take longer, for a while
    # The nodes.
    crashes_per_s: float = 0.0  # streams and connections forgotten, disk kept
    hangs_per_s: float = 0.0  # receives, answers nothing, for a while
    wipes_per_s: float = 0.0  # the disk is lost; rebuilt or given up later
    dirty_ranges_per_s: float = 0.0  # some records lost in a range the node admits to
    spoiled_per_s: float = 0.0  # bad checksums on a disk
    read_failure: float = 0.0  # chance that a disk breaks at a read
    disk_ms_max: int = 3  # a read of the disk takes up to this long
    overloaded: float = 0.0  # chance that a node answers START with "try later"
    unavailable_per_s: float = 0.0  # the event log says UNAVAILABLE of a node that is away
    pincers_per_s: float = 0.0  # of a record about to be read, one holder falls silent, others lose it
    given_up_per_s: float = 0.0  # the event log says UNDERREPLICATION of a node that is away
    # The log.
    trims_per_s: float = 0.0
    spread_ms_max: int = 5  # how late a node may learn of a release or a trim
    # The reader's surroundings.
    spoiled_in_flight: float = 0.0  # chance that a received record has a bad checksum
    config_changes_per_s: float = 0.0  # single copy delivery is switched off or on
    metadata_failure: float = 0.0  # chance that the metadata of an epoch cannot be read
    metadata_soft: float = 0.0  # chance that it comes from a cache that may be out of date
    lag_ms_max: int = 0  # how long the application may sit on what it got
    wake_late: float = 0.0  # chance that a wake-up comes late
    wake_twice: float = 0.0  # chance that it comes twice

    @classmethod
    def draw(cls, rng: random.Random) -> FaultRates:
        share = rng.choice([0.0, 0.15, 0.3, 0.5, 0.8])  # of the faults that are switched on

        def maybe(*values: float) -> float:
            return rng.choice(values) if rng.random() < share else 0.0

        return cls(
            message_loss=maybe(0.0005, 0.003, 0.01),
            latency_ms_max=rng.choice([2, 5, 20, 80]),
            detection_ms_max=rng.choice([20, 200, 1500]),
            partitions_per_s=maybe(0.2, 1.0),
            slow_nodes_per_s=maybe(0.2, 0.6),
            crashes_per_s=maybe(0.1, 0.5, 1.5),
            hangs_per_s=maybe(0.1, 0.5),
            wipes_per_s=maybe(0.05, 0.2, 0.5),
            dirty_ranges_per_s=maybe(0.2, 0.6),
            spoiled_per_s=maybe(0.3, 2.0),
            read_failure=maybe(0.001, 0.01),
            disk_ms_max=rng.choice([1, 5, 30]),
            overloaded=maybe(0.05, 0.3),
            unavailable_per_s=maybe(0.5, 2.0),
            pincers_per_s=maybe(0.5, 2.0),
            given_up_per_s=maybe(0.3, 1.0),
            trims_per_s=maybe(0.2, 1.0),
            spread_ms_max=rng.choice([2, 20, 400]),
            spoiled_in_flight=maybe(0.002, 0.02, 0.2),
            config_changes_per_s=maybe(0.3, 1.0),
            metadata_failure=maybe(0.1, 0.5),
            metadata_soft=maybe(0.2, 0.6),
            lag_ms_max=rng.choice([0, 0, 5, 100]),
            wake_late=maybe(0.1, 0.5),
            wake_twice=maybe(0.1, 0.5),
        )

    def switched_on(self) -> str:
        """The faults that differ from a run without faults, for a person."""
        default = FaultRates()
        names = [
            item.name for item in fields(self) if getattr(self, item.name) != getattr(default, item.name)
        ]
        return " ".join(f"{name}={getattr(self, name)}" for name in names) or "none"
