"""Everything that a seed decides about a run with a chain log, before it starts."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields, replace

from logdevice.protocol.sequencer.events import ChainConfig, SequencerConfig
from logdevice.settings import ChainSettings
from logdevice.simulation.cluster.plan import ClientPlan, ClusterPlan
from logdevice.simulation.reading.oracle import satisfies
from logdevice.types import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan(ClusterPlan):
    """The plan of one run."""

    chain: ChainConfig
    store_timeout_ms: int  # of clients, for one node
    plain_share: float  # share of appends that are sent to the sequencer with their bodies
    client_deaths_per_s: float
    suspicions_per_s: float  # how often a living node is reported as away

    @classmethod
    def draw(cls, seed: int) -> ChainPlan:
        base = ClusterPlan.draw(seed)
        rng = random.Random(f"chain plan {seed}")
        values = {item.name: getattr(base, item.name) for item in fields(ClusterPlan)}
        fault_phase_ms = base.reading.fault_phase_ms
        values |= {
            "extras": 0,
            "sync_leaders": 1,
            "leaders": None,
            "clients": tuple(_draw_client(rng, fault_phase_ms) for _ in range(rng.choice([2, 3, 4]))),
            "nodesets": _draw_nodesets(rng, base),
            # An epoch, and with it the received table, may be on a single node.
            "writers": tuple(replace(writer, may_be_forgotten=True) for writer in base.writers),
        }
        look_ms = rng.choice([30, 100, 400])
        chain = ChainConfig(chains=rng.choice([1, 1, 2, 3]), min_copies=rng.choice([1, 1, 2]))
        values["chain_settings"] = ChainSettings(
            chain_look_ms=look_ms,
            chain_fill_ms=look_ms + rng.choice([1, 100, 800]),
            chain_answer_ms=rng.choice([40, 200, 800]),
            chain_attempts_max=rng.choice([1, 2, 4]),
            chain_suspicion_ms=rng.choice([200, 2_000]),
            chain_regrow_ms=rng.choice([200, 1_000]),
        )
        return cls(
            **values,
            chain=chain,
            store_timeout_ms=rng.choice([50, 200, 1_000]),
            plain_share=rng.choice([0.0, 0.1, 0.5]),
            client_deaths_per_s=rng.choice([0.0, 0.5, 3.0]),
            suspicions_per_s=rng.choice([0.0, 0.5, 2.0]),
        )

    def config(self, nodeset: tuple[NodeId, ...]) -> SequencerConfig:
        return replace(ClusterPlan.config(self, nodeset), chain=self.chain)


def _draw_client(rng: random.Random, fault_phase_ms: int) -> ClientPlan:
    appends = rng.randint(15, 50)
    burst_max = rng.choice([1, 3, 8])
    return ClientPlan(
        appends=appends,
        pause_ms_max=2 * fault_phase_ms * burst_max // appends,
        in_flight_max=rng.choice([1, 4, 10]),
        burst_max=burst_max,
        patience_ms=rng.choice([800, 3_000]),
    )


def _draw_nodesets(rng: random.Random, base: ClusterPlan) -> tuple[tuple[NodeId, ...], ...]:
    """Draws nodesets, often with as many nodes as copies: then a chain that loses one gets shorter."""
    if rng.random() < 0.4:
        return base.nodesets
    ids, copies = sorted(base.reading.locations), base.replication.copies
    drawn = [tuple(sorted(rng.sample(ids, copies))) for _ in range(3)]
    fitting = [each for each in drawn if satisfies(each, base.replication, base.reading.locations)]
    return tuple(dict.fromkeys(fitting)) or base.nodesets
