"""Made-up clicks and orders of a web shop, which the examples and the demo read.

Every click and every order is a JSON object with its own id; an order names the click it came from. The same
seed gives the same shop. To fill two logs for the examples:

    logdevice up --detach
    python examples/shop.py --endpoint HOST:PORT        # as `logdevice up` printed it

    /shop/clicks: 2000 clicks, /shop/orders: 114 orders
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import logdevice
from logdevice.client.blocking import Client

CLICKS, ORDERS = "/shop/clicks", "/shop/orders"
CLICK_SCHEMA = "click_id string, user string, page string, referrer string, at timestamp"
ORDER_SCHEMA = "order_id string, click_id string, user string, amount double, at timestamp"
NOON_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z
ORDER_DELAY_MS_MAX = 20_000  # from click to order
_PAGES = ("/", "/search", "/shoes", "/shoes/7", "/coats", "/coats/3", "/hats/12", "/cart")
_REFERRERS = ("search", "mail", "friend", "none")
_BATCH = 100

Event = Mapping[str, object]


def text(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def payload(event: Event) -> bytes:
    return json.dumps(event).encode()


@dataclass
class Shop:
    """Makes clicks at given times, and returns orders once their time has come."""

    seed: int = 7
    users: int = 200
    orders_per_click: float = 0.05
    _made: int = 0
    _coming: list[tuple[int, Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def click(self, at_ms: int) -> Event:
        self._made += 1
        # Few users make most of the clicks.
        user = f"u{int(self.users * self._chance.random() ** 2)}"
        click = {
            "click_id": f"c{self._made:07d}",
            "user": user,
            "page": self._chance.choice(_PAGES),
            "referrer": self._chance.choice(_REFERRERS),
            "at": text(at_ms),
        }
        if self._chance.random() < self.orders_per_click:
            self._coming.append(self._order(click, at_ms))
        return click

    def _order(self, click: Event, at_ms: int) -> tuple[int, Event]:
        order_at_ms = at_ms + self._chance.randrange(1_000, ORDER_DELAY_MS_MAX)
        amount = self._chance.randrange(500, 20_000) / 100
        order_id = f"o{self._made:07d}"
        order = {"order_id": order_id, "click_id": click["click_id"], "user": click["user"], "amount": amount}
        return order_at_ms, {**order, "at": text(order_at_ms)}

    def orders(self, until_ms: int) -> list[Event]:
        """The orders before that time that it has not returned yet, by time."""
        ready = sorted((coming for coming in self._coming if coming[0] < until_ms), key=lambda one: one[0])
        self._coming = [coming for coming in self._coming if coming[0] >= until_ms]
        return [order for _, order in ready]


def append(client: Client, log: str, events: Sequence[Event]) -> None:
    for start in range(0, len(events), _BATCH):
        part = events[start : start + _BATCH]
        keys = [str(event["user"]).encode() for event in part]
        client.append_many(log, [payload(event) for event in part], keys)


def fill(client: Client, clicks: int = 2_000, *, step_ms: int = 50) -> tuple[list[Event], list[Event]]:
    """Creates two logs and fills them with a hundred seconds of a shop; returns what it appended."""
    shop = Shop()
    made = [shop.click(NOON_MS + number * step_ms) for number in range(clicks)]
    bought = shop.orders(NOON_MS + clicks * step_ms + ORDER_DELAY_MS_MAX)
    for log, events in ((CLICKS, made), (ORDERS, bought)):
        client.create_log(log)
        append(client, log, events)
    return made, bought


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fill two logs with a shop's clicks and orders.")
    parser.add_argument("--endpoint", required=True, help="host:port of some node")
    with logdevice.connect(parser.parse_args().endpoint) as client:
        clicks, orders = fill(client)
    print(f"{CLICKS}: {len(clicks)} clicks, {ORDERS}: {len(orders)} orders")
