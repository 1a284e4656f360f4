"""Pictures as SVG: text and lines on a white page, simple enough to need no library."""

from __future__ import annotations

import html
from collections.abc import Iterable


def drawing(width: float, height: float, parts: Iterable[str]) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif' "
        f"font-size='12' role='img'><rect width='{width}' height='{height}' fill='white'/>"
    )
    return "\n".join([head, *parts, "</svg>"])


def text(x: float, y: float, words: str, colour: str, anchor: str = "start") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' fill='{colour}' text-anchor='{anchor}'>{html.escape(words)}</text>"


def across(x: float, y: float, x_end: float, colour: str, width: float) -> str:
    """A horizontal line."""
    return f"<path d='M{x:.1f} {y:.1f}H{x_end:.1f}' stroke='{colour}' stroke-width='{width}'/>"


def down(x: float, y: float, y_end: float, colour: str, width: float = 1, dashes: str = "none") -> str:
    """A vertical line."""
    return (
        f"<path d='M{x:.1f} {y:.1f}V{y_end:.1f}' stroke='{colour}' stroke-width='{width}' "
        f"stroke-dasharray='{dashes}'/>"
    )
