"""Everything that a seed decides before the run starts: cluster, epochs, readers, settings, faults.

Drawn once, never changed, printed next to the seed of a failing run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Any

from logdevice.settings import NodeReadSettings, ReadStreamSettings
from logdevice.simulation.faults import READING, Faults
from logdevice.types import (
    LSN_MAX,
    LSN_OLDEST,
    Epoch,
    EpochMetadata,
    GapType,
    Location,
    Lsn,
    NodeId,
    Replication,
    Scope,
    TimeRange,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """One epoch as the sequencer will write it."""

    epoch: Epoch
    metadata: EpochMetadata
    records: int
    holes: int  # written by recovery after the records
    extras: int  # members of each copyset beyond the replication factor
    sticky: int  # how many records in a row share a copyset


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderPlan:
    start: Lsn
    end: Lsn
    starts_at_ms: int
    location: Location
    shuffle_seed: int | None
    time_range: TimeRange | None = None
    headers_only: bool = False
    force_all_send_all: bool = False
    settings: ReadStreamSettings
    ends_by: GapType | None = None  # the log is removed, or access denied, while the reader reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of one run."""

    seed: int
    locations: dict[NodeId, Location]
    late_node: NodeId | None = None  # joins the configuration during the run
    scd: bool
    local_scd: bool
    epochs: tuple[EpochPlan, ...] = ()  # empty where real sequencers write the log
    readers: tuple[ReaderPlan, ...]
    faults: Faults
    fault_phase_ms: int
    burst_max: int = 1  # records the sequencer writes at once
    node_settings: NodeReadSettings
    examined_max: int | None  # entries that a node examines in one read, in place of its time limit

    @classmethod
    def draw(cls, seed: int) -> Plan:
        rng = random.Random(f"plan {seed}")
        locations = _draw_locations(rng)
        scd = rng.random() < 0.9
        fault_phase_ms = rng.choice([2_000, 5_000, 10_000])
        epochs = _draw_epochs(rng, locations)
        late_node = _late_node(rng, locations, epochs)
        readers = tuple(_draw_reader(rng, epochs, fault_phase_ms) for _ in range(rng.choice([1, 1, 2, 2, 3])))
        return cls(
            seed=seed,
            locations=locations,
            late_node=late_node,
            scd=scd,
            local_scd=scd and rng.random() < 0.3,
            epochs=epochs,
            readers=readers,
            faults=Faults.draw(rng, READING),
            fault_phase_ms=fault_phase_ms,
            burst_max=rng.choice([1, 5, 40]),
            node_settings=NodeReadSettings(
                read_bytes_max=rng.choice([1, 500, 5_000, 1 << 20]),
                read_time_ms_max=100,
                send_queue_bytes_max=rng.choice([200, 5_000, 2 << 20]),
            ),
            examined_max=rng.choice([None, None, 3, 20]),
        )


def lines_of(plan: Any) -> list[str]:
    """The drawn parameters as lines of text."""
    lines: list[str] = []
    for item in fields(plan):
        value = getattr(plan, item.name)
        if isinstance(value, Plan):
            lines += lines_of(value)
        else:
            lines += [f"{item.name} {each}" for each in (value if isinstance(value, tuple) else [value])]
    return lines


def _draw_locations(rng: random.Random) -> dict[NodeId, Location]:
    racks = rng.randint(2, 4)
    regions = rng.randint(1, min(2, racks))
    return {
        NodeId(index): Location.parse(f"r{(index % racks) % regions}.d0.c0.w{index % 2}.k{index % racks}")
        for index in range(rng.randint(3, 9))
    }


def _draw_epochs(rng: random.Random, locations: dict[NodeId, Location]) -> tuple[EpochPlan, ...]:
    plans: list[EpochPlan] = []
    number = rng.choice([1, 1, 1, 3])
    left = rng.randint(50, 400)
    count = rng.choice([1, 2, 2, 3])
    keeps_nodeset = rng.random() < 0.3
    bridges = rng.random() < 0.7
    metadata: EpochMetadata | None = None
    for index in range(count):
        if metadata is None or not keeps_nodeset:
            first = 1 if metadata is None else number
            metadata = _draw_metadata(rng, locations, Epoch(first), bridges=bridges)
        records = left if index == count - 1 else rng.randint(0, left // 2)
        left -= records
        spare = len(metadata.nodeset) - metadata.replication.copies
        plans.append(
            EpochPlan(
                epoch=Epoch(number),
                metadata=metadata,
                records=records,
                holes=rng.choice([0, 0, 1, 3]),
                extras=rng.choice([0, 0, 0, 1, 2]) if spare >= 2 else 0,
                sticky=rng.choice([1, 3, 20]),
            )
        )
        number += rng.choice([1, 1, 1, 2])
    return tuple(plans)


def _draw_metadata(
    rng: random.Random, locations: dict[NodeId, Location], first_epoch: Epoch, *, bridges: bool
) -> EpochMetadata:
    ids = sorted(locations)
    nodeset = tuple(sorted(rng.sample(ids, rng.randint(3, len(ids)))))
    racks = {locations[node].domain(Scope.RACK) for node in nodeset}
    copies = rng.choice([1, 2, 2, 3, 3])
    factors = {Scope.NODE: copies}
    if copies >= 2 and len(racks) >= 2 and rng.random() < 0.4:
        factors[Scope.RACK] = 2
    return EpochMetadata(first_epoch, nodeset, Replication.of(factors), bridges)


def _late_node(
    rng: random.Random, locations: dict[NodeId, Location], epochs: tuple[EpochPlan, ...]
) -> NodeId | None:
    """A node that only the last epoch uses may join the configuration late."""
    early = {node for plan in epochs[:-1] for node in plan.metadata.nodeset}
    candidates = [node for node in sorted(locations) if node not in early] if len(epochs) > 1 else []
    return rng.choice(candidates) if candidates and rng.random() < 0.5 else None


def _draw_reader(rng: random.Random, epochs: tuple[EpochPlan, ...], fault_phase_ms: int) -> ReaderPlan:
    first = epochs[0].epoch
    starts = [
        LSN_OLDEST,
        Lsn.of(first, 0),
        Lsn.of(first, 1),
        Lsn.of(first, 1),
        Lsn.of(first, rng.randint(1, 60)),
    ]
    last = epochs[-1]
    inside = Lsn.of(last.epoch, rng.randint(1, max(1, last.records)))
    late = rng.random() < 0.3
    window = rng.choice([8, 16, 64])
    start = rng.choice(starts)
    end = rng.choice([LSN_MAX, LSN_MAX, inside, Lsn.of(last.epoch + 1, 0)])
    return ReaderPlan(
        start=start,
        end=max(end, start.next),
        starts_at_ms=rng.randint(0, fault_phase_ms) if late else rng.randint(0, 50),
        location=Location.parse(rng.choice(["", "r0", "r0.d0.c0.w0.k0", "r1.d0.c0.w1", "r9"])),
        shuffle_seed=rng.choice([None, 0, rng.randint(1, 1 << 60)]),
        time_range=_draw_time_range(rng, fault_phase_ms),
        headers_only=rng.random() < 0.1,
        force_all_send_all=rng.random() < 0.05,
        settings=draw_settings(rng, window),
        ends_by=rng.choice([GapType.ACCESS, GapType.NOTINCONFIG]) if rng.random() < 0.05 else None,
    )


def _draw_time_range(rng: random.Random, fault_phase_ms: int) -> TimeRange | None:
    if rng.random() < 0.85:
        return None
    start_ms = rng.randint(0, fault_phase_ms // 2)
    return TimeRange(start_ms, rng.randint(start_ms + 1, fault_phase_ms))


def draw_settings(rng: random.Random, window: int) -> ReadStreamSettings:
    scd_timeout_ms = rng.choice([300, 1_000, 3_000])
    return ReadStreamSettings(
        window_lsns=window,
        window_slide_share=rng.choice([0.0, 0.5, 0.7, 1.0]),
        window_bytes=rng.choice([300, 2_000, 1 << 20, 1 << 20]),
        gap_grace_ms=rng.choice([0, 20, 100]),
        gap_grace_limit=rng.choice([-1, 0, 2]),
        started_timeout_ms=rng.choice([300, 1_000]),
        stall_grace_ms=1_000,
        reconnect_delay_ms_min=10,
        reconnect_delay_ms_max=rng.choice([100, 1_000]),
        metadata_retry_ms_min=20,
        metadata_retry_ms_max=500,
        rewind_delay_ms_min=1,
        rewind_delay_ms_max=rng.choice([50, 500]),
        rewind_delay_decay=0.1,
        scd_timeout_ms=scd_timeout_ms,
        all_send_all_timeout_ms=scd_timeout_ms * rng.choice([1, 2]),
        slow_node_detection=rng.choice(["disabled", "observe", "enabled", "enabled"]),
        slow_node_floor_ms=rng.choice([5, 50]),
        slow_node_average_ms=5_000,
        slow_node_margin=rng.choice([0.0, 1.0, 10.0]),
        slow_node_margin_decay_per_s=0.25,
        slow_node_probation_ms_min=200,
        slow_node_probation_ms_max=2_000,
        slow_node_probation_decay=0.25,
        skip_partially_trimmed=rng.random() < 0.8,
    )
