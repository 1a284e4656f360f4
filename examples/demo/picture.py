"""The picture of the demo: throughput, lag and faults over time, as SVG in an HTML page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from examples.demo.svg import across, down, drawing, text
from examples.demo.watch import Mark, Sample, Watch

WIDTH, LEFT, RIGHT = 960, 70, 20
LABELS, PANEL, SPACE = 90, 170, 45  # heights
APPENDED, TABLE, LAG, FAULT, MENDED = "#1f6feb", "#2da44e", "#bf8700", "#cf222e", "#6e7781"
RATE_WINDOWS = 40  # a rate is over this fraction of the whole time: single samples jump with the batches
TICKS = 4

Points = list[tuple[float, float]]


def page(watch: Watch, summary: Sequence[str]) -> str:
    table = html.escape("\n".join(summary))
    return (
        "<!doctype html><meta charset='utf-8'><title>LogDevice for Spark: demo</title>"
        "<body style='font-family: sans-serif; max-width: 1000px; margin: 2em auto'>"
        f"<h1>A storage node, a sequencer and a Spark driver are killed</h1>"
        f"{svg(watch.samples, watch.marks)}<pre>{table}</pre></body>\n"
    )


def svg(samples: Sequence[Sample], marks: Sequence[Mark]) -> str:
    end_s = max([sample.at_s for sample in samples] + [mark.at_s for mark in marks] + [1.0])
    top = Panel(LABELS, end_s, rates(samples, "appended"), rates(samples, "in_table"))
    bottom = Panel(LABELS + PANEL + SPACE, end_s, [(sample.at_s, sample.lag) for sample in samples])
    height = LABELS + 2 * PANEL + 2 * SPACE
    parts = [
        *top.axes("entries per second"),
        *bottom.axes("appended, but not yet in the table"),
        *(drawn_mark(top, bottom, mark, number) for number, mark in enumerate(marks)),
        top.line(top.curves[0], APPENDED),
        top.line(top.curves[1], TABLE),
        bottom.line(bottom.curves[0], LAG),
        text(WIDTH - RIGHT, LABELS + 14, "appended", APPENDED, anchor="end"),
        text(WIDTH - RIGHT, LABELS + 30, "in the Delta table", TABLE, anchor="end"),
        text(WIDTH / 2, height - 8, "seconds", MENDED, anchor="middle"),
    ]
    return drawing(WIDTH, height, parts)


def rates(samples: Sequence[Sample], name: str) -> Points:
    """Per second, over the last few samples."""
    points: Points = []
    first = 0
    window_s = samples[-1].at_s / RATE_WINDOWS if samples else 0
    for sample in samples:
        while sample.at_s - samples[first].at_s > max(window_s, 1):
            first += 1
        seconds = sample.at_s - samples[first].at_s
        if seconds > 0:
            points.append((sample.at_s, (getattr(sample, name) - getattr(samples[first], name)) / seconds))
    return points


class Panel:
    """One diagram; all share the time axis."""

    def __init__(self, top: float, end_s: float, *curves: Points) -> None:
        self.top, self.end_s, self.curves = top, end_s, curves
        highest = max([value for curve in curves for _, value in curve], default=0)
        self.step = nice(max(highest, 1) / TICKS)
        self.highest = self.step * math.ceil(max(highest, 1) / self.step)

    def x(self, at_s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at_s / self.end_s

    def y(self, value: float) -> float:
        return self.top + PANEL * (1 - value / self.highest)

    def axes(self, title: str) -> list[str]:
        parts = [text(LEFT, self.top - 6, title, MENDED)]
        value = 0.0
        while value <= self.highest:
            y = self.y(value)
            parts.append(across(LEFT, y, WIDTH - RIGHT, "#d0d7de", 0.5))
            parts.append(text(LEFT - 6, y + 4, f"{value:.0f}", MENDED, anchor="end"))
            value += self.step
        step_s = nice(self.end_s / 10)
        for number in range(int(self.end_s / step_s) + 1):
            at_s = number * step_s
            parts.append(text(self.x(at_s), self.top + PANEL + 16, f"{at_s:.0f}", MENDED, anchor="middle"))
        return parts

    def line(self, points: Points, colour: str) -> str:
        places = " ".join(f"{self.x(at_s):.1f},{self.y(value):.1f}" for at_s, value in points)
        return f"<polyline points='{places}' fill='none' stroke='{colour}' stroke-width='1.8'/>"


def drawn_mark(top: Panel, bottom: Panel, mark: Mark, number: int) -> str:
    """A line through both diagrams; labels next to each other have different heights."""
    x, colour = top.x(mark.at_s), FAULT if mark.is_fault else MENDED
    y = 16 + number % 5 * 15
    anchor = "end" if x > WIDTH * 0.8 else "start"
    label = text(x + (-4 if anchor == "end" else 4), y, mark.text, colour, anchor=anchor)
    return down(x, y, bottom.top + PANEL, colour, dashes="4 3") + label


def nice(number: float) -> float:
    """The next number of the form 1, 2 or 5 times a power of ten, at least 1."""
    size = 1.0
    while True:
        for factor in (1, 2, 5):
            if size * factor >= number:
                return size * factor
        size *= 10
