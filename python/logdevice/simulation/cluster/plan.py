"""Everything that a seed decides before a run of the whole cluster starts. Drawn once, never changed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from logdevice.protocol.sequencer.copysets import Candidates
from logdevice.protocol.sequencer.events import SequencerConfig
from logdevice.settings import ChainSettings, NodeReadSettings, RecoverySettings, WriteSettings
from logdevice.simulation.faults import CLUSTER, Faults
from logdevice.simulation.reading.oracle import satisfies
from logdevice.simulation.reading.plan import Plan, ReaderPlan, draw_settings
from logdevice.types import LSN_MAX, LSN_OLDEST, Epoch, Location, Lsn, NodeId, Replication, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan:
    appends: int
    pause_ms_max: int  # between two appends
    in_flight_max: int
    burst_max: int  # appends at once
    patience_ms: int  # for one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    """A writer whose appends have tags."""

    appends: int
    pause_ms_max: int
    burst_max: int
    unsettled_max: int
    window_max: int
    resend_ms: int
    is_ordered: bool
    has_journal: bool  # it keeps unsettled appends on a disk
    strikes_per_s: float  # how often it dies, or its successor starts while it lives
    may_be_forgotten: bool  # the log may forget this writer


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The plan of one run."""

    reading: Plan  # the part for readers, and what all plans have: seed, locations, faults
    nodesets: tuple[tuple[NodeId, ...], ...]  # the first nodeset of the log, and others for changes
    replication: Replication
    extras: int
    sync_leaders: int
    leaders: int | None
    clients: tuple[ClientPlan, ...]
    writers: tuple[WriterPlan, ...]
    write_settings: WriteSettings
    chain_settings: ChainSettings = field(default_factory=ChainSettings)
    recovery_settings: RecoverySettings

    @classmethod
    def draw(cls, seed: int) -> ClusterPlan:
        rng = random.Random(f"cluster plan {seed}")
        locations = _draw_locations(rng)
        replication = _draw_replication(rng, locations)
        fault_phase_ms = rng.choice([1_500, 3_000, 5_000])
        extras = rng.choice([0, 0, 0, 1, 2])
        # Writers have their own random source, so that drawing them does not change the rest of the plan.
        tags = random.Random(f"writers {seed}")
        writers_max = tags.choice([10_000, 10_000, 10_000, 1])
        writers = _draw_writers(tags, fault_phase_ms, writers_max)
        return cls(
            reading=_draw_reading(rng, seed, locations, fault_phase_ms),
            nodesets=_draw_nodesets(rng, locations, replication),
            replication=replication,
            extras=extras,
            sync_leaders=rng.choice([1, 1, 1, 2]) if replication.copies > 1 else 1,
            leaders=rng.choice([None, None, 1]),
            clients=tuple(_draw_client(rng, fault_phase_ms) for _ in range(rng.choice([1, 2, 2, 3]))),
            writers=writers,
            write_settings=replace(
                _draw_write_settings(rng),
                writers_max=writers_max,
                writer_window_max=tags.choice([2, 64]),
                writers_keep_ms=tags.choice([0, 20, 1_000]),
                writers_keep_records=tags.choice([1, 10, 4_096]),
            ),
            recovery_settings=_draw_recovery_settings(rng),
        )

    def config(self, nodeset: tuple[NodeId, ...]) -> SequencerConfig:
        return SequencerConfig(
            nodeset=nodeset,
            replication=self.replication,
            candidates=Candidates(locations=self.reading.locations),
            extras=self.extras,
            sync_leaders=self.sync_leaders,
            leaders=self.leaders,
        )


def _draw_locations(rng: random.Random) -> dict[NodeId, Location]:
    racks = rng.randint(2, 3)
    return {
        NodeId(index): Location.parse(f"r0.d0.c0.w0.k{index % racks}")
        for index in range(rng.choice([3, 4, 5, 5, 6]))
    }


def _draw_replication(rng: random.Random, locations: dict[NodeId, Location]) -> Replication:
    copies = rng.choice([2, 2, 3, 3, 3])
    factors = {Scope.NODE: copies}
    if len(locations) >= 4 and rng.random() < 0.25:
        factors[Scope.RACK] = 2
    return Replication.of(factors)


def _draw_nodesets(
    rng: random.Random, locations: dict[NodeId, Location], replication: Replication
) -> tuple[tuple[NodeId, ...], ...]:
    ids = sorted(locations)
    nodesets = [tuple(ids)]
    for _ in range(2):
        drawn = tuple(sorted(rng.sample(ids, rng.randint(replication.copies, len(ids)))))
        if satisfies(drawn, replication, locations):
            nodesets.append(drawn)
    rng.shuffle(nodesets)
    return tuple(nodesets)


def _draw_client(rng: random.Random, fault_phase_ms: int) -> ClientPlan:
    appends = rng.randint(20, 80)
    burst_max = rng.choice([1, 3, 10])
    return ClientPlan(
        appends=appends,
        pause_ms_max=2 * fault_phase_ms * burst_max // appends,
        in_flight_max=rng.choice([1, 5, 20]),
        burst_max=burst_max,
        patience_ms=rng.choice([200, 1_000, 3_000]),
    )


def _draw_writers(rng: random.Random, fault_phase_ms: int, writers_max: int) -> tuple[WriterPlan, ...]:
    count = rng.choice([0, 1, 2, 3])
    return tuple(
        _draw_writer(rng, fault_phase_ms, may_be_forgotten=count > writers_max) for _ in range(count)
    )


def _draw_writer(rng: random.Random, fault_phase_ms: int, *, may_be_forgotten: bool) -> WriterPlan:
    appends = rng.randint(20, 80)
    burst_max = rng.choice([1, 4, 10])
    return WriterPlan(
        appends=appends,
        pause_ms_max=max(1, fault_phase_ms * burst_max // appends),
        burst_max=burst_max,
        unsettled_max=rng.choice([1, 10, 30]),
        window_max=rng.choice([1, 4, 64]),
        resend_ms=rng.choice([50, 200, 1_000]),
        is_ordered=rng.random() < 0.7,
        has_journal=rng.random() < 0.5,
        strikes_per_s=rng.choice([0.0, 0.0, 0.5, 2.0]),
        may_be_forgotten=may_be_forgotten,
    )


def _draw_reading(
    rng: random.Random, seed: int, locations: dict[NodeId, Location], fault_phase_ms: int
) -> Plan:
    scd = rng.random() < 0.85
    return Plan(
        seed=seed,
        locations=locations,
        scd=scd,
        local_scd=scd and rng.random() < 0.2,
        readers=tuple(_draw_reader(rng, fault_phase_ms) for _ in range(rng.choice([1, 2, 2]))),
        faults=Faults.draw(rng, CLUSTER),
        fault_phase_ms=fault_phase_ms,
        node_settings=NodeReadSettings(
            read_bytes_max=rng.choice([1, 500, 1 << 20]),
            read_time_ms_max=100,
            send_queue_bytes_max=rng.choice([200, 2 << 20]),
        ),
        examined_max=rng.choice([None, None, 3]),
    )


def _draw_reader(rng: random.Random, fault_phase_ms: int) -> ReaderPlan:
    return ReaderPlan(
        start=rng.choice([LSN_OLDEST, LSN_OLDEST, Lsn.of(Epoch(1), 1), Lsn.of(Epoch(2), 1)]),
        end=LSN_MAX,
        starts_at_ms=rng.choice([0, 50, rng.randint(0, fault_phase_ms)]),
        location=Location.parse(rng.choice(["", "r0", "r0.d0.c0.w0.k0"])),
        shuffle_seed=rng.choice([None, 0, 7]),
        force_all_send_all=rng.random() < 0.05,
        settings=draw_settings(rng, rng.choice([8, 64])),
    )


def _draw_write_settings(rng: random.Random) -> WriteSettings:
    return WriteSettings(
        window_records_max=rng.choice([3, 20, 1_000]),
        store_timeout_ms_min=rng.choice([20, 60, 200]),
        store_timeout_ms_max=rng.choice([500, 2_000]),
        immediate_waves_max=rng.choice([1, 3]),
        leader_retries_max=rng.choice([0, 2]),
        sticky_bytes_max=rng.choice([1, 1, 2_000, 1 << 20]),
        slow_store_penalty_ms=rng.choice([100, 2_000]),
        slow_nodes_share_max=rng.choice([0.25, 0.5]),
        overloaded_penalty_ms=100,
        no_space_penalty_ms=rng.choice([200, 1_000]),
        rebuilding_penalty_ms=500,
        unreachable_penalty_ms=rng.choice([100, 1_000]),
        activation_timeout_ms=rng.choice([100, 1_000]),
        activation_pause_ms_min=rng.choice([10, 100]),
        activation_pause_ms_max=1_000,
        tail_wait_ms=rng.choice([100, 1_000, 1_000]),
        draining_timeout_ms=rng.choice([0, 100, 2_000]),
        release_interval_ms=rng.choice([0, 2, 20]),
        release_repeat_ms=rng.choice([200, 1_000]),
    )


def _draw_recovery_settings(rng: random.Random) -> RecoverySettings:
    return RecoverySettings(
        retry_ms_min=rng.choice([20, 100]),
        retry_ms_max=rng.choice([300, 1_000]),
        digest_grace_ms=rng.choice([0, 20, 100]),
        digest_bytes_max=rng.choice([1, 300, 4 << 20]),
        mutations_max=rng.choice([1, 4, 64]),
        recovery_timeout_ms=rng.choice([300, 2_000]),
        state_flush_ms=rng.choice([1, 50, 1_000]),
    )
