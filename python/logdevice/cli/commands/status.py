"""`logdevice status` and `logdevice nodes`: shows the nodes and logs of a cluster.

All nodes are asked at the same time, so a node that does not answer delays no other. The row of a log is what
its sequencer says. Without a sequencer, it is what the node says that has seen the highest epoch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from logdevice.cli import declaring
from logdevice.cli.commands.rebuild import shown_state
from logdevice.cli.commands.rebuild_progress import progress_of
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.processes import ProcessState
from logdevice.cli.output import Output, Row, counted, shown_bytes, shown_time
from logdevice.cli.target_cluster import TargetCluster, find
from logdevice.protocol.messages.service import NodeState, NodeStatus, NodeView

if TYPE_CHECKING:
    from logdevice.client.blocking import Client

_NODE_COLUMNS = (
    *("node", "address", "state", "data", "roles", "location", "logs", "sequencing", "readers"),
    *("appends", "stores", "sent", "since"),
)
_LOG_COLUMNS = ("log", "sequencer", "epoch", "chain", "released", "trim", "readers")


def add_commands(group: declaring.Commands) -> None:
    declaring.add(group, "status", run_status, "show nodes and logs: alive, sequencers, epochs, readers")
    declaring.add(group, "nodes", run_nodes, "list the nodes and the state of their data")


def run_status(client: Client, options: argparse.Namespace, output: Output) -> None:
    place, view = find(options), client.cluster()
    statuses = ask_each_node.statuses(view.cluster, [entry.address for entry in view.nodes])
    states = {state.node: state for state in client.node_states().nodes}
    nodes = [node_row(place, entry, statuses[entry.address], states.get(entry.node)) for entry in view.nodes]
    logs = log_rows([status for status in statuses.values() if status is not None])
    storage = [statuses[entry.address] for entry in view.nodes if entry.is_storage]
    rebuilding = progress_of(list(states.values()), storage)
    output.json(
        {
            "cluster": view.cluster,
            "nodes": nodes,
            "logs": logs,
            "rebuilding": None if rebuilding is None else rebuilding.plain,
        }
    )
    alive = sum(row["state"] == "alive" for row in nodes)
    output.text(f"cluster {view.cluster}: {alive} of {counted(len(nodes), 'node is', 'nodes are')} alive")
    output.table(nodes, _NODE_COLUMNS)
    output.text()
    if rebuilding is not None:
        output.text(rebuilding.line)
        output.text()
    output.table(logs, _LOG_COLUMNS)


def run_nodes(client: Client, options: argparse.Namespace, output: Output) -> None:
    place, view = find(options), client.cluster()
    states = {state.node: state for state in client.node_states().nodes}
    rows = [node_row(place, entry, None, states.get(entry.node)) for entry in view.nodes]
    output.rows(rows, ("node", "address", "state", "data", "roles", "location"))


def node_row(
    place: TargetCluster, entry: NodeView, status: NodeStatus | None, state: NodeState | None
) -> dict[str, object]:
    roles = [name for name, has in (("storage", entry.is_storage), ("sequencer", entry.is_sequencer)) if has]
    row: dict[str, object] = {
        "node": str(entry.node),
        "address": entry.address,
        "state": _state(place, entry),
        "data": shown_state(state) if entry.is_storage else None,
        "roles": "+".join(roles),
        "location": str(entry.location) or None,
    }
    if status is not None:
        logs: Mapping[str, Mapping[str, Any]] = json.loads(status.logs)
        metrics: Mapping[str, float] = json.loads(status.metrics)
        row |= {
            "logs": len(logs),
            "sequencing": sum(bool(log.get("is_sequencer")) for log in logs.values()),
            "readers": sum(int(log.get("read_streams", 0)) for log in logs.values()),
            "appends": _total(metrics, "logdevice_appends_total"),
            "stores": _total(metrics, "logdevice_stores_total"),
            "sent": shown_bytes(_total(metrics, "logdevice_bytes_sent_total")),
            "since": shown_time(status.started_ms),
            "metrics": metrics,
        }
    return row


def _total(metrics: Mapping[str, float], name: str) -> int:
    """The value of a counter, summed over its labels."""
    return int(sum(value for sample, value in metrics.items() if sample.partition("{")[0] == name))


def _state(place: TargetCluster, entry: NodeView) -> str:
    """The state of a node as the cluster sees it. On this machine, the process table says more: it can tell
    a node that is paused from one that is down.
    """
    if place.local is not None and entry.node in place.local.nodes:
        state = place.local.state(entry.node)
        if state is not ProcessState.RUNNING:
            return str(state.value)
    return "alive" if entry.is_alive else "dead"


def log_rows(statuses: Sequence[NodeStatus]) -> list[Row]:
    """One row for each log of the cluster, made from what all nodes say."""
    said: dict[str, list[tuple[NodeStatus, Mapping[str, Any]]]] = {}
    for status in statuses:
        for path, log in json.loads(status.logs).items():
            said.setdefault(path, []).append((status, log))
    return [_log_row(path, said[path]) for path in sorted(said)]


def _chain(log: Mapping[str, Any]) -> str | None:
    """The number of nodes in the chains of a log; None if it has no chains."""
    copies = log.get("chain_copies")
    if copies is None:
        return None
    return f"{copies}, short" if log.get("is_chain_short") else str(copies)


def _log_row(path: str, said: Sequence[tuple[NodeStatus, Mapping[str, Any]]]) -> Row:
    sequencers = [(status, log) for status, log in said if log.get("is_sequencer")]
    _, best = max(sequencers or said, key=lambda entry: int(entry[1].get("epoch") or 0))
    return {
        "log": path,
        "sequencer": ", ".join(str(status.node) for status, _ in sequencers) or None,
        "epoch": best.get("epoch"),
        "chain": _chain(best),
        "released": best.get("released_end"),
        "trim": best.get("trim_end"),
        "readers": sum(int(log.get("read_streams", 0)) for _, log in said),
    }
