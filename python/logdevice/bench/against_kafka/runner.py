"""Runs workloads one after the other. One that fails or hangs is named in the results; the others go on."""

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
    """No Exception: libraries that try again after any of those must not swallow it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeUp in the main thread when the block takes longer."""

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
    """Both systems on this machine, on the same disk; gone afterwards, with all they held."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    logdevice = LocalCluster.create(directory / "logdevice", nodes=NODES, replication=REPLICATION)
    kafka = KafkaCluster.create(directory / "kafka", brokers=NODES)
    stand = Stand(logdevice, kafka, directory, sizes)
    with ExitStack() as afterwards:  # every one of these steps, whatever comes of the others
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
    """One run of some workloads; what it has measured so far is there at any time."""

    workloads: Sequence[Workload]
    sizes: Sizes
    limit_s: float  # for one workload
    expected_s: dict[str, float]  # how long each takes, roughly: for those who wait
    say: Say
    recover: Callable[[Stand], None]  # puts everything in order after a failure
    values: list[Value] = field(default_factory=list)
    failures: list[FailedCase] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def run(self, directory: Path, keep: Callable[[Results], None]) -> Results:
        """What there is so far is kept after every workload."""
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
        """One of the workloads, from its beginning to its end."""
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
    """TimeUp, if all else is what became of it on its way up: Spark's client then says many things."""
    found: BaseException | None = problem
    while found is not None and not isinstance(found, TimeUp):
        found = found.__context__
    return found or problem


def recover(stand: Stand) -> None:
    """After a failure: a new Spark for the next workload, and everybody there."""
    stand.kill_spark()
    clusters.start(stand.logdevice)
    stand.kafka.restart_missing()
