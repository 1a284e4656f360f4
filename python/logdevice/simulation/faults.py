"""The faults of a run as named numbers, drawn from its seed.

Each seed switches many of them off entirely (swarm testing): a fault that is always present hides bugs that
show only without it. Each fault is declared once, with the values that each family of worlds draws from.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields
from typing import Any

READING, CLUSTER = "reading", "cluster"  # the read path alone, on a log that an oracle writes; whole clusters


def sometimes(*reading: float, cluster: tuple[float, ...] = ()) -> Any:
    """A fault that is often switched off. `cluster`: the values for whole clusters."""
    return field(default=0, metadata={READING: reading, CLUSTER: cluster, "always": False})


def always(default: int, *reading: int, cluster: tuple[int, ...] = ()) -> Any:
    """A number that every run has. `default` is its value in a healed world."""
    return field(default=default, metadata={READING: reading, CLUSTER: cluster, "always": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often and how badly things go wrong. Chances are per occasion, rates per simulated second."""

    # The network. A lost message also ends its connection.
    message_loss: float = sometimes(0.0005, 0.003, 0.01, cluster=(0.001, 0.005, 0.02))
    latency_ms_max: int = always(5, 2, 5, 20, 80, cluster=(2, 5, 20, 60))
    # How long a dead connection may look alive.
    detection_ms_max: int = always(20, 20, 200, 1500, cluster=(10, 50, 500))
    # Two processes cannot reach each other, for a while.
    partitions_per_s: float = sometimes(0.2, 1.0, cluster=(0.3, 1.0, 3.0))
    # All messages of a node take longer, for a while.
    slow_nodes_per_s: float = sometimes(0.2, 0.6, cluster=(0.2, 0.6))

    # Processes. After a crash only the disk is left.
    crashes_per_s: float = sometimes(0.1, 0.5, 1.5, cluster=(0.3, 1.0, 2.0))
    # A crash with a late return: the node misses recoveries.
    absences_per_s: float = sometimes(cluster=(0.2, 0.5))
    blackouts_per_s: float = sometimes(cluster=(0.1, 0.4))  # several nodes crash at once
    # Crashes after a durable write and before the machine hears of it, and between two effects of one event.
    crash_at_write: float = sometimes(cluster=(0.0005, 0.003))
    crash_at_effect: float = sometimes(cluster=(0.0003, 0.001))
    # A sequencer is cut off from some nodes and crashes a little later.
    beheadings_per_s: float = sometimes(cluster=(0.5, 1.5))
    # A process stands still and later goes on, with outdated knowledge.
    hangs_per_s: float = sometimes(0.1, 0.5, cluster=(0.2, 0.6, 1.5))
    clock_skew_ms_max: int = sometimes(cluster=(10, 1_000))
    wake_late: float = sometimes(0.1, 0.5, cluster=(0.1, 0.5))
    wake_twice: float = sometimes(0.1, 0.5, cluster=(0.1, 0.5))
    overloaded: float = sometimes(0.05, 0.3)  # a node answers START with "try later"

    # Disks.
    disk_ms_max: int = always(3, 1, 5, 30, cluster=(1, 3, 10, 40))
    full_disks_per_s: float = sometimes(cluster=(0.2, 0.6))
    broken_disks_per_s: float = sometimes(cluster=(0.1, 0.4))  # every write fails until the node restarts
    read_failure: float = sometimes(0.001, 0.01)  # chance that a disk breaks at a read
    wipes_per_s: float = sometimes(0.05, 0.2, 0.5)  # the disk is lost; later it is rebuilt or given up
    dirty_ranges_per_s: float = sometimes(0.2, 0.6)  # a node loses records and reports the range
    spoiled_per_s: float = sometimes(0.3, 2.0)  # bad checksums on a disk
    # A record is about to be read: one holder stops answering, other holders lose it.
    pincers_per_s: float = sometimes(0.5, 2.0)

    # What is known about nodes and log. The event log calls a node that is away UNAVAILABLE or gives it up.
    unavailable_per_s: float = sometimes(0.5, 2.0)
    given_up_per_s: float = sometimes(0.3, 1.0)
    owner_moves_per_s: float = sometimes(cluster=(0.3, 1.0, 3.0))
    activations_per_s: float = sometimes(cluster=(0.3, 1.0, 3.0))  # of a node that does not own the log
    nodesets_per_s: float = sometimes(cluster=(0.3, 1.0, 3.0))
    store_outages_per_s: float = sometimes(cluster=(0.2, 0.6))  # the epoch store does not answer
    store_answer_lost: float = sometimes(cluster=(0.02, 0.2))  # a write is made and its answer is lost
    trims_per_s: float = sometimes(0.2, 1.0, cluster=(0.3, 1.0))
    spread_ms_max: int = always(5, 2, 20, 400)  # how late a node may learn of a release or a trim

    # The reader's surroundings.
    spoiled_in_flight: float = sometimes(0.002, 0.02, 0.2)  # a received record has a bad checksum
    config_changes_per_s: float = sometimes(0.3, 1.0)  # single-copy delivery is switched off or on
    metadata_failure: float = sometimes(0.1, 0.5)
    metadata_soft: float = sometimes(0.2, 0.6)  # the metadata comes from a cache that may be out of date
    lag_ms_max: int = always(0, 0, 0, 5, 100, cluster=(0, 5, 50))  # the application consumes late

    @classmethod
    def draw(cls, rng: random.Random, family: str) -> Faults:
        share = rng.choice([0.0, 0.15, 0.3, 0.5, 0.8])  # of the faults that are switched on
        drawn = {
            item.name: rng.choice(item.metadata[family])
            for item in fields(cls)
            if item.metadata[family] and (item.metadata["always"] or rng.random() < share)
        }
        return cls(**drawn)

    def __str__(self) -> str:
        """The faults of this run, as text: all values that are not the defaults."""
        values = [(item.name, getattr(self, item.name), item.default) for item in fields(self)]
        return " ".join(f"{name}={value}" for name, value, default in values if value != default) or "none"
