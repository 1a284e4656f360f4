"""Base classes of everything that is used until it is closed: they add `with`, and iteration over items.

`Closing` and `Items` are for programs with an event loop, `BlockingClosing` and `BlockingItems` for others.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from typing import Self, TypeVar

from logdevice.client.loop_thread import LoopThread

Item = TypeVar("Item")


class Closing(ABC):
    """Something that is closed at the end of an `async with`, or by `close`."""

    @abstractmethod
    async def close(self) -> None:
        """Closes it: it cannot be used any more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Items(Closing, AsyncIterator[Item]):
    """Gives items: iterate over it with `async for`, or call `next`. One task at a time may use it."""

    @abstractmethod
    async def next(self, timeout_ms: int | None = None) -> Item | None:
        """The next item; None at the end. TimeoutError if nothing comes within `timeout_ms`."""

    async def __anext__(self) -> Item:
        item = await self.next()
        if item is None:
            raise StopAsyncIteration
        return item


class BlockingClosing(ABC):
    """Something that is closed at the end of a `with`, or by `close`."""

    @abstractmethod
    def close(self) -> None:
        """Closes it: it cannot be used any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BlockingItems(BlockingClosing, Iterator[Item]):
    """Gives items: iterate over it, or call `next`. One thread at a time may use it.

    `items` are read in the event loop of `loop`.
    """

    def __init__(self, items: Items[Item], loop: LoopThread) -> None:
        self._items, self._loop = items, loop
        # A program that leaves a `for` in the middle drops the reader: it must then stop reading.
        weakref.finalize(self, _abandon, items, loop).atexit = False

    def next(self, timeout_ms: int | None = None) -> Item | None:
        """The next item; None at the end. TimeoutError if nothing comes within `timeout_ms`."""
        return self._loop.run(self._items.next(timeout_ms))

    def __next__(self) -> Item:
        item = self.next()
        if item is None:
            raise StopIteration
        return item

    def close(self) -> None:
        """Stops reading. Items that were not taken are dropped."""
        self._loop.run(self._items.close())


def _abandon(items: Closing, loop: LoopThread) -> None:
    loop.start(items.close())
