"""Rows of `logdevice status`, made from what nodes say."""

from __future__ import annotations

import json
from typing import Any

from logdevice.cli.commands.status import log_rows, node_row
from logdevice.cli.local.ask_each_node import is_whole
from logdevice.cli.target_cluster import TargetCluster
from logdevice.protocol.messages.service import ClusterView, NodeStatus, NodeView
from logdevice.types import Location, NodeId, nodes

PLACE = TargetCluster("127.0.0.1:1")
METRICS = {
    'logdevice_appends_total{status="OK"}': 7.0,
    'logdevice_appends_total{status="PREEMPTED"}': 2.0,
    "logdevice_bytes_sent_total": 2048.0,
}


def view(node: int, *, is_alive: bool = True) -> NodeView:
    return NodeView(
        node=NodeId(node),
        address=f"host{node}:1",
        location=Location(),
        is_storage=True,
        is_sequencer=node == 1,
        is_alive=is_alive,
    )


def status(node: int, **logs: Any) -> NodeStatus:
    return NodeStatus(
        node=NodeId(node),
        started_ms=1_700_000_000_000,
        logs=json.dumps({f"/{name}": said for name, said in logs.items()}),
        metrics=json.dumps(METRICS),
    )


def cluster(*views: NodeView) -> ClusterView:
    return ClusterView(cluster="c", asked=NodeId(1), version=1, nodes=views)


def said(epoch: int | None, *, is_sequencer: bool = False, readers: int = 0) -> dict[str, object]:
    return {
        "is_sequencer": is_sequencer,
        "epoch": epoch,
        "released_end": f"e{epoch}n9",
        "trim_end": "e0n0",
        "read_streams": readers,
    }


def test_the_row_of_a_node_has_its_numbers() -> None:
    row = node_row(PLACE, view(1), status(1, a=said(2, is_sequencer=True, readers=2), b=said(1)), None)
    assert row["state"] == "alive"
    assert row["roles"] == "storage+sequencer"
    assert (row["logs"], row["sequencing"], row["readers"]) == (2, 1, 2)
    assert (row["appends"], row["sent"]) == (9, "2.0 KiB")
    assert row["metrics"] == METRICS


def test_a_node_that_does_not_answer_has_no_numbers() -> None:
    row = node_row(PLACE, view(2, is_alive=False), None, None)
    assert row["state"] == "dead"
    assert "logs" not in row


def test_the_row_of_a_log_is_what_its_sequencer_says() -> None:
    (row,) = log_rows(
        [status(1, a=said(None, readers=1)), status(2, a=said(3, is_sequencer=True, readers=1))]
    )
    assert row == {
        "log": "/a",
        "sequencer": "N2",
        "epoch": 3,
        "chain": None,
        "released": "e3n9",
        "trim": "e0n0",
        "readers": 2,
    }


def test_a_short_chain_is_shown_as_short() -> None:
    chained = said(3, is_sequencer=True)
    (full,) = log_rows([status(1, a={**chained, "chain_copies": 3, "is_chain_short": False})])
    (short,) = log_rows([status(1, a={**chained, "chain_copies": 2, "is_chain_short": True})])
    assert (full["chain"], short["chain"]) == ("3", "2, short")


def test_without_a_sequencer_the_node_with_the_highest_epoch_counts() -> None:
    (row,) = log_rows([status(1, a=said(2)), status(2, a=said(5))])
    assert (row["sequencer"], row["epoch"]) == (None, 5)


def test_a_cluster_is_whole_when_every_node_sees_all_nodes_alive() -> None:
    whole, torn = cluster(view(1), view(2)), cluster(view(1), view(2, is_alive=False))
    assert is_whole([whole, whole], nodes((1, 2)))
    assert not is_whole([whole, torn], nodes((1, 2)))
    assert not is_whole([whole, None], nodes((1, 2)))
    assert not is_whole([whole], nodes((1, 2, 3)))
