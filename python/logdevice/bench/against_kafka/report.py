"""Makes the report of a run, `docs/benchmarks.md` and its picture, from the results alone."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logdevice.bench.against_kafka import picture, texts
from logdevice.bench.against_kafka.results import Results, Side, Spread
from logdevice.bench.against_kafka.targets import (
    OURS,
    THEIRS,
    Verdict,
    is_rate,
    nearest_limit,
    verdict_of,
    verdicts,
)

PAGE: Final = "benchmarks.md"
PICTURE: Final = "images/benchmarks.svg"
_NOT_MEASURED: Final = "not measured"
_RATIO: Final = "LogDevice / Kafka"
_COLUMNS: Final = 120


def write(results: Results, docs: Path) -> None:
    (docs / PAGE).write_text(page(results), encoding="utf-8")
    (docs / PICTURE).parent.mkdir(parents=True, exist_ok=True)
    (docs / PICTURE).write_text(picture.svg(bars(results)), encoding="utf-8")


def page(results: Results) -> str:
    found = verdicts(results)
    met = sum(verdict.is_met for verdict in found)
    parts = [
        "# Measured against Kafka\n",
        "<!-- Made by `make bench` from build/bench/results.json; do not edit. -->\n",
        _paragraph(f"{texts.INTRO} **{met} of {len(found)} targets are met.**"),
        f"![How many times better than Kafka, by workload]({PICTURE})\n",
        "## Targets\n",
        _target_table(found),
        *_missed(found),
        "## How it was measured\n",
        _paragraph(texts.METHOD),
        _list(texts.FAIRNESS),
        _facts(results),
        "## Results\n",
        *_results(results),
        "## What profiles changed\n",
        _list(texts.PROFILES),
    ]
    return "\n".join(parts)


def summary(results: Results, *, has_targets: bool = True) -> str:
    """The targets and all ratios, for a terminal. Targets only make sense for the sizes of a full run."""
    lines = []
    for verdict in verdicts(results) if has_targets else ():
        mark = "met   " if verdict.is_met else "MISSED" if verdict.ratio else "      "
        lines.append(
            f"{mark} {ratio_text(verdict.ratio):<28} {verdict.target.wanted:<14} {verdict.target.words}"
        )
    lines.append("")
    for workload in results.workloads:
        for case, metric, _ in results.rows(workload):
            ours, theirs = (Side(workload, case, system, metric) for system in (OURS, THEIRS))
            if ratio := results.ratio(ours, theirs):
                lines.append(f"       {ratio_text(ratio):<28} {workload}: {case}, {metric} ({_RATIO})")
    lines += [f"{failure.workload}: {_NOT_MEASURED}: {failure.error}" for failure in results.failures]
    return "\n".join(lines)


def bars(results: Results) -> list[picture.Bar]:
    """A bar for each number that both systems have. Times are inverted, so that more is better."""
    found = []
    for workload in results.workloads:
        for case, metric, _ in results.rows(workload):
            ours, theirs = (Side(workload, case, system, metric) for system in (OURS, THEIRS))
            ratio = results.ratio(ours, theirs)
            if ratio is None or ratio.median <= 0:
                continue
            verdict = verdict_of(results, ours)
            wanted = (verdict.target.least or verdict.target.most) if verdict else None
            words = f"{workload.replace('_', ' ')}: {case}, {metric}".replace("_per_s", "/s").replace(
                "_", " "
            )
            is_met = verdict.is_met if verdict else None
            if is_rate(metric):
                bar = picture.Bar(words, ratio.median, ratio.least, ratio.most, wanted, is_met)
            else:
                # A time of 0 cannot be inverted: the median takes its place.
                least, most = (1 / (number or ratio.median) for number in (ratio.most, ratio.least))
                turned = 1 / wanted if wanted else None
                bar = picture.Bar(words, 1 / ratio.median, least, most, turned, is_met)
            found.append(bar)
    return found


def _target_table(found: Sequence[Verdict]) -> str:
    rows = [
        (
            verdict.target.words,
            verdict.target.wanted,
            ratio_text(verdict.ratio),
            ("yes" if verdict.is_met else f"**no**, by {verdict.missed_by:.0%}") if verdict.ratio else "",
        )
        for verdict in found
    ]
    return table((_RATIO, "wanted", "measured", "met"), rows)


def _missed(found: Sequence[Verdict]) -> Iterator[str]:
    missed = [verdict for verdict in found if verdict.ratio and not verdict.is_met]
    if not missed:
        return
    yield "### What costs the time where a target is missed\n"
    for key in dict.fromkeys(verdict.target.key for verdict in missed):
        names = "; ".join(verdict.target.words for verdict in missed if verdict.target.key == key)
        yield _filled(f"- **{names}.** {texts.WHY.get(key, 'Not profiled yet.')}")
    yield ""


def _facts(results: Results) -> str:
    facts = [
        ("machine", _flat(results.machine)),
        ("versions", _flat(results.versions)),
        ("settings", _flat(results.settings)),
        ("started", results.started),
        ("took", f"{results.seconds / 60:.0f} minutes"),
    ]
    return table(("", ""), facts)


def _results(results: Results) -> Iterator[str]:
    """One section for each workload. The number of repetitions is given once, and where it differs."""
    counted = {name: _repetitions(results, name) for name in results.workloads}
    usual = Counter(counted.values()).most_common(1)[0][0] if counted else ""
    yield _paragraph(
        f"Each number is a median; its lowest and highest repetition are in brackets. Repetitions: {usual}, "
        "unless a section says otherwise."
    )
    for name, repetitions in counted.items():
        yield f"### {texts.TITLES.get(name, name.replace('_', ' ').capitalize())}\n"
        yield _paragraph(texts.WORKLOADS.get(name, ""))
        for failure in results.failures:
            if failure.workload == name:
                yield f"**{_NOT_MEASURED.capitalize()}**, or not completely: {failure.error}\n"
        if results.rows(name):
            yield _workload_table(results, name)
        if repetitions not in ("", usual):
            yield f"Repetitions: {repetitions}.\n"


def _workload_table(results: Results, name: str) -> str:
    rows, systems = results.rows(name), results.systems(name)
    has_ratio = OURS in systems and THEIRS in systems
    heads = ["case", "", *(texts.SYSTEMS.get(system, system) for system in systems)]
    heads += [_RATIO] if has_ratio else []
    body = [_row(results, name, row, systems, has_ratio=has_ratio) for row in rows]
    shares = [_share(results, Side(name, case, OURS, metric)) for case, metric, _ in rows]
    if any(shares):
        heads.append("share of limit")
        body = [(*row, share) for row, share in zip(body, shares, strict=True)]
    return table(heads, body)


def _repetitions(results: Results, name: str) -> str:
    """The number of repetitions of a workload: `5`, or `3 or 5`; empty if it was not measured."""
    spreads = (
        results.spread(Side(name, case, system, metric))
        for system in results.systems(name)
        for case, metric, _ in results.rows(name)
    )
    return " or ".join(map(str, sorted({spread.repetitions for spread in spreads if spread})))


def _row(
    results: Results, name: str, row: tuple[str, str, str], systems: Sequence[str], *, has_ratio: bool
) -> tuple[str, ...]:
    case, metric, unit = row
    spreads = [results.spread(Side(name, case, system, metric)) for system in systems]
    label = metric.removesuffix("_per_s").removesuffix("_ms").removesuffix("_mb").replace("_", " ")
    label = unit if label.lower() in unit.lower() else f"{label}, {unit}"
    cells = (case, label, *(spread_text(spread) for spread in spreads))
    if not has_ratio:
        return cells
    ours, theirs = (Side(name, case, system, metric) for system in (OURS, THEIRS))
    return (*cells, spread_text(results.ratio(ours, theirs)))


def _share(results: Results, side: Side) -> str:
    found = nearest_limit(results, side)
    return f"{found[1]:.2f} of {found[0]}" if found else ""


def spread_text(spread: Spread | None) -> str:
    if spread is None:
        return ""
    if spread.repetitions == 1:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.least)} to {number(spread.most)})"


def ratio_text(ratio: Spread | None) -> str:
    return spread_text(ratio) or _NOT_MEASURED


def number(value: float) -> str:
    """Three significant digits, with spaces between thousands."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ") if abs(value) < 10_000 else _thousands(value)
    return f"{value:.3g}"


def _thousands(value: float) -> str:
    return f"{value / 1e6:.3g} M" if value >= 1e6 else f"{value / 1e3:.3g} k"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _paragraph(text: str) -> str:
    return _filled(text) + "\n"


def _list(text: str) -> str:
    """Paragraphs and list items, each wrapped at the width of the page."""
    return "\n".join(map(_filled, re.split(r"\n(?=- |\n)", text.strip()))) + "\n"


def _filled(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    words = " ".join(text.split())
    return textwrap.fill(
        words, _COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _flat(plain: object) -> str:
    if isinstance(plain, dict):
        return ", ".join(f"{name} {_flat(value)}" for name, value in plain.items())
    return str(plain)
