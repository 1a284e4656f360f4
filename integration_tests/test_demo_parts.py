"""The checks of the demo find the errors that they must find. `make demo` runs the demo itself."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from examples.demo.loss import Loss
from examples.demo.picture import nice, rates, svg
from examples.demo.tables import RowCount, Verdict, prove_events, prove_join
from examples.demo.traffic import Book
from examples.demo.watch import Mark, Sample, Watch
from examples.shop import CLICKS, NOON_MS, ORDERS, Shop


def table(path: Path, clicks: list[str], orders: list[tuple[str, str]]) -> Path:
    """A table of events as the ETL writes it."""
    rows = [{"log_path": CLICKS, "click_id": click, "order_id": None} for click in clicks]
    rows += [{"log_path": ORDERS, "click_id": click, "order_id": order} for order, click in orders]
    columns = pa.schema([(name, pa.string()) for name in ("log_path", "click_id", "order_id")])
    write_deltalake(path, pa.Table.from_pylist(rows, schema=columns), mode="append")
    return path


def verdict(path: Path, acknowledged: str, unknown: str = "") -> Verdict:
    book = Book(CLICKS)
    book.note([{"click_id": one} for one in acknowledged.split()], is_known=True)
    book.note([{"click_id": one} for one in unknown.split()], is_known=False)
    return prove_events(path, "click_id", book)


def test_acknowledged_entries_must_be_in_the_table_once(tmp_path: Path) -> None:
    events = table(tmp_path / "events", ["a", "b", "b", "u"], [("o1", "a")])
    assert verdict(events, "a b", "u v").duplicated == 1
    assert verdict(events, "a b", "u v").lost == 0
    assert verdict(events, "a b c", "u").lost == 1
    assert verdict(events, "a b").strange == 1
    right = table(tmp_path / "right", ["a", "b", "u"], [])
    assert verdict(right, "a b", "u v").is_right
    assert not verdict(right, "a b c", "u v").is_right
    assert not verdict(right, "a b", "v").is_right


def test_the_joined_table_must_equal_the_join_of_the_tables(tmp_path: Path) -> None:
    events = table(tmp_path / "events", ["a", "b"], [("o1", "a"), ("o2", "b"), ("o3", "gone")])
    for joined, is_right in ((["o1", "o2"], True), (["o1"], False), (["o1", "o2", "o2"], False)):
        path = tmp_path / f"joined{len(joined)}"
        write_deltalake(path, pa.table({"order_id": joined}))
        assert prove_join(events, path, "join").is_right == is_right


def test_rows_are_counted_from_the_transaction_log(tmp_path: Path) -> None:
    rows = RowCount(tmp_path / "events")
    assert rows.now() == 0
    for number in range(1, 3):
        table(tmp_path / "events", ["a", "b"], [("o", "a")])
        assert rows.now() == 3 * number


def test_a_loss_is_right_only_if_exactly_what_was_destroyed_is_reported() -> None:
    def loss(reported: list[tuple[int, int]], found: list[int]) -> bool:
        return Loss(["N1"], {5, 6}, reported, kept={4, 7}, found=found).is_as_made

    assert loss([(5, 7)], [4, 7])
    assert loss([(5, 6), (6, 7)], [4, 7])
    assert not loss([(5, 6)], [4, 7])
    assert not loss([(5, 8)], [4, 7])
    assert not loss([(5, 7), (5, 7)], [4, 7])
    assert not loss([(5, 7)], [4, 4, 7])
    assert not loss([(5, 7)], [4])


def test_the_picture_is_valid_svg() -> None:
    samples = [Sample(number / 2, number * 100, max(0, number - 4) * 100) for number in range(40)]
    root = ElementTree.fromstring(svg(samples, [Mark(5, "N1 & N2 killed", is_fault=True)]))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "N1 & N2 killed" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 3
    assert rates(samples, "appended")[-1] == (19.5, 200.0)
    assert ElementTree.fromstring(svg([], [])) is not None
    assert [nice(number) for number in (0.1, 1, 3, 12, 51, 501)] == [1, 1, 5, 20, 100, 1000]


def test_a_shop_is_the_same_for_the_same_seed_and_orders_follow_clicks() -> None:
    shops = [Shop(seed=3), Shop(seed=3)]
    clicks = [[shop.click(NOON_MS + number * 10) for number in range(500)] for shop in shops]
    orders = [shop.orders(NOON_MS + 60_000) for shop in shops]
    assert clicks[0] == clicks[1]
    assert orders[0] == orders[1]
    assert {order["click_id"] for order in orders[0]} < {click["click_id"] for click in clicks[0]}
    assert len({click["click_id"] for click in clicks[0]}) == 500
    assert shops[0].orders(NOON_MS + 60_000) == []


def test_a_wait_ends_with_an_error_when_the_watched_process_has_ended() -> None:
    def check() -> None:
        raise RuntimeError("it has ended")

    watch = Watch(lambda: 0, lambda: 0, check)
    with watch.begun(), pytest.raises(RuntimeError, match="it has ended"):
        watch.wait_for_appends(1, "something")
