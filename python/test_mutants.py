"""The table of mutants follows the code: one whose text is gone would show nothing."""

from __future__ import annotations

from tools.mutants import ALL, misfits


def test_every_mutant_finds_its_text() -> None:
    assert list(misfits(ALL)) == []
