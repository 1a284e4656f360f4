"""The examples of docs/client.md work, one after the other, as a reader of the page would try them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from logdevice.client.loop_thread import shared
from logdevice.client.tests.cluster_thread import cluster_in_a_thread

PAGE = Path(__file__).resolve().parents[4] / "docs" / "client.md"


def test_the_examples_of_the_page_work(capsys: Any) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    with cluster_in_a_thread() as cluster:
        names: dict[str, Any] = {"endpoint": cluster.endpoints, "run": shared().run}
        for number, block in enumerate(blocks):
            exec(compile(block, f"client.md, example {number}", "exec"), names)
    said = capsys.readouterr().out
    assert "BRIDGE [e0n1, e1n1)" in said
    assert "SCD at" in said
    assert "Position(lsn=e1n1, batch_offset=0)" in said
