"""The picture of a run, as SVG: how many times better than Kafka, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from examples.demo.svg import across, down, drawing, text

WIDTH, LABEL, RIGHT, ROW, TOP, BOTTOM = 960, 350, 30, 24, 64, 44
MET, MISSED, PLAIN, FAINT, WORDS = "#2da44e", "#cf222e", "#1f6feb", "#d0d7de", "#24292f"
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class Bar:
    """How many times better than Kafka LogDevice is; above 1 is better, for rates and for times."""

    words: str
    better: float
    least: float
    most: float
    wanted: float | None = None  # the target on the same scale
    is_met: bool | None = None  # None: there is no target

    @property
    def colour(self) -> str:
        return PLAIN if self.is_met is None else MET if self.is_met else MISSED


def svg(bars: Sequence[Bar]) -> str:
    height = TOP + ROW * len(bars) + BOTTOM
    scale = Scale.of(bars)
    parts = [
        text(LABEL, 20, "times better than Kafka (median; line: lowest and highest; tick: wanted)", WORDS),
        text(LABEL, 40, "target met", MET),
        text(LABEL + 90, 40, "target missed", MISSED),
        text(LABEL + 195, 40, "no target", PLAIN),
        *scale.drawn(height),
    ]
    for number, bar in enumerate(bars):
        parts += drawn_bar(bar, scale, TOP + ROW * number + ROW / 2)
    return drawing(WIDTH, height, parts) + "\n"


@dataclass(frozen=True, slots=True)
class Scale:
    lowest: float
    highest: float

    @classmethod
    def of(cls, bars: Sequence[Bar]) -> Scale:
        drawn = [number for bar in bars for number in (bar.least, bar.most, bar.better, bar.wanted)]
        numbers = [number for number in drawn if number]
        lowest, highest = min([0.5, *numbers]), max([2.0, *numbers])
        below = [tick for tick in TICKS if tick <= lowest]
        above = [tick for tick in TICKS if tick >= highest]
        return cls(below[-1] if below else lowest, above[0] if above else highest)

    def x(self, ratio: float) -> float:
        bounded = min(max(ratio, self.lowest), self.highest)
        share = math.log(bounded / self.lowest) / math.log(self.highest / self.lowest)
        return LABEL + (WIDTH - LABEL - RIGHT) * share

    def drawn(self, height: float) -> list[str]:
        parts = []
        for tick in TICKS:
            if self.lowest <= tick <= self.highest:
                x, width = self.x(tick), 1.6 if tick == 1 else 0.5
                parts.append(down(x, TOP - 8, height - BOTTOM + 8, FAINT, width))
                parts.append(text(x, height - BOTTOM + 24, f"{tick:g}", WORDS, anchor="middle"))
        return parts


def drawn_bar(bar: Bar, scale: Scale, y: float) -> list[str]:
    """A bar from 1, where both are equal, to the median, and the whole spread as a line over it."""
    start, end = sorted((scale.x(1), scale.x(bar.better)))
    parts = [
        text(LABEL - 12, y + 4, bar.words, WORDS, anchor="end"),
        f"<rect x='{start:.1f}' y='{y - 7:.1f}' width='{end - start:.1f}' height='14' fill='{bar.colour}' "
        "fill-opacity='0.45'/>",
        across(scale.x(bar.least), y, scale.x(bar.most), bar.colour, 2),
        f"<circle cx='{scale.x(bar.better):.1f}' cy='{y:.1f}' r='4' fill='{bar.colour}'/>",
    ]
    if bar.wanted is not None:
        parts.append(down(scale.x(bar.wanted), y - 10, y + 10, WORDS, 2))
    return parts
