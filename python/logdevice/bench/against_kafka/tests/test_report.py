"""The report is made from the results alone: medians, ratios of neighbours, targets, the picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from logdevice.bench.against_kafka import report, targets, texts
from logdevice.bench.against_kafka.results import FailedCase, Results, Side, Spread
from logdevice.bench.against_kafka.workload import Value


def value(workload: str, case: str, system: str, metric: str, unit: str, numbers: list[float]) -> list[Value]:
    return [
        Value(workload, case, system, repetition, metric, unit, number)
        for repetition, number in enumerate(numbers)
    ]


def made(*values: list[Value], failures: tuple[FailedCase, ...] = ()) -> Results:
    return Results(
        machine={"cores": 2, "memory": "24 GB"},
        versions={"kafka": "1.2.3"},
        settings={"replication": 3},
        started="2026-01-01T00:00:00+00:00",
        seconds=600,
        values=tuple(one for group in values for one in group),
        failures=failures,
    )


SCAN_OURS = value("scan", "100 B / full rows", "logdevice", "rows_per_s", "rows/s", [300, 100, 600])
SCAN_THEIRS = value("scan", "100 B / full rows", "kafka", "rows_per_s", "rows/s", [100, 50, 200])
STALL_OURS = value("failure", "scan", "logdevice", "stall_ms", "ms", [500.0])
STALL_THEIRS = value("failure", "scan", "kafka", "stall_ms", "ms", [100.0])
LIMIT = value("limits", "Spark, 100 B", "limit", "rows_per_s", "rows/s", [1000])


def test_a_saved_run_is_loaded_as_it_was(tmp_path: Path) -> None:
    results = made(SCAN_OURS, STALL_OURS, failures=(FailedCase("etl", "no jar"),))
    results.save(tmp_path / "bench" / "results.json")
    assert Results.load(tmp_path / "bench" / "results.json") == results


def test_a_ratio_is_taken_between_neighbouring_repetitions() -> None:
    results = made(SCAN_OURS, SCAN_THEIRS)
    sides = [Side("scan", "100 B / full rows", system, "rows_per_s") for system in ("logdevice", "kafka")]
    # Ratios of 3, 2 and 3; the ratio of the medians would be 3, its spread 0.5 to 12.
    assert results.ratio(*sides) == Spread(3.0, 2.0, 3.0, 3)
    assert results.spread(sides[0]) == Spread(300, 100, 600, 3)


def test_a_number_of_only_one_system_has_no_ratio() -> None:
    results = made(SCAN_OURS)
    sides = [Side("scan", "100 B / full rows", system, "rows_per_s") for system in ("logdevice", "kafka")]
    assert results.ratio(*sides) is None


@pytest.mark.parametrize(("ours", "is_met"), [(200.0, True), (199.0, False)])
def test_a_target_is_met_from_its_bound_on(ours: float, is_met: bool) -> None:
    rates = value("scan", "100 B / full rows", "logdevice", "rows_per_s", "rows/s", [ours])
    theirs = value("scan", "100 B / full rows", "kafka", "rows_per_s", "rows/s", [100.0])
    verdict = next(v for v in targets.verdicts(made(rates, theirs)) if v.target.key == "scan-100")
    assert verdict.is_met is is_met
    assert (verdict.missed_by == 0) is is_met


def test_a_target_that_was_not_measured_is_not_met() -> None:
    found = targets.verdicts(made())
    assert not any(verdict.is_met for verdict in found)
    assert f"**0 of {len(targets.TARGETS)} targets are met.**" in report.page(made())
    assert report.page(made()).count(" | not measured | ") == len(targets.TARGETS)


def test_the_report_says_by_how_much_and_why_a_target_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "WHY", {"failure": "It waits."})
    text = report.page(made(STALL_OURS, STALL_THEIRS))
    assert "| at most 1 | 5 | **no**, by 400% |" in text
    assert "time without progress, scan.** It waits." in text


def test_a_target_that_is_met_needs_no_reason() -> None:
    text = report.page(made(SCAN_OURS, SCAN_THEIRS))
    assert "| scan, full rows of 100 B | at least 2 | 3 (2 to 3) | yes |" in text
    assert "What costs the time" not in text


def test_rates_are_shown_as_shares_of_their_limit() -> None:
    text = report.page(made(SCAN_OURS, SCAN_THEIRS, LIMIT))
    assert "| 300 (100 to 600) | 100 (50 to 200) | 3 (2 to 3) | 0.30 of Spark, 100 B |" in text


def test_the_share_of_a_time_is_its_limit_divided_by_it() -> None:
    ours = value("appends", "1 writer", "logdevice", "p50_ms", "ms", [8.0])
    limit = value("limits", "one synced write", "limit", "p50_ms", "ms", [2.0])
    assert "| 0.25 of one synced write |" in report.page(made(ours, limit))


def test_the_nearest_of_several_limits_is_the_lowest() -> None:
    ours = value("appends", "8 writers", "logdevice", "mb_per_s", "MB/s", [40.0])
    disk = value("limits", "disk, 3 copies", "limit", "mb_per_s", "MB/s", [80.0])
    wire = value("limits", "bare gRPC", "limit", "mb_per_s", "MB/s", [400.0])
    assert "| 0.50 of disk, 3 copies |" in report.page(made(ours, disk, wire))


def test_a_scan_that_need_not_read_everything_has_no_limit() -> None:
    ours = value("scan", "100 B / filter", "logdevice", "rows_per_s", "rows/s", [2000.0])
    assert " of Spark" not in report.page(made(ours, LIMIT))


def test_a_number_that_one_system_does_not_have_is_left_blank() -> None:
    alone = value("slow_node", "slow, detector on", "logdevice", "seconds", "seconds", [2.0])
    both = [
        value("slow_node", "healthy", name, "seconds", "seconds", [1.0]) for name in ("logdevice", "kafka")
    ]
    assert "| slow, detector on | seconds | 2 |  |  |" in report.page(made(alone, *both))


def test_a_failed_workload_is_in_the_report_with_its_error() -> None:
    results = made(SCAN_OURS, failures=(FailedCase("many_logs", "took longer than 60 s"),))
    assert "## Many logs" in report.page(results)
    assert "**Not measured**, or not completely: took longer than 60 s" in report.page(results)
    assert "many_logs: not measured: took longer than 60 s" in report.summary(results)


def test_the_summary_of_a_quick_run_has_no_targets() -> None:
    results = made(SCAN_OURS, SCAN_THEIRS)
    assert "at least 2" in report.summary(results)
    assert "at least 2" not in report.summary(results, has_targets=False)
    assert "3 (2 to 3)" in report.summary(results, has_targets=False)


def test_in_the_picture_better_rates_and_better_times_are_to_the_right() -> None:
    rate, stall = report.bars(made(SCAN_OURS, SCAN_THEIRS, STALL_OURS, STALL_THEIRS))
    assert (rate.better, rate.wanted, rate.is_met) == (3.0, 2, True)
    assert (stall.better, stall.wanted, stall.is_met) == (0.2, 1, False)


def test_the_page_and_the_picture_are_written(tmp_path: Path) -> None:
    report.write(made(SCAN_OURS, SCAN_THEIRS, STALL_OURS, STALL_THEIRS, LIMIT), tmp_path)
    assert (tmp_path / "benchmarks.md").read_text(encoding="utf-8").startswith("# Measured against Kafka\n")
    root = ElementTree.parse(tmp_path / "images" / "benchmarks.svg").getroot()
    assert sum(element.tag.endswith("circle") for element in root.iter()) == 2


def test_every_workload_of_a_target_has_a_text() -> None:
    assert {target.what.workload for target in targets.TARGETS} <= set(texts.WORKLOADS)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.1234, "0.123"), (12.34, "12.3"), (1234.5, "1 234"), (2_345_678, "2.35 M"), (23456, "23.5 k")],
)
def test_numbers_have_three_significant_digits(number: float, text: str) -> None:
    assert report.number(number) == text
