"""The examples of the pages about the client work, one after the other, as a user would try them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from logdevice.client.loop_thread import shared
from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.node.tests.real_nodes import real_nodes

DOCS = Path(__file__).resolve().parents[4] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_examples(page: str, endpoint: str) -> int:
    """Runs every example of a page, and returns how many there are."""
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    names: dict[str, Any] = {"endpoint": endpoint, "run": shared().run}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, example {number}", "exec"), names)
    return len(blocks)


def test_the_examples_of_the_client_page_work(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_in_a_thread() as cluster:
        assert run_examples("client.md", cluster.endpoints) > 5
    said = capsys.readouterr().out
    assert "BRIDGE [e0n1, e1n1)" in said
    assert "SCD at" in said
    assert "Position(lsn=e1n1, batch_offset=0)" in said


@pytest.mark.parametrize(("page", "examples"), [("named_writers.md", 2), ("undo_ring.md", 1)])
def test_the_examples_of_the_pages_beside_it_work(page: str, examples: int) -> None:
    with cluster_in_a_thread() as cluster:
        assert run_examples(page, cluster.endpoints) == examples


def test_the_example_of_the_page_of_chain_logs_works_on_real_nodes(tmp_path: Path) -> None:
    nodes = real_nodes(tmp_path, 1, 2, 3)
    cluster = shared().run(nodes.__aenter__())
    try:
        endpoint = ",".join(node.address for node in cluster.nodes.values())
        assert run_examples("chain_logs.md", endpoint) == 1
    finally:
        shared().run(nodes.__aexit__(None, None, None))
