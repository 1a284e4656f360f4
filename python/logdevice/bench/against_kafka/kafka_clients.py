"""Drives Kafka's own Java clients, in one process that stays warm between measurements.

A command is one line to `Peer.java`, and its answer is another line. A command that takes too long ends the
process.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SOURCE: Final = HERE / "peer" / "Peer.java"
# Acknowledged by at least two of three brokers, in large batches; compressed as by LogDevice: zstd, level 1.
PRODUCER: Final = {
    "acks": "all",
    "linger.ms": "10",
    "batch.size": str(256 * 1024),
    "buffer.memory": str(64 << 20),
    "compression.type": "zstd",
    "compression.zstd.level": "1",
}
CONSUMER: Final = {
    "max.poll.records": "20000",
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(50 << 20),
}
COMMAND_TIMEOUT_S: Final = 120.0
_STOP_TIMEOUT_S: Final = 10.0


class KafkaError(RuntimeError):
    """Kafka or its clients failed, or its jars are missing."""


@dataclass(frozen=True, slots=True)
class Jars:
    """The folders of the jars, which `make bench-jars` fills."""

    brokers: Path
    source: Path

    @classmethod
    def find(cls) -> Jars:
        peer = Path(sys.prefix) / "share" / "logdevice" / "peer"
        found = cls(peer / "brokers", peer / "source")
        for directory in (found.brokers, found.source):
            if not any(directory.glob("*.jar")):
                raise KafkaError(f"Kafka's jars are not in {directory}; fetch them with: make bench-jars")
        return found

    @property
    def classpath(self) -> str:
        return str(self.brokers / "*")

    @property
    def version(self) -> str:
        return next(self.brokers.glob("kafka-clients-*.jar")).stem.removeprefix("kafka-clients-")

    def compiled(self) -> Path:
        """The folder of the classes of `Peer.java`, which is compiled if it has changed."""
        classes = self.brokers.parent / "classes"
        made = classes / "Peer.class"
        if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
            classes.mkdir(parents=True, exist_ok=True)
            command = ["javac", "-nowarn", "-d", str(classes), "-cp", self.classpath, str(SOURCE)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
            )
            if done.returncode:
                raise KafkaError(f"javac: {done.stderr}")
        return classes


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What a piece of work took, in either system."""

    seconds: float
    entries: int
    progress_ms: Sequence[float]  # the times of progress, in ms since 1970
    bytes: int = 0

    def checked(self, entries: int) -> WorkDone:
        """Returns itself. Raises RuntimeError unless it has this number of entries."""
        if self.entries != entries:
            raise RuntimeError(f"{self.entries} entries were read of {entries}")
        return self


class Peer:
    """The Java process that runs Kafka's clients, one command at a time. A command in time-out ends it."""

    def __init__(self, bootstrap: str, jars: Jars, log: Path) -> None:
        self._lock = threading.Lock()
        with log.open("ab") as errors:
            self._child = subprocess.Popen(
                ["java", "-Xmx512m", "-cp", f"{jars.compiled()}:{jars.classpath}", "Peer", bootstrap],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def run(self, *words: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """The answer to a command. Raises KafkaError if it failed or there is no answer."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with self._lock:
            watch = threading.Timer(timeout_s, self._child.kill)
            watch.start()
            try:
                self._child.stdin.write("\t".join(words) + "\n")
                self._child.stdin.flush()
                kind, _, answer = self._child.stdout.readline().rstrip("\n").partition("\t")
            except OSError as problem:
                raise KafkaError(f"{words[0]}: Kafka's clients have ended: {problem}") from problem
            finally:
                watch.cancel()
        if kind != "ok":
            raise KafkaError(f"{words[0]}: {answer or f'no answer within {timeout_s:g} s'}")
        return answer

    def append(
        self, topic: str, payloads: Path, entries: int, writers: int, settings: Mapping[str, str]
    ) -> WorkDone:
        """Appends `entries` entries as fast as possible, by all writers together; payloads are repeated."""
        words = (topic, str(payloads), str(entries), str(writers), *pairs({**PRODUCER, **settings}))
        return _done(self.run("append", *words))

    def latencies_ms(self, topic: str, payloads: Path, entries: int, writers: int) -> list[float]:
        """The latencies of single appends, one at a time by each writer."""
        settings = {**PRODUCER, "linger.ms": "0"}
        words = (topic, str(payloads), str(entries), str(writers), *pairs(settings))
        return [float(taken) for taken in self.run("latency", *words).split(",")]

    def consume(self, topic: str, timeout_s: float = COMMAND_TIMEOUT_S) -> WorkDone:
        """Reads everything that is in the topic now, with a plain consumer."""
        return _done(self.run("consume", topic, *pairs(CONSUMER), timeout_s=timeout_s))

    @property
    def pid(self) -> int:
        return self._child.pid

    def close(self) -> None:
        self._child.kill()
        self._child.wait(_STOP_TIMEOUT_S)
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):  # a command that the process did not read
                    pipe.close()


def write_payloads(path: Path, payloads: Sequence[bytes]) -> Path:
    """Writes the payloads to a file for the Java side. They must be texts without line ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(payloads) + b"\n")
    return path


def pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _done(answer: str) -> WorkDone:
    seconds, entries, progress, *rest = answer.split("\t")
    times = [float(time) for time in progress.split(",") if time]
    return WorkDone(float(seconds), int(entries), times, int(rest[0]) if rest else 0)
