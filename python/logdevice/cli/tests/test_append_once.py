"""An input that is appended with a writer name is in the log once, and another input is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from logdevice.cli.commands import append_once as command
from logdevice.cli.commands.append_once import append_once, even_batches
from logdevice.client import Client, RecordsBatch, connect
from logdevice.errors import InvalidArgumentError
from logdevice.node.tests.real_nodes import real_nodes, run


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LINES_MAX", 3)
    monkeypatch.setattr(command, "BYTES_MAX", 10)


def test_batches_depend_on_the_lines_only() -> None:
    lines = [b"%d" % number for number in range(7)]
    expected = [lines[:3], lines[3:6], lines[6:]]
    assert list(even_batches(iter([lines]))) == expected
    assert list(even_batches([line] for line in lines)) == expected
    assert list(even_batches(iter([[b"x" * 10, b"y"]]))) == [[b"x" * 10], [b"y"]]


def test_a_repeated_run_appends_only_what_is_missing(tmp_path: Path) -> None:
    lines = [b"%d" % number for number in range(8)]

    def append(client: Client, some: list[bytes]) -> tuple[int, int]:
        """Lines skipped and appended."""
        appended: list[bytes] = []

        def note(batch: list[bytes], done: object) -> None:
            appended.extend(batch)

        return append_once(client, "/log", "loader", iter([some]), note), len(appended)

    def work(endpoints: str) -> list[bytes]:
        with connect(endpoints) as client:
            client.create_log("/log", {"replication": 3})
            assert append(client, lines[:6]) == (0, 6)
            assert append(client, lines) == (6, 2)
            assert append(client, lines) == (8, 0)
            for other in ([b"other", *lines[1:8], b"8"], [*lines, b"8"], [*lines[:7], b"other"]):
                with pytest.raises(InvalidArgumentError, match="another input"):
                    append(client, other)
            return [
                entry.payload
                for item in client.read("/log")
                if isinstance(item, RecordsBatch)
                for entry in item.entries()
            ]

    async def test() -> None:
        async with real_nodes(tmp_path, 1, 2, 3) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            assert await asyncio.to_thread(work, endpoints) == lines

    run(test())
