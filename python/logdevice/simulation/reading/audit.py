"""Checks the cost of single-copy delivery, with new records and readers after the cluster has healed.

If no node fails, each record is sent once and nothing is rewound. If exactly one node fails, reading goes on
without all-send-all, and once the node is back it is no longer known down. Other faults would hide these
promises, so there are none.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.settings import ReadStreamSettings
from logdevice.simulation.reading import checkers
from logdevice.simulation.reading.cluster import OracleCluster
from logdevice.simulation.reading.plan import ReaderPlan
from logdevice.simulation.reading.reader import SimulatedReader
from logdevice.types import Location, Lsn

CLEAN_RECORDS = 80
WINDOW_LSNS = 16
PATIENCE_MS = 10_000
STEP_MS = 100


class Audit:
    def __init__(self, cluster: OracleCluster, run_for: Callable[[int], None]) -> None:
        self._cluster = cluster
        self._run_for = run_for

    def with_all_nodes(self, start: Lsn) -> None:
        witness, rng = self._cluster.witness, self._cluster.world.rng
        location = Location.parse("r0.d0.c0.w0.k0")
        end = self._cluster.truth.last_end
        reader = self._read("auditor", start, end, location, shuffle_seed=rng.choice([None, 0, 99]))
        self._wait_until(lambda: reader.view.is_ended)
        rewinds = reader.stream.health(self._cluster.world.now_ms).rewinds
        wire = witness.wire.get(reader.name, {})
        witness.complain(reader.name, checkers.wasted_copies(reader.view, wire, rewinds=rewinds))

    def with_one_node_failing(self) -> None:
        """A node fails before the reader starts or while it reads, and is back before the reader's end."""
        cluster, world = self._cluster, self._cluster.world
        start = cluster.sequencer.write_more(CLEAN_RECORDS)
        half = cluster.truth.last_end
        metadata = cluster.truth.metadata_of(start.epoch)
        victim = cluster.nodes[world.rng.choice(metadata.nodeset)]
        self._run_for(STEP_MS * 5)
        process, is_hang = victim.process, world.chance(0.5)
        fail, mend = (process.hang, process.wake) if is_hang else (victim.crash, process.begin_life)
        end = Lsn(half + CLEAN_RECORDS)
        is_sudden = world.chance(0.5)
        if not is_sudden:
            fail()
        reader = self._read("limper", start, end, Location(), shuffle_seed=None)
        if is_sudden:
            self._wait_until(lambda: reader.view.next is not None and reader.view.next > start + 5, step_ms=1)
            fail()
        if metadata.replication.copies > 1:
            self._wait_until(lambda: reader.view.next is not None and reader.view.next >= half)
            complaint = checkers.left_scd_needlessly(
                reader.view, victim.id, copies=metadata.replication.copies
            )
            cluster.witness.complain(reader.name, complaint)
        mend()
        self._run_for(STEP_MS * 20)  # the node is reachable again before there is more to read
        assert cluster.sequencer.write_more(CLEAN_RECORDS) == half, "only the oracle writes to the log"
        self._wait_until(lambda: reader.view.is_ended)
        judged = cluster.truth.slots_in(half, Lsn(end - 3 * WINDOW_LSNS))
        if any(slot.record.copyset[0] == victim.id for slot in judged):
            health = reader.stream.health(world.now_ms)
            cluster.witness.complain(reader.name, checkers.not_forgiven(victim.id, health))

    def _read(
        self, name: str, start: Lsn, end: Lsn, location: Location, *, shuffle_seed: int | None
    ) -> SimulatedReader:
        # Long waits for everything except a silent node, so that each failover has exactly one cause.
        settings = ReadStreamSettings(
            window_lsns=WINDOW_LSNS,
            scd_timeout_ms=400,
            all_send_all_timeout_ms=6_000,
            slow_node_detection="disabled",
            reconnect_delay_ms_max=500,
        )
        plan = ReaderPlan(
            start=start,
            end=end,
            starts_at_ms=self._cluster.world.now_ms,
            location=location,
            shuffle_seed=shuffle_seed,
            settings=settings,
        )
        return self._cluster.add_reader(name, plan)

    def _wait_until(self, is_done: Callable[[], bool], *, step_ms: int = STEP_MS) -> None:
        deadline_ms = self._cluster.world.now_ms + PATIENCE_MS
        while not is_done() and self._cluster.world.now_ms < deadline_ms:
            self._run_for(step_ms)
