"""The benchmarks run and measure sensible values. These tests do not check what is fast enough."""

from __future__ import annotations

import json

import pytest

from logdevice.cli.main import main


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("append", "with tags / without"),
        ("chain", "chain / copyset, 256 KB, 4 writers"),
        ("read", "memory growth over the other nine tenths"),
        ("rebuild", "reader while restoring / alone"),
        ("failover", "longest pause of a reader after kill -9 of a node that sends"),
    ],
)
def test_a_benchmark_measures(name: str, last: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["bench", name, "--megabytes", "8", "--json"])
    out, err = capfd.readouterr()
    assert code in (0, 1), out + err
    results = [json.loads(line) for line in out.splitlines()]
    assert results[-1]["what"] == last
    assert all(result["value"] > 0 for result in results)


def test_a_reader_that_follows_gets_every_byte_about_once(capfd: pytest.CaptureFixture[str]) -> None:
    main(["bench", "scd", "--megabytes", "8", "--json"])
    single, all_send = (json.loads(line)["value"] for line in capfd.readouterr().out.splitlines())
    assert 1 <= single < 1.05
    assert 2.5 < all_send < 3.5
