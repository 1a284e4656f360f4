"""Benchmarks report what they measured and whether it is within the target; their ceilings have a rate."""

from __future__ import annotations

from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from logdevice.bench.ceiling import transport_rates
from logdevice.bench.result import Result
from logdevice.bench.write import BATCH_BYTES, BATCH_ENTRIES, ENTRY_BYTES, batches, store_rate, wordy
from logdevice.cli.commands.bench import BENCHES, function_of
from logdevice.client.loop_thread import shared
from logdevice.records.batch import Codec, encode
from logdevice.settings import BatchSettings


@pytest.mark.parametrize("bench", [bench for _, bench, _ in BENCHES])
def test_every_benchmark_of_the_command_line_exists(bench: str) -> None:
    assert iscoroutinefunction(function_of(bench))


def test_a_result_is_met_within_its_bounds() -> None:
    assert [Result("x", value, "", least=1, most=2).is_met for value in (0.9, 1, 2, 2.1)] == [
        False,
        True,
        True,
        False,
    ]
    assert Result("x", 5, "", least=1, most=2).wanted == "at least 1 and at most 2"


def test_a_result_without_bounds_is_information() -> None:
    result = Result("x", 5, "MB/s")
    assert result.is_met
    assert result.wanted is None
    assert result.row["is_met"] is None


def test_batches_have_the_wanted_number_and_size() -> None:
    made = list(batches(2))
    assert len(made) == 2_000_000 // BATCH_BYTES
    assert all(batch.num_rows == BATCH_ENTRIES for batch in made)
    assert made[0]["payload"][0] != made[1]["payload"][0]


def test_compressible_batches_have_the_same_size_and_compress() -> None:
    made = list(wordy(1))
    assert [batch.num_rows for batch in made] == [BATCH_ENTRIES] * (1_000_000 // BATCH_BYTES)
    assert {len(payload) for batch in made for payload in batch["payload"].to_pylist()} == {ENTRY_BYTES}
    assert len(encode(made[0], Codec.ZSTD, BatchSettings())) < BATCH_BYTES / 3


def test_a_bare_store_has_a_rate(tmp_path: Path) -> None:
    assert store_rate(tmp_path, 2) > 0


def test_the_bare_transport_has_a_rate() -> None:
    assert all(rate > 0 for rate in shared().run(transport_rates(2, senders=2, rounds=2)))
