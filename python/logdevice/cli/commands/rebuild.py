"""Commands about the data of nodes: restore it, move it to other nodes, give it up."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from logdevice.cli import arguments, confirming, declaring
from logdevice.cli.commands.rebuild_progress import progress_of
from logdevice.cli.local import ask_each_node
from logdevice.cli.output import Output, Row
from logdevice.cli.progress import ProgressLine
from logdevice.errors import UnavailableError
from logdevice.protocol.messages.service import ClusterView, NodeState, NodeStates, NodeStatus
from logdevice.protocol.rebuilding.node_status import CaseMode
from logdevice.types import AuthoritativeStatus, NodeId

if TYPE_CHECKING:
    from logdevice.client.blocking import Client

_LOOK_S: Final = 0.3


def add_commands(group: declaring.Commands) -> None:
    mark = declaring.add(
        group,
        "mark-unrecoverable",
        run_mark,
        "give up the data of nodes that are down or have lost it",
        details="Readers stop waiting for it, and get gaps for what is lost. If the data comes back after "
        "all, it is read again.",
    )
    mark.add_argument(
        "nodes", type=arguments.node, nargs="+", metavar="NODE", help="number of a node: 3 or N3"
    )
    confirming.add_yes(mark)
    for name, run, help, details in (
        (
            "rebuild",
            run_rebuild,
            "restore the copies of a node that is down or came back empty",
            "Waits until this is done. If you interrupt the command, the work continues.",
        ),
        (
            "drain",
            run_drain,
            "move everything a node holds to other nodes",
            "Readers and writers go on. Waits until this is done. If you interrupt the command, the work "
            "continues.",
        ),
    ):
        parser = declaring.add(group, name, run, help, details=details)
        declaring.add_node(parser)
        parser.add_argument("--no-wait", action="store_true", help="give the order and return at once")
    for name, run, help in (
        ("undrain", run_undrain, "let a drained node keep and take data again"),
        ("decommission", run_remove, "remove a node that is down and whose data is on other nodes"),
    ):
        declaring.add_node(declaring.add(group, name, run, help))


def run_mark(client: Client, options: argparse.Namespace, output: Output) -> None:
    names = ", ".join(map(str, options.nodes))
    confirming.confirm(
        options,
        f"give up the data of {names}? Records that no other node has will be reported as lost, and readers "
        "that have read them must roll back.",
    )
    for node in options.nodes:
        states = client.mark_unrecoverable(node)
    show(states, output)


def run_rebuild(client: Client, options: argparse.Namespace, output: Output) -> None:
    client.rebuild_node(options.node)
    _wait(client, options, output)


def run_drain(client: Client, options: argparse.Namespace, output: Output) -> None:
    client.drain_node(options.node)
    _wait(client, options, output)


def run_undrain(client: Client, options: argparse.Namespace, output: Output) -> None:
    show(client.undrain_node(options.node), output)


def run_remove(client: Client, options: argparse.Namespace, output: Output) -> None:
    client.remove_node(options.node)
    output.result(f"{options.node} is no longer a node of the cluster", {"removed": str(options.node)})


def _wait(client: Client, options: argparse.Namespace, output: Output) -> None:
    """Waits until the order is carried out, unless --no-wait is given; then shows the node's state."""
    progress = ProgressLine(output)
    while True:
        states = client.node_states()
        state = state_of(states, options.node)
        if options.no_wait or state is None or _is_done(state):
            break
        try:
            view = client.cluster()
            if state.mode is CaseMode.CHECK and not all(node.is_alive for node in view.nodes):
                break  # the node is whole; the final check must wait for nodes that are down
            found = progress_of(states.nodes, storage_statuses(view))
            if found is not None:
                progress.show(found.line)
        except UnavailableError:
            pass  # no node answers now; ask again
        time.sleep(_LOOK_S)
    progress.end()
    row = {"node": str(options.node), "data": shown_state(state)}
    output.rows([row], ("node", "data"))


def _is_done(state: NodeState) -> bool:
    """Whether the order is carried out. A node that is restored while it runs must confirm it itself."""
    return state.is_settled and (state.mode is CaseMode.DRAIN or not state.is_ready)


def storage_statuses(view: ClusterView) -> list[NodeStatus | None]:
    addresses = [entry.address for entry in view.nodes if entry.is_storage and entry.is_alive]
    return list(ask_each_node.statuses(view.cluster, addresses).values())


def show(states: NodeStates, output: Output) -> None:
    rows: list[Row] = [{"node": str(state.node), "data": shown_state(state)} for state in states.nodes]
    output.rows(rows, ("node", "data"))


def shown_state(state: NodeState | None) -> str:
    """The state of a node's data, in a word or two."""
    if state is None or state.mode is CaseMode.CHECK:
        return "whole"
    if state.mode is CaseMode.DRAIN:
        return "drained" if state.is_settled else "draining"
    match state.status:
        case AuthoritativeStatus.AUTHORITATIVE_EMPTY:
            return "elsewhere"
        case AuthoritativeStatus.UNDERREPLICATION:
            return "given up"
        case _:
            return "lost" if state.is_ready else "away"


def state_of(states: NodeStates, node: NodeId) -> NodeState | None:
    return next((state for state in states.nodes if state.node == node), None)
