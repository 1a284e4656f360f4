"""A Kafka cluster on this machine: brokers in KRaft mode, each of which is a controller as well.

`make bench-jars` fetches the jars. A broker is a process that can be started, killed with -9, paused, and
started again on its own data. One Java process, Peer.java, does the work of Kafka's clients.
"""

from __future__ import annotations

import signal
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from logdevice.bench.against_kafka.kafka_clients import (
    PRODUCER,
    Jars,
    KafkaError,
    Peer,
    pairs,
    write_payloads,
)
from logdevice.cli.local.ports import choose_ports
from logdevice.cli.local.processes import start

HEAP: Final = "1g"
# The options with which Kafka's own start script runs the JVM.
JVM_OPTIONS: Final = (
    "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 "
    "-XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true -Dlog4j2.level=WARN"
)
START_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Broker:
    number: int
    port: int  # where it listens
    advertised_port: int  # the port that clients and other brokers are told to use
    controller_port: int
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "server.properties"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"


class KafkaCluster:
    """Some brokers. `create` makes their files, `bring_up` starts them, `kill_all` ends them."""

    def __init__(self, directory: Path, brokers: Sequence[Broker], jars: Jars) -> None:
        self.directory, self.jars = directory, jars
        self.brokers = {broker.number: broker for broker in brokers}
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._peer: Peer | None = None

    @classmethod
    def create(
        cls,
        directory: Path,
        *,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        advertised: Mapping[int, int] | None = None,
    ) -> KafkaCluster:
        """Writes the files; starts nothing. `advertised` has ports to advertise instead of a broker's own."""
        directory = directory.absolute()
        ports = choose_ports(2 * brokers)
        made = [
            Broker(
                number,
                ports[number - 1],
                (advertised or {}).get(number, ports[number - 1]),
                ports[brokers + number - 1],
                directory / f"B{number}",
            )
            for number in range(1, brokers + 1)
        ]
        for broker in made:
            broker.directory.mkdir(parents=True)
            lines = {**_settings(broker, made), **(settings or {})}
            broker.config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return cls(directory, made, Jars.find())

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.advertised_port}" for broker in self.brokers.values())

    @property
    def peer(self) -> Peer:
        """The process that runs Kafka's clients; started when it is first used."""
        if self._peer is None:
            self._peer = Peer(self.bootstrap, self.jars, self.directory / "peer.log")
        return self._peer

    def bring_up(self) -> None:
        """Formats the directories, starts all brokers, and waits until each is part of the cluster."""
        self._format()
        for number in self.brokers:
            self.start(number)
        self.wait_until_whole()

    def wait_until_whole(self, timeout_s: float = START_TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            for number, child in self._children.items():
                if (code := child.poll()) is not None:
                    raise KafkaError(
                        f"broker {number} ended with code {code}; see {self.brokers[number].log}"
                    )
            try:
                if int(self.peer.run("brokers")) == len(self.brokers):
                    return
            except KafkaError:
                if time.monotonic() >= deadline:
                    raise
            if time.monotonic() >= deadline:
                raise KafkaError(
                    f"Kafka was not up within {timeout_s:g} s; see {self.directory}/B*/broker.log"
                )
            time.sleep(0.1)

    def start(self, number: int) -> None:
        broker = self.brokers[number]
        self._children[number] = start(self._java("kafka.Kafka", str(broker.config)), broker.log)

    def restart_missing(self) -> None:
        """Starts the brokers that have ended, and waits for them."""
        for number in self.brokers:
            child = self._children.get(number)
            if child is None or child.poll() is not None:
                self.start(number)
        self.wait_until_whole()

    def pid(self, number: int) -> int:
        return self._children[number].pid

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._children.values()]

    def kill(self, number: int) -> None:
        """Kills a broker with -9, so that it cannot shut down cleanly."""
        child = self._children.pop(number)
        child.kill()
        child.wait(_STOP_TIMEOUT_S)

    def pause(self, number: int) -> None:
        self._children[number].send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        self._children[number].send_signal(signal.SIGCONT)

    def kill_all(self) -> None:
        for number in list(self._children):
            self.kill(number)
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def create_topic(
        self, *topics: str, partitions: int, replication: int = 3, settings: Mapping[str, str] | None = None
    ) -> None:
        self.peer.run("create", ",".join(topics), str(partitions), str(replication), *pairs(settings or {}))

    def leaders(self, topic: str) -> list[int]:
        """The broker that leads each partition."""
        return [int(number) for number in self.peer.run("leaders", topic).split(",")]

    def wait_until_in_sync(self, topic: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until every partition has a leader and all its copies are up to date."""
        deadline = time.monotonic() + timeout_s
        while self.peer.run("in_sync", topic) != "true":
            if time.monotonic() >= deadline:
                raise KafkaError(f"{topic} was not in sync within {timeout_s:g} s")
            time.sleep(0.1)

    def delete_topic(self, topic: str) -> None:
        self.peer.run("delete", topic)

    def load(self, topics: Sequence[str], payloads: Sequence[bytes], count: int, **settings: str) -> None:
        """Writes `count` records to the topics in turn; the payloads are repeated."""
        file = write_payloads(self.directory / "payloads.txt", payloads)
        producer = {**PRODUCER, **{name.replace("_", "."): value for name, value in settings.items()}}
        self.peer.run("load", ",".join(topics), str(file), str(count), *pairs(producer))

    def _format(self) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        running = []
        for broker in self.brokers.values():
            words = ("format", f"--cluster-id={cluster}", "--config", str(broker.config))
            running.append((broker, start(self._java("kafka.tools.StorageTool", *words), broker.log)))
        for broker, child in running:
            if child.wait(START_TIMEOUT_S):
                raise KafkaError(f"{broker.directory} could not be formatted; see {broker.log}")

    def _java(self, *words: str) -> list[str]:
        return ["java", f"-Xmx{HEAP}", *JVM_OPTIONS.split(), "-cp", self.jars.classpath, *words]


def _settings(broker: Broker, all_brokers: Sequence[Broker]) -> dict[str, str]:
    voters = ",".join(f"{other.number}@127.0.0.1:{other.controller_port}" for other in all_brokers)
    copies = str(min(3, len(all_brokers)))
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.number),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},CONTROLLER://127.0.0.1:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.advertised_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(broker.directory / "data"),
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": "2" if len(all_brokers) > 1 else "1",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
    }
