"""One run of a log with losses, restores and re-creations: checks what consumers are told.

I9: below the safe LSN that a consumer is told, the log still has everything as it was read. I11: the version
of a lineage never goes back. After clean failovers no consumer must undo anything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from logdevice.protocol.lineage import Held, lost_ranges, rollback_point
from logdevice.simulation.histories.log import COPIES, SimulatedLog
from logdevice.simulation.reading.run import RunOutcome
from logdevice.types import LSN_OLDEST, Gap, GapType, LogId, Lsn

STEPS = 80


@dataclass(slots=True)
class Consumer:
    held: Held
    copy: dict[Lsn, bytes]


class HistoriesRun:
    def __init__(self, seed: int, trace: list[str] | None = None) -> None:
        self.violations: list[str] = []
        self.rollbacks = 0
        self._seed, self._trace = seed, trace
        self._rng = random.Random(f"histories {seed}")
        self._log = SimulatedLog(self._rng, LogId(1))
        self._consumers: list[Consumer] = []
        self._appended = 0

    def play(self) -> RunOutcome:
        kinds = (
            (12, self._append),
            (5, self._read),
            (2, self._fail_over),
            (1, self._lose),
            (1, self._recover_without_some),
            (0.3, self._restore),
            (0.3, self._make_again),
        )
        weights, steps = [weight for weight, _ in kinds], [step for _, step in kinds]
        for _ in range(STEPS):
            (step,) = self._rng.choices(steps, weights)
            step()
        self._check_all()
        return RunOutcome(
            seed=self._seed,
            violations=tuple(self.violations),
            events=STEPS,
            records=self._appended,
            gaps=0,
            rewinds=self.rollbacks,
        )

    def _say(self, words: str) -> None:
        if self._trace is not None:
            self._trace.append(words)

    def _append(self) -> None:
        self._appended += 1
        lsn = self._log.append(b"%d" % self._appended)
        self._say(f"{lsn} is record {self._appended}")

    def _read(self) -> None:
        """A new consumer reads up to a random place and keeps its position."""
        content = sorted(self._log.content().items())
        if content:
            taken = content[: self._rng.randint(1, len(content))]
            held = Held(next=taken[-1][0].next, lineage=self._log.state.lineage.id)
            self._consumers.append(Consumer(held, dict(taken)))

    def _fail_over(self) -> None:
        before = self._log.state.lineage
        self._log.fail_over()
        self._say(f"epoch {self._log.state.epoch} after a clean failover")
        if not self._log.lost and self._log.state.lineage != before:
            self.violations.append(f"a clean failover has branched the history: {self._log.state.lineage}")
        self._check_all()

    def _lose(self) -> None:
        count = self._rng.randint(1, max(1, len(self._log.nodes) - 1))
        gone = self._rng.sample(sorted(self._log.nodes), count)
        self._log.give_up(gone)
        self._say(f"{gone} are given up")
        self._log.fail_over()
        self._check_all()

    def _recover_without_some(self) -> None:
        """Recovers without some nodes, which then come back and purge; enough others stay (V22)."""
        there = [node for node in self._log.state.metadata.nodeset if node in self._log.nodes]
        if len(there) > COPIES:
            away = self._rng.sample(there, self._rng.randint(1, len(there) - COPIES))
            self._log.fail_over(frozenset(away))
            self._say(f"epoch {self._log.state.epoch} is begun without {away}")
            self._check_all()

    def _restore(self) -> None:
        content = self._log.content()
        self._make_again()
        for _, body in sorted(content.items()):
            self._log.append(body)
        self._check_all()

    def _make_again(self) -> None:
        self._check_version()
        self._log = SimulatedLog(self._rng, LogId(self._log.number + 1))
        self._say(f"the log is made again as {self._log.number}")
        self._check_all()

    def _check_version(self) -> None:
        if self._log.versions != sorted(self._log.versions):
            self.violations.append(f"I11: the version of the lineage went back: {self._log.versions}")

    def _check_all(self) -> None:
        self._check_version()
        content, lineage = self._log.content(), self._log.state.lineage
        for consumer in self._consumers:
            point = rollback_point(lineage, consumer.held)
            gone = [lsn for lsn, body in consumer.copy.items() if content.get(lsn) != body]
            safe = consumer.held.next if point is None else point
            if any(lsn < safe for lsn in gone):
                self.violations.append(
                    f"I9: {consumer.held} is told that everything below {safe} holds, and {min(gone)} is gone"
                )
            if point is None:
                continue
            self._say(f"{consumer.held} has to look from {point} on: {gone} are gone")
            if lineage.common_end(consumer.held.lineage, Lsn(0)) is None:
                consumer.held, consumer.copy = Held(next=LSN_OLDEST, lineage=lineage.id), {}
                continue
            gaps = (Gap(GapType.DATALOSS, lsn, lsn.next) for lsn in gone)
            lost = lost_ranges(gaps, consumer.held.next)
            self.rollbacks += bool(lost)
            end = lost[0].start if lost else consumer.held.next
            consumer.held = replace(consumer.held, next=end, lineage=lineage.id)
            consumer.copy = {lsn: body for lsn, body in consumer.copy.items() if lsn < end}


def simulate_histories(seed: int, trace: list[str] | None = None) -> RunOutcome:
    return HistoriesRun(seed, trace).play()
