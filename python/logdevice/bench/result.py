"""One measured number of a benchmark, and whether it is within its target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """A measured number. `least` and `most` are its target; without them it is only information."""

    what: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def is_met(self) -> bool:
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )

    @property
    def wanted(self) -> str | None:
        bounds = {"at least": self.least, "at most": self.most}
        return (
            " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None) or None
        )

    @property
    def plain(self) -> dict[str, object]:
        return {
            "what": self.what,
            "value": round(self.value, 4),
            "unit": self.unit,
            "wanted": self.wanted,
            "is_met": self.is_met,
        }

    @property
    def row(self) -> dict[str, object]:
        return {**self.plain, "value": f"{self.value:.3g}", "is_met": self.is_met if self.wanted else None}
