"""What must be true of a cluster that has healed: all clients are done, and the log keeps all promises."""

from __future__ import annotations

from logdevice.simulation.cluster import checkers
from logdevice.simulation.cluster.cluster import WholeCluster
from logdevice.simulation.cluster.node import SimNode
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import Epoch, Lsn, NodeId, RecordFlags

_BRIDGE = int(RecordFlags.BRIDGE)


def unfinished_clients(cluster: WholeCluster) -> str | None:
    waiting = [client.process.name for client in cluster.clients if not client.is_done]
    waiting += [f"writer{writer.number}" for writer in cluster.writers if not writer.is_done]
    return f"{', '.join(waiting)} got no answer" if waiting else None


def unfinished(cluster: WholeCluster) -> str | None:
    """Which nodes or readers have not reached the end of the log.

    An epoch may have been taken by a node that never got the answer: then the epoch before it goes on.
    """
    state, end = cluster.metadata.state, cluster.ledger.released_end
    if state.last_clean < end.epoch - 1:
        return f"{end} is released, and only {state.last_clean} is clean"
    unreleased = [lsn for lsn in cluster.ledger.promised if lsn >= end]
    if unreleased:
        return f"{unreleased[0]} is acknowledged, and only {end} is released"
    unaware = [str(node.id) for node in _members(cluster) if node.stored.released_end != end]
    if unaware:
        return f"{', '.join(unaware)} did not hear that {end} is released"
    for reader in cluster.readers:
        reached = reader.view.request.start if reader.view.next is None else reader.view.next
        if reached < end:
            return f"{reader.name} is at {reached}, released is {end}"
    return None


def _members(cluster: WholeCluster) -> list[SimNode]:
    members = {node for entry in cluster.metadata.history for node in entry.nodeset}
    return [cluster.nodes[node] for node in sorted(members)]


def judge(cluster: WholeCluster) -> None:
    witness, ledger = cluster.witness, cluster.ledger
    witness.complain("cluster", unfinished_clients(cluster))
    witness.complain("cluster", unfinished(cluster))
    for node in cluster.nodes.values():
        witness.look_at(node.id, Lsn(0), node.stored.released_end)
    for lsn in ledger.promised:
        witness.complain("log", checkers.missing_append(ledger, lsn))
    may_forget = bool(ledger.trim_end) or ledger.has_branched
    may_forget |= any(plan.may_be_forgotten for plan in cluster.plan.writers)
    for complaint in checkers.mixed_up_writes(ledger, may_forget=may_forget):
        witness.complain("log", complaint)
    for complaint in checkers.missing_writes(ledger):
        witness.complain("log", complaint)
    for lsn, content in ledger.contents.items():
        if content is not None and lsn >= ledger.trim_end:
            replication = ledger.epochs[lsn.epoch].replication
            holders = witness.holders(lsn, content)
            witness.complain("log", checkers.too_few_copies(lsn, holders, replication, ledger.locations))
    for number in range(max(1, ledger.trim_end.epoch + 1), ledger.released_end.epoch):
        epoch = Epoch(number)
        replication = ledger.epochs[epoch].replication
        witness.complain("log", checkers.wrong_bridges(ledger, epoch, _bridges(cluster, epoch), replication))


def _bridges(cluster: WholeCluster, epoch: Epoch) -> dict[Lsn, list[NodeId]]:
    found: dict[Lsn, list[NodeId]] = {}
    for node in cluster.nodes.values():
        for lsn in node.store.lsns(LOG):
            copy = node.store.get(LOG, lsn)
            if copy is not None and lsn.epoch == epoch and copy.flags & _BRIDGE:
                found.setdefault(lsn, []).append(node.id)
    return found
