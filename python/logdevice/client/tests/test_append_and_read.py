"""What appending and reading promise, over real connections: order, position, columns, the end."""

from __future__ import annotations

from logdevice.client import AsyncClient, Entry, RecordsBatch
from logdevice.client.tests.small_cluster import FIRST_RECORD_MS, SmallCluster, with_client
from logdevice.types import Gap, GapType, Lsn


async def read_all(client: AsyncClient, **options: object) -> tuple[list[Entry], list[Gap]]:
    entries: list[Entry] = []
    gaps: list[Gap] = []
    async for item in client.read("/log", **options):  # type: ignore[arg-type]
        if isinstance(item, RecordsBatch):
            entries += item.entries()
        else:
            gaps.append(item)
    return entries, gaps


def test_what_was_appended_is_read_back() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        first = await client.append("/log", b"one")
        second = await client.append_many(
            "/log", [b"two", b"three"], [b"k", None], [None, {"colour": "red"}]
        )
        assert first < second
        entries, gaps = await read_all(client)
        assert entries == [
            Entry(first, 0, FIRST_RECORD_MS, None, b"one", None),
            Entry(second, 0, FIRST_RECORD_MS + 1000, b"k", b"two", None),
            Entry(second, 1, FIRST_RECORD_MS + 1000, None, b"three", {"colour": "red"}),
        ]
        assert gaps == [Gap(GapType.BRIDGE, Lsn(1), Lsn.of(1, 1))]

    with_client(test)
