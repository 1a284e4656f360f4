"""A whole cluster on this machine: one process per node, and all of its files under one directory.

    DATA/cluster.json      its name, its nodes, copies per record; written once
    DATA/metadata.db       the epoch store that the nodes share
    DATA/N1/node.json      the configuration of a node
    DATA/N1/node.log       its log messages
    DATA/N1/pid            the process that runs it
    DATA/N1/store/         its records

The directory is the whole state: any process that knows it may start, stop, kill and pause nodes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from logdevice.cli.local.ports import choose_ports
from logdevice.cli.local.processes import LocalProcess, ProcessState, start, wait_until
from logdevice.errors import InvalidArgumentError, LogDeviceError, UnavailableError
from logdevice.types import NodeId

CLUSTER_FILE: Final = "cluster.json"
CLUSTER_NAME: Final = "local"
NODES_MAX: Final = 100
REPLICATION_DEFAULT: Final = 3
KILL_TIMEOUT_MS: Final = 5_000  # the system never needs longer to end a process

NodeSettings = Mapping[str, Mapping[str, object]]  # by component, then by name


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNode:
    """One node of the cluster, as its file describes it."""

    node: NodeId
    address: str
    metrics_port: int
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "node.json"

    @property
    def log(self) -> Path:
        return self.directory / "node.log"

    @property
    def process(self) -> LocalProcess | None:
        try:
            return LocalProcess(int((self.directory / "pid").read_text()), str(self.config))
        except (FileNotFoundError, ValueError):
            return None

    @property
    def state(self) -> ProcessState:
        process = self.process
        return process.state if process else ProcessState.DOWN

    def last_words(self) -> str:
        """The last line of the node's log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return lines[-1] if lines else "its log is empty"


class LocalCluster:
    """A cluster that was made by `create` or found by `load`.

    The object holds the processes that it started itself, so that it can wait for their end.
    """

    command: Sequence[str] = (sys.executable, "-m", "logdevice.node")  # starts a node

    def __init__(self, data: Path, name: str, replication: int, nodes: Sequence[LocalNode]) -> None:
        self.data, self.name, self.replication = data, name, replication
        self.nodes = {entry.node: entry for entry in nodes}
        self._children: dict[NodeId, subprocess.Popen[bytes]] = {}

    @classmethod
    def create(
        cls,
        data: Path,
        *,
        nodes: int,
        replication: int | None = None,
        base_port: int | None = None,
        settings: NodeSettings | None = None,
    ) -> Self:
        """Writes the files of a new cluster and starts no process.

        Without `replication`, a record has 3 copies, or one on every node of a smaller cluster.
        """
        copies = replication or min(REPLICATION_DEFAULT, nodes)
        if copies > nodes:
            raise InvalidArgumentError(f"replication {copies} needs at least {copies} nodes, got {nodes}")
        if not 1 <= nodes <= NODES_MAX:
            raise InvalidArgumentError(f"a local cluster has 1 to {NODES_MAX} nodes, got {nodes}")
        if exists(data):
            raise InvalidArgumentError(f"{data} already holds a cluster; choose another directory")
        data = data.absolute()
        ports = choose_ports(nodes * 2, base_port)
        plain = [
            {"node": number, "address": f"127.0.0.1:{port}", "metrics_port": metrics_port}
            for number, port, metrics_port in zip(
                range(1, nodes + 1), ports[:nodes], ports[nodes:], strict=True
            )
        ]
        data.mkdir(parents=True, exist_ok=True)
        for entry in plain:
            _write_config(data, _node(data, entry), settings or {})
        write_json(data / CLUSTER_FILE, {"cluster": CLUSTER_NAME, "replication": copies, "nodes": plain})
        return cls.load(data)

    @classmethod
    def load(cls, data: Path) -> Self:
        """The cluster in a directory; InvalidArgumentError if there is none, or its file is damaged."""
        data = data.absolute()
        try:
            plain = json.loads((data / CLUSTER_FILE).read_text())
            nodes = [_node(data, entry) for entry in plain["nodes"]]
            return cls(data, plain["cluster"], int(plain["replication"]), nodes)
        except FileNotFoundError:
            raise InvalidArgumentError(
                f"there is no local cluster in {data}; start one with: logdevice up --data {data}"
            ) from None
        except (ValueError, KeyError, TypeError) as problem:
            raise InvalidArgumentError(
                f"{data / CLUSTER_FILE} cannot be read ({type(problem).__name__}: {problem}); restore it, or "
                "choose another directory"
            ) from None

    @property
    def endpoint(self) -> str:
        """The addresses of all nodes, as clients take them."""
        return ",".join(entry.address for entry in self.nodes.values())

    @property
    def children(self) -> list[NodeId]:
        """The running nodes that this object started."""
        self.reap()
        return list(self._children)

    def find(self, node: int) -> LocalNode:
        """The node with this number; InvalidArgumentError if there is none."""
        if NodeId(node) not in self.nodes:
            there = ", ".join(str(other) for other in self.nodes)
            raise InvalidArgumentError(
                f"there is no node {NodeId(node)} in {self.data}; choose from: {there}"
            )
        return self.nodes[NodeId(node)]

    def state(self, node: int) -> ProcessState:
        self.reap()
        return self.find(node).state

    def start(self, node: int) -> None:
        """Starts the process of a node, unless it runs already. Does not wait until it is ready."""
        entry = self.find(node)
        if self.state(node) is not ProcessState.DOWN:
            return
        child = start([*self.command, "--config", str(entry.config)], entry.log)
        self._children[entry.node] = child
        write_text(entry.directory / "pid", str(child.pid))

    def start_all(self) -> None:
        for node in self.nodes:
            self.start(node)

    def stop(self, node: int, timeout_ms: int) -> None:
        """Asks the node to end, and kills it if it has not ended in time."""
        self._signal([node], signal.SIGTERM, timeout_ms)

    def stop_all(self, timeout_ms: int) -> None:
        self._signal(list(self.nodes), signal.SIGTERM, timeout_ms)

    def kill(self, node: int) -> None:
        """Ends the node by kill -9, without warning."""
        self._signal([node], signal.SIGKILL, KILL_TIMEOUT_MS)

    def kill_all(self) -> None:
        self._signal(list(self.nodes), signal.SIGKILL, KILL_TIMEOUT_MS)

    def pause(self, node: int) -> None:
        """Stops the node by SIGSTOP: its connections stay open, and it answers nothing."""
        self._switch(node, signal.SIGSTOP, ProcessState.PAUSED)

    def resume(self, node: int) -> None:
        """Lets a paused node continue, by SIGCONT."""
        self._switch(node, signal.SIGCONT, ProcessState.RUNNING)

    def reap(self) -> dict[NodeId, int]:
        """The started nodes that ended since the last call, with their exit codes (negative: the signal)."""
        ended = {node: code for node, child in self._children.items() if (code := child.poll()) is not None}
        for node in ended:
            del self._children[node]
        return ended

    def wait_until_ready(self, is_ready: Callable[[], bool], timeout_ms: int) -> None:
        """Waits until `is_ready` returns true. Raises an error if a node that this object started ends, or
        when the time is up.
        """

        def is_settled() -> bool:
            ended.update(self.reap())
            return bool(ended) or is_ready()

        ended: dict[NodeId, int] = {}
        settled = wait_until(is_settled, timeout_ms)
        for node, code in ended.items():
            raise LogDeviceError(
                f"{node} ended with code {code}: {self.nodes[node].last_words()} (see {self.nodes[node].log})"
            )
        if not settled:
            raise UnavailableError(
                f"the nodes were not ready within {timeout_ms} ms; see {self.data}/N*/node.log"
            )

    def _signal(self, nodes: Sequence[int], number: signal.Signals, timeout_ms: int) -> None:
        """Ends nodes with a signal, all at the same time. Kills those that have not ended in time."""
        entries = [self.find(node) for node in nodes]
        processes = [process for entry in entries if (process := entry.process)]
        for process in processes:
            process.signal(number)
            process.signal(signal.SIGCONT)  # until it continues, a paused process reacts only to SIGKILL
        if not wait_until(lambda: self._are_down(entries), timeout_ms):
            for process in processes:
                process.signal(signal.SIGKILL)
            if not wait_until(lambda: self._are_down(entries), KILL_TIMEOUT_MS):
                raise UnavailableError(f"processes in {self.data} did not end after kill -9")

    def _are_down(self, entries: Sequence[LocalNode]) -> bool:
        # A child is shown as down a moment before it can be waited for; only then it is really gone.
        self.reap()
        return all(entry.node not in self._children and entry.state is ProcessState.DOWN for entry in entries)

    def _switch(self, node: int, number: signal.Signals, wanted: ProcessState) -> None:
        process = self.find(node).process
        if process is None or not process.signal(number):
            raise InvalidArgumentError(
                f"{NodeId(node)} is not running; start it with: logdevice start-node {int(node)}"
            )
        if not process.wait_for(wanted, KILL_TIMEOUT_MS):
            raise UnavailableError(f"{NodeId(node)} is {process.state.value}, not {wanted.value}")


def exists(data: Path) -> bool:
    return (data / CLUSTER_FILE).exists()


def write_text(path: Path, text: str) -> None:
    """Writes the file completely or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def write_json(path: Path, plain: Mapping[str, object]) -> None:
    write_text(path, json.dumps(plain, indent=2) + "\n")


def _node(data: Path, plain: Mapping[str, Any]) -> LocalNode:
    node = NodeId(plain["node"])
    return LocalNode(
        node=node,
        address=str(plain["address"]),
        metrics_port=int(plain["metrics_port"]),
        directory=data / str(node),
    )


def _write_config(data: Path, entry: LocalNode, settings: NodeSettings) -> None:
    entry.directory.mkdir(exist_ok=True)
    plain = {
        "cluster": CLUSTER_NAME,
        "node": int(entry.node),
        "address": entry.address,
        "data_directory": str(entry.directory),
        "epoch_store": f"sqlite:{data / 'metadata.db'}",
        "settings": {**settings, "node": {"metrics_port": entry.metrics_port, **settings.get("node", {})}},
    }
    write_json(entry.config, plain)
