"""The open shop: appends clicks and orders at a steady rate, and records the outcomes.

One thread makes events in real time. One thread per log appends them, so a log whose sequencer has just been
killed does not hold up the other. Named writers send again what got no answer, without duplicates:
acknowledged events must be in the tables once, and no others may be there. Only if a writer gives up is it
unknown whether its last events are in the log.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from examples.shop import CLICKS, ORDERS, Event, Shop, payload
from logdevice.client.blocking import Client
from logdevice.client.blocking_streams import BlockingWriter

STEP_S = 0.1
WAITING_STEPS_MAX = 600  # of STEP_S: after a minute without an append the shop waits
_ID = {CLICKS: "click_id", ORDERS: "order_id"}

Batch = list[Event] | None  # None: the shop is closed


@dataclass
class Book:
    """What was appended to one log, by id."""

    log: str
    acknowledged: dict[str, Event] = field(default_factory=dict)
    unknown: dict[str, Event] = field(default_factory=dict)

    def note(self, batch: list[Event], *, is_known: bool) -> None:
        for event in batch:
            name = str(event[_ID[self.log]])
            if is_known:
                self.unknown.pop(name, None)
                self.acknowledged[name] = event
            else:
                self.unknown[name] = event


class Traffic:
    """Runs from `open` to the end of its block."""

    def __init__(self, client: Client, clicks_per_s: int) -> None:
        self._client, self._per_step = client, max(1, int(clicks_per_s * STEP_S))
        self.books = {log: Book(log) for log in (CLICKS, ORDERS)}
        self._waiting: dict[str, queue.Queue[Batch]] = {log: queue.Queue(WAITING_STEPS_MAX) for log in _ID}
        self._is_closing = threading.Event()
        self.problem: Exception | None = None

    @property
    def acknowledged(self) -> int:
        return sum(len(book.acknowledged) for book in self.books.values())

    @property
    def unknown(self) -> int:
        return sum(len(book.unknown) for book in self.books.values())

    @contextmanager
    def open(self) -> Iterator[None]:
        """The shop is open while the block runs; at its end all events that were made are appended."""
        for log in _ID:
            self._client.create_log(log)
        threads = [threading.Thread(target=self._make, daemon=True)]
        threads += [threading.Thread(target=self._append_all, args=(log,), daemon=True) for log in _ID]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_closing.set()
            for thread in threads:
                thread.join()
        if self.problem:
            raise self.problem

    def _make(self) -> None:
        shop, start_s = Shop(seed=time.time_ns()), time.time()
        step = 0
        while not self._is_closing.is_set():
            step += 1
            at_s = start_s + step * STEP_S
            self._is_closing.wait(max(0.0, at_s - time.time()))
            clicks = [shop.click(int(at_s * 1000) + number) for number in range(self._per_step)]
            self._waiting[CLICKS].put(clicks)
            if orders := shop.orders(int(at_s * 1000)):
                self._waiting[ORDERS].put(orders)
        for waiting in self._waiting.values():
            waiting.put(None)

    def _append_all(self, log: str) -> None:
        try:
            with self._client.writer(log, name=f"shop {log}") as writer:
                while (batch := self._waiting[log].get()) is not None:
                    self._append(writer, log, batch)
        except Exception as problem:
            self.problem = problem
            while self._waiting[log].get() is not None:
                pass  # so that the thread that makes events does not wait for room

    def _append(self, writer: BlockingWriter, log: str, batch: list[Event]) -> None:
        self.books[log].note(batch, is_known=False)
        for event in batch:
            writer.put(payload(event), str(event["user"]).encode())
        writer.flush()
        self.books[log].note(batch, is_known=True)
