"""One run from a seed: faults, healing, convergence, verdict."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

from logdevice.simulation.injector import Injector
from logdevice.simulation.reading import checkers
from logdevice.simulation.reading.audit import CLEAN_RECORDS, Audit
from logdevice.simulation.reading.cluster import OracleCluster
from logdevice.simulation.reading.injector import ReadInjector
from logdevice.simulation.reading.plan import Plan
from logdevice.simulation.reading.read_cluster import ReadCluster
from logdevice.simulation.reading.reader import SimulatedReader
from logdevice.simulation.world import World
from logdevice.types import Lsn

SAMPLE_MS = 500
STEP_MS = 250
SETTLE_MS = 8_000  # every fault ends within this time
CONVERGE_MS = 60_000
VIOLATIONS_ENOUGH = 20  # a run that goes this wrong is not worth finishing


class SeenEnoughError(Exception):
    """Ends a run early, because it has enough violations."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    seed: int
    events: int
    violations: tuple[str, ...]
    records: int  # accepted by readers
    gaps: int
    rewinds: int


class Run:
    """Plays the phases of a run and decides when checks are made."""

    def __init__(self, cluster: ReadCluster, injector: Injector) -> None:
        self.cluster, self.world = cluster, cluster.world
        self._injector = injector
        self._next_look_ms = SAMPLE_MS

    def play(self) -> RunOutcome:
        try:
            self.cluster.start()
            self._injector.tick()
            self._run_for(self.cluster.reading.fault_phase_ms)
            self._injector.heal()
            self._converge()
            self._judge()
        except SeenEnoughError:
            pass
        except Exception as error:
            # A failed assertion in a machine is a broken promise, too.
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
            self.cluster.witness.complain("machine", text)
            if self.world.trace is not None:
                self.world.trace.extend(traceback.format_exc().splitlines())
        readers = self.cluster.readers
        return RunOutcome(
            seed=self.cluster.reading.seed,
            events=self.world.events,
            violations=tuple(self.cluster.witness.violations),
            records=sum(len(reader.view.records) for reader in readers),
            gaps=sum(len(reader.view.gaps) for reader in readers),
            rewinds=sum(reader.stream.health(self.world.now_ms).rewinds for reader in readers),
        )

    def _converge(self) -> None:
        raise NotImplementedError

    def _judge(self) -> None:
        raise NotImplementedError

    def _observe(self) -> None:
        """Checks that are made at regular times."""

    def _run_for(self, duration_ms: int) -> None:
        end_ms = self.world.now_ms + duration_ms
        while self.world.now_ms < end_ms:
            if len(self.cluster.witness.violations) >= VIOLATIONS_ENOUGH:
                raise SeenEnoughError
            self.world.run_until(min(end_ms, self._next_look_ms))
            if self.world.now_ms >= self._next_look_ms:
                self._next_look_ms += SAMPLE_MS
                self._observe()

    def _run_while(self, is_unfinished: Callable[[], object]) -> None:
        deadline_ms = self.world.now_ms + CONVERGE_MS
        while is_unfinished() and self.world.now_ms < deadline_ms:
            self._run_for(STEP_MS)


def simulate(seed: int, trace: list[str] | None = None) -> RunOutcome:
    plan = Plan.draw(seed)
    return ReadRun(OracleCluster(plan, World(seed, trace, plan.faults))).play()


class ReadRun(Run):
    """A run of the read path alone, on a log that an oracle writes."""

    cluster: OracleCluster
    _injector: ReadInjector

    def __init__(self, cluster: OracleCluster) -> None:
        super().__init__(cluster, ReadInjector(cluster))
        self._heads: dict[str, Lsn] = {}
        self._is_settled = False
        self._released_end = Lsn(0)  # at the last check: readers may not know of newer releases yet

    def _converge(self) -> None:
        self._settle()
        self._is_settled = True
        self._play_audits()
        truth, readers = self.cluster.truth, self.cluster.readers
        self._run_while(lambda: any(checkers.not_converged(truth, reader.view) for reader in readers))

    def _settle(self) -> None:
        config = self.cluster.read_config
        self.cluster.change_config(replace(config, scd=self.cluster.plan.scd), at_once=True)
        self._run_for(SETTLE_MS)
        self._run_while(lambda: not self.cluster.sequencer.is_done)
        assert self.cluster.sequencer.is_done, "the sequencer did not finish"
        gone = {self._injector.gone}
        assert not set(self.cluster.truth.rebuilding_since_ms) - gone, "a node is still rebuilding"
        assert not set(self.cluster.statuses) - gone, f"statuses have not settled: {self.cluster.statuses}"
        if self.world.chance(0.5):
            self.cluster.repair.mend_checksums()

    def _play_audits(self) -> None:
        """Two new readers on new records: first no node fails, then exactly one does."""
        audit = Audit(self.cluster, self._run_for)
        start = self.cluster.sequencer.write_more(CLEAN_RECORDS)
        self._run_for(SAMPLE_MS)  # every node learns of the release
        if self.cluster.read_config.scd and not self.cluster.statuses:
            audit.with_all_nodes(start)
            audit.with_one_node_failing()

    def _judge(self) -> None:
        witness = self.cluster.witness
        for reader in self.cluster.readers:
            witness.complain(reader.name, checkers.not_converged(self.cluster.truth, reader.view))
        witness.compare([reader.view for reader in self.cluster.readers])

    def _observe(self) -> None:
        for reader in self.cluster.readers:
            if not reader.view.is_ended:
                self._observe_reader(reader)
        self._released_end = self.cluster.truth.released_end

    def _observe_reader(self, reader: SimulatedReader) -> None:
        health = reader.stream.health(self.world.now_ms)
        if self._heads.get(reader.name) == health.head:
            complaint = checkers.stall_without_cause(
                health,
                has_unread=reader.has_unread,
                released_end=self._released_end,
                is_settled=self._is_settled,
            )
            self.cluster.witness.complain(reader.name, complaint)
        self._heads[reader.name] = health.head
