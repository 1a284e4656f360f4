"""What clients ask of any node about cuts that have a name. Every request may be sent again."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.cuts import Cut


@dataclass(frozen=True, slots=True)
class GetCuts:
    """The cut of this name, or with an empty one all that have a name."""

    name: str


@dataclass(frozen=True, slots=True)
class CutsAre:
    """Answer to GetCuts, by name."""

    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class KeepCut:
    """Keep this cut; its cookie is its name. Sent again it does nothing."""

    cut: Cut


@dataclass(frozen=True, slots=True)
class RemoveCut:
    """One that is not there is removed already."""

    name: str
