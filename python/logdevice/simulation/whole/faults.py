"""What goes wrong in a whole cluster, as named numbers drawn from a seed.

As in the read path's simulation, each seed switches many faults off entirely: one that is always there
hides the bugs that show only without it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFaults:
    """Chances are per occasion, rates per simulated second."""

    # Between processes.
    message_loss: float = 0.0  # chance that a message is lost and takes its connection along
    latency_ms_max: int = 5
    detection_ms_max: int = 50  # how long a dead connection may look alive
    partitions_per_s: float = 0.0  # two processes cannot talk, for a while
    slow_nodes_per_s: float = 0.0
    # Processes.
    crashes_per_s: float = 0.0
    absences_per_s: float = 0.0  # a crash with a late return: recoveries go by meanwhile
    blackouts_per_s: float = 0.0  # several nodes crash at once
    crash_at_write: float = 0.0  # chance of a crash between a durable write and the news of it
    crash_at_effect: float = 0.0  # chance of a crash between two effects of one event
    beheadings_per_s: float = 0.0  # a sequencer is cut off from some nodes, and dies a little later
    hangs_per_s: float = 0.0  # stopped, and back later, believing to be what it was
    clock_skew_ms_max: int = 0
    wake_late: float = 0.0
    wake_twice: float = 0.0
    # Disks.
    disk_ms_max: int = 3
    full_disks_per_s: float = 0.0
    broken_disks_per_s: float = 0.0  # every write fails until the process is started again
    # Who owns the log, and what is known about it.
    owner_moves_per_s: float = 0.0
    activations_per_s: float = 0.0  # a node that does not own the log activates
    nodesets_per_s: float = 0.0  # the log gets another nodeset
    store_outages_per_s: float = 0.0  # the epoch store does not answer
    store_answer_lost: float = 0.0  # chance that a write is made and nobody hears of it
    trims_per_s: float = 0.0

    @classmethod
    def draw(cls, rng: random.Random) -> ClusterFaults:
        share = rng.choice([0.0, 0.15, 0.3, 0.5, 0.8])  # of the faults that are switched on

        def maybe(*values: float) -> float:
            return rng.choice(values) if rng.random() < share else 0.0

        return cls(
            message_loss=maybe(0.001, 0.005, 0.02),
            latency_ms_max=rng.choice([2, 5, 20, 60]),
            detection_ms_max=rng.choice([10, 50, 500]),
            partitions_per_s=maybe(0.3, 1.0, 3.0),
            slow_nodes_per_s=maybe(0.2, 0.6),
            crashes_per_s=maybe(0.3, 1.0, 2.0),
            absences_per_s=maybe(0.2, 0.5),
            blackouts_per_s=maybe(0.1, 0.4),
            crash_at_write=maybe(0.0005, 0.003),
            crash_at_effect=maybe(0.0003, 0.001),
            beheadings_per_s=maybe(0.5, 1.5),
            hangs_per_s=maybe(0.2, 0.6, 1.5),
            clock_skew_ms_max=int(maybe(10, 1_000)),
            wake_late=maybe(0.1, 0.5),
            wake_twice=maybe(0.1, 0.5),
            disk_ms_max=rng.choice([1, 3, 10, 40]),
            full_disks_per_s=maybe(0.2, 0.6),
            broken_disks_per_s=maybe(0.1, 0.4),
            owner_moves_per_s=maybe(0.3, 1.0, 3.0),
            activations_per_s=maybe(0.3, 1.0, 3.0),
            nodesets_per_s=maybe(0.3, 1.0, 3.0),
            store_outages_per_s=maybe(0.2, 0.6),
            store_answer_lost=maybe(0.02, 0.2),
            trims_per_s=maybe(0.3, 1.0),
        )

    def switched_on(self) -> str:
        """The faults that differ from a run without faults, for a person."""
        default = ClusterFaults()
        names = [
            item.name for item in fields(self) if getattr(self, item.name) != getattr(default, item.name)
        ]
        return " ".join(f"{name}={getattr(self, name)}" for name in names) or "none"
