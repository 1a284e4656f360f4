"""Runs with workloads that fail, hang or cannot clean up."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from logdevice.bench.against_kafka.kafka import KafkaCluster
from logdevice.bench.against_kafka.kafka_clients import Jars
from logdevice.bench.against_kafka.runner import BenchRun, TimeUp, at_most
from logdevice.bench.against_kafka.workload import QUICK, Stand, Value, Workload, in_turn
from logdevice.cli.local.local_cluster import LocalCluster


@dataclass(slots=True)
class Scripted:
    """A workload that notes its calls, and fails or hangs in the repetitions that the test names."""

    name: str
    fails_in: int | None = None
    hangs_in: int | None = None
    cannot_finish: bool = False
    calls: list[str] = field(default_factory=list)

    def prepare(self, stand: Stand) -> None:
        self.calls.append("prepare")

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        self.calls.append(f"repeat {repetition}")
        yield Value(self.name, "case", "logdevice", repetition, "rows_per_s", "rows/s", 1.0)
        if repetition == self.fails_in:
            raise ValueError("no\nsuch thing")
        if repetition == self.hangs_in:
            try:
                time.sleep(30)
            finally:  # as a client does that fails to close its connection
                raise OSError("no connection")

    def finish(self, stand: Stand) -> None:
        self.calls.append("finish")
        if self.cannot_finish:
            raise OSError("still there")


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    """A stand whose systems are not running."""
    logdevice = LocalCluster.create(tmp_path / "logdevice", nodes=1)
    kafka = KafkaCluster(tmp_path, [], Jars(tmp_path, tmp_path))
    return Stand(logdevice, kafka, tmp_path, QUICK)


def run(stand: Stand, *workloads: Workload, limit_s: float = 60.0) -> tuple[BenchRun, list[str]]:
    said: list[str] = []
    made = BenchRun(
        workloads=workloads,
        sizes=QUICK,
        limit_s=limit_s,
        expected_s={},
        say=said.append,
        recover=lambda stand: said.append("recovered"),
    )
    for number in range(len(workloads)):
        made.measure(stand, number)
    return made, said


def test_every_workload_is_prepared_repeated_and_finished(stand: Stand) -> None:
    first, second = Scripted("first"), Scripted("second")
    made, said = run(stand, first, second)
    repetitions = [f"repeat {number}" for number in range(QUICK.repetitions)]
    assert first.calls == second.calls == ["prepare", *repetitions, "finish"]
    assert len(made.values) == 2 * QUICK.repetitions
    assert not made.failures
    assert "recovered" not in said


def test_a_workload_that_fails_is_reported_and_the_next_one_runs(stand: Stand) -> None:
    broken, next_one = Scripted("broken", fails_in=1), Scripted("next")
    made, said = run(stand, broken, next_one)
    assert [(failure.workload, failure.error) for failure in made.failures] == [("broken", "ValueError: no")]
    assert broken.calls == ["prepare", "repeat 0", "repeat 1", "finish"]
    assert next_one.calls[-1] == "finish"
    assert "recovered" in said


def test_values_measured_before_a_failure_are_kept(stand: Stand) -> None:
    made, _ = run(stand, Scripted("broken", fails_in=1))
    assert [value.repetition for value in made.values] == [0, 1]


def test_a_workload_that_hangs_is_ended(stand: Stand) -> None:
    made, _ = run(stand, Scripted("hangs", hangs_in=0), limit_s=0.2)
    assert [failure.workload for failure in made.failures] == ["hangs"]
    assert made.failures[0].error == "TimeUp: not done after 0.2 s"


def test_a_workload_that_cannot_clean_up_is_reported(stand: Stand) -> None:
    made, _ = run(stand, Scripted("stays", cannot_finish=True))
    assert [(f.workload, f.error) for f in made.failures] == [("stays", "OSError: still there")]


def test_the_alarm_is_off_after_the_block() -> None:
    with pytest.raises(TimeUp), at_most(0.05):
        time.sleep(30)
    with at_most(30):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_another_system_goes_first_in_each_repetition() -> None:
    assert [in_turn("ab", number) for number in range(3)] == [["a", "b"], ["b", "a"], ["a", "b"]]
