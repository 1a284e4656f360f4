"""What everything has in common that is used until it is closed: `with`, and iteration where items come out.

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
    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Items(Closing, AsyncIterator[Item]):
    """To be used by one task at a time."""

    @abstractmethod
    async def next(self, timeout_ms: int | None = None) -> Item | None:
        """The next item; None at the end. TimeoutError if there is none within `timeout_ms`."""

    async def __anext__(self) -> Item:
        item = await self.next()
        if item is None:
            raise StopAsyncIteration
        return item


class BlockingClosing(ABC):
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BlockingItems(BlockingClosing, Iterator[Item]):
    """To be used by one thread at a time. `items` are read in the loop."""

    def __init__(self, items: Items[Item], loop: LoopThread) -> None:
        self._items, self._loop = items, loop
        # A `for` that was left in the middle must not keep the reader reading.
        weakref.finalize(self, _abandon, items, loop).atexit = False

    def next(self, timeout_ms: int | None = None) -> Item | None:
        """The next item; None at the end. TimeoutError if there is none within `timeout_ms`."""
        return self._loop.run(self._items.next(timeout_ms))

    def __next__(self) -> Item:
        item = self.next()
        if item is None:
            raise StopIteration
        return item

    def close(self) -> None:
        self._loop.run(self._items.close())


def _abandon(items: Closing, loop: LoopThread) -> None:
    loop.start(items.close())
