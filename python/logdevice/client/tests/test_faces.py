"""The two faces of the client: the blocking client has all calls of the async one, under the same names."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any, assert_type

import pytest

from logdevice.client import AsyncClient, BlockingReader, BlockingWriter, Client, ClientConfig, LogTail
from logdevice.client.read.logs_reader import LogsReader
from logdevice.client.read.reader import Reader
from logdevice.types import Lsn

# Methods that are not for programs.
_INNER = {"part", "perform", "engine"}


def calls(face: type[Any]) -> Iterator[str]:
    for name, _ in inspect.getmembers(face, inspect.isfunction):
        if not name.startswith("_") and name not in _INNER:
            yield name


ASYNC_CALLS = sorted(calls(AsyncClient))


@pytest.mark.parametrize("name", ASYNC_CALLS)
def test_a_blocking_call_has_the_arguments_and_docstring_of_the_async_one(name: str) -> None:
    ours, theirs = getattr(AsyncClient, name), getattr(Client, name)
    assert list(inspect.signature(theirs).parameters.values()) == list(
        inspect.signature(ours).parameters.values()
    )
    assert theirs.__doc__
    assert ours.__doc__


def test_the_blocking_face_has_no_calls_of_its_own() -> None:
    assert sorted(calls(Client)) == ASYNC_CALLS


@pytest.mark.parametrize("name", ASYNC_CALLS)
def test_every_call_belongs_to_exactly_one_part(name: str) -> None:
    wrapped = getattr(getattr(AsyncClient, name), "__wrapped__", None)
    if wrapped is None:
        return  # close, saw: of the client itself

    async def parts() -> set[type[Any]]:
        client = AsyncClient(ClientConfig(endpoints=("127.0.0.1:1",)))
        return set(client._parts)

    owners = [part for part in asyncio.run(parts()) if vars(part).get(wrapped.__name__) is wrapped]
    assert len(owners) == 1


async def _types_of_the_async_face(client: AsyncClient) -> None:
    """Checked by mypy: derived calls keep their types."""
    assert_type(await client.append("/log", b"payload", key=b"key"), Lsn)
    assert_type(await client.tails(["/log", 1], confirm=False), list[LogTail])
    assert_type(client.read("/log", "oldest", follow=True), Reader)
    assert_type(await client.read_logs(["/log"], follow=True), LogsReader)


def _types_of_the_blocking_face(client: Client) -> None:
    assert_type(client.append("/log", b"payload", key=b"key"), Lsn)
    assert_type(client.tails(["/log", 1], confirm=False), list[LogTail])
    assert_type(client.read("/log", "oldest", follow=True), BlockingReader)
    assert_type(client.writer("/log", name="loader"), BlockingWriter)
    client.append("/log", "text")  # type: ignore[arg-type]
    client.append("/log", b"payload", kye=b"key")  # type: ignore[call-arg]
