"""Runs workloads one after the other. If one fails or hangs, the results say so, and the others go on."""

from __future__ import annotations

import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from logdevice.bench.against_kafka import facts
from logdevice.bench.against_kafka.kafka import KafkaCluster
from logdevice.bench.against_kafka.results import FailedCase, Results
from logdevice.bench.against_kafka.workload import NODES, REPLICATION, Sizes, Stand, Value, Workload
from logdevice.cli.commands import clusters
from logdevice.cli.local.local_cluster import LocalCluster

SET_UP_LIMIT_S: Final = 180.0
RECOVER_LIMIT_S: Final = 60.0

Say = Callable[[str], None]


class TimeUp(BaseException):
    """The time is up. Not an Exception, so that libraries that retry after any of those do not swallow it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeUp in the main thread if the block takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeUp(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def stand_for(directory: Path, sizes: Sizes) -> Iterator[Stand]:
    """Both systems on this machine and the same disk. Afterwards they are ended and their data is removed."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    logdevice = LocalCluster.create(directory / "logdevice", nodes=NODES, replication=REPLICATION)
    kafka = KafkaCluster.create(directory / "kafka", brokers=NODES)
    stand = Stand(logdevice, kafka, directory, sizes)
    with ExitStack() as afterwards:  # each of these steps is done, even if another fails
        afterwards.callback(shutil.rmtree, directory, ignore_errors=True)
        afterwards.callback(stand.kill_spark)
        afterwards.callback(logdevice.kill_all)
        afterwards.callback(kafka.kill_all)
        with at_most(SET_UP_LIMIT_S):
            clusters.bring_up(logdevice)
            kafka.bring_up()
        yield stand


@dataclass(slots=True)
class BenchRun:
    """One run of some workloads. `values` and `failures` hold what it has measured so far."""

    workloads: Sequence[Workload]
    sizes: Sizes
    limit_s: float  # for one workload
    expected_s: dict[str, float]  # roughly how long each takes, to show the time that is left
    say: Say
    recover: Callable[[Stand], None]  # puts everything in order after a failure
    values: list[Value] = field(default_factory=list)
    failures: list[FailedCase] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def run(self, directory: Path, keep: Callable[[Results], None]) -> Results:
        """Runs all workloads. `keep` is called with the results so far after each."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._progress("starting both systems", 0)
        with stand_for(directory, self.sizes) as stand:
            for number in range(len(self.workloads)):
                self.measure(stand, number)
                found = self._results(stand, started)
                keep(found)
        return found

    def _results(self, stand: Stand, started: str) -> Results:
        return Results(
            machine=facts.machine(stand.directory),
            versions=facts.versions(stand.kafka.jars),
            settings=facts.settings(self.sizes),
            started=started,
            seconds=round(time.monotonic() - self._started, 1),
            values=tuple(self.values),
            failures=tuple(self.failures),
        )

    def measure(self, stand: Stand, number: int) -> None:
        """Runs one workload from its beginning to its end."""
        workload = self.workloads[number]
        try:
            with at_most(self.limit_s):
                self._progress(f"{workload.name}: loading, warming up", number)
                workload.prepare(stand)
                for repetition in range(self.sizes.repetitions):
                    words = f"{workload.name}: repetition {repetition + 1} of {self.sizes.repetitions}"
                    self._progress(words, number)
                    self.values += workload.repeat(stand, repetition)
        except (Exception, TimeUp) as problem:
            self._failed(workload, problem)
            self._afterwards(self.recover, stand, workload)
        self._afterwards(workload.finish, stand, workload)

    def _afterwards(self, step: Callable[[Stand], None], stand: Stand, workload: Workload) -> None:
        try:
            with at_most(RECOVER_LIMIT_S):
                step(stand)
        except (Exception, TimeUp) as problem:
            self._failed(workload, problem)

    def _failed(self, workload: Workload, problem: BaseException) -> None:
        first = _first(problem)
        error = f"{type(first).__name__}: {first}".strip()
        self.failures.append(FailedCase(workload.name, error.splitlines()[0][:300]))
        self.say("".join(traceback.format_exception(problem)))

    def _progress(self, words: str, number: int) -> None:
        passed = time.monotonic() - self._started
        left = sum(self.expected_s.get(workload.name, 60.0) for workload in self.workloads[number:])
        self.say(f"[{passed // 60:.0f}:{passed % 60:02.0f}] {words} (about {left / 60:.0f} min left)")


def _first(problem: BaseException) -> BaseException:
    """The TimeUp that caused other errors, if there is one: Spark's client raises many errors after it."""
    found: BaseException | None = problem
    while found is not None and not isinstance(found, TimeUp):
        found = found.__context__
    return found or problem


def recover(stand: Stand) -> None:
    """After a failure: ends Spark, so that the next workload gets a new one, and starts missing processes."""
    stand.kill_spark()
    clusters.start(stand.logdevice)
    stand.kafka.restart_missing()
