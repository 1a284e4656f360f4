"""The tables of mutants follow the code: one that fits nowhere would show nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants.__main__ import SIMULATIONS, misfits
from tools.mutants.finder import Code, MisfitError
from tools.mutants.table import TABLES, Mutant, all_mutants, read

MODULE = """
LIMIT = 3
class Window:
    def take(self, lsn, *, copies):
        # A comment, and a line break, in the middle.
        if (lsn <
                self.end) and copies:
            self.count += 1
            self.seen.add(
                lsn)
        return lsn < self.end
    def drop(self, lsn):
        return lsn < self.end
"""


@pytest.fixture
def code(tmp_path: Path) -> Code:
    (tmp_path / "window.py").write_text(MODULE)
    (tmp_path / "limits.py").write_text("LIMIT = 4\n")
    return Code(tmp_path)


def broken(code: Code, place: str, old: str, new: str) -> str:
    return ast.unparse(ast.parse(code.broken(place, old, new)[1]))


def test_every_mutant_is_found_once_and_changes_the_program() -> None:
    assert misfits(all_mutants(), Code()) == []


def test_every_table_has_a_simulation() -> None:
    assert {table.stem for table in TABLES.iterdir()} == set(SIMULATIONS)


def test_an_expression_is_found_however_it_is_written(code: Code) -> None:
    assert "if lsn < 0 or copies:" in broken(
        code, "Window.take", "lsn < self.end and copies", "lsn < 0 or copies"
    )


def test_statements_are_replaced_with_their_indentation(code: Code) -> None:
    text = broken(code, "Window.take", "self.count += 1; self.seen.add(lsn)", "self.count = 0; lsn = 1")
    assert "        self.count = 0\n            lsn = 1\n        return" in text


def test_a_statement_is_taken_away(code: Code) -> None:
    assert "self.count += 1\n            pass\n" in broken(code, "Window.take", "self.seen.add(lsn)", "pass")


def test_a_new_expression_keeps_its_meaning_among_its_neighbours(code: Code) -> None:
    assert "LIMIT = 4 if 1 else 2" in broken(code, "limits.LIMIT", "4", "4 if 1 else 2")
    assert "(1 or 2) < self.end" in broken(code, "Window.drop", "lsn", "1 or 2")


@pytest.mark.parametrize(
    ("place", "old", "new", "problem"),
    [
        ("Window.take", "lsn < self.end", "True", "found 2 times"),
        ("Window.take", "lsn < self.start", "True", "found 0 times"),
        ("Window.give", "lsn", "0", "there is no Window.give"),
        ("LIMIT", "3", "0", "several files"),
        ("Window.drop", "lsn < self.end", "(lsn < self.end)", "changes nothing"),
    ],
)
def test_a_mutant_that_does_not_fit_is_an_error(
    code: Code, place: str, old: str, new: str, problem: str
) -> None:
    with pytest.raises(MisfitError, match=problem):
        code.broken(place, old, new)


def test_a_mutant_is_a_rule_a_reason_a_place_and_a_change() -> None:
    table = "Z98 no node sends\n    Window.take: lsn < self.end\n        -> True\nZ99 x\n    f: a -> pass\n"
    assert read("chain", table) == [
        Mutant("chain", "Z98", "no node sends", "Window.take", "lsn < self.end", "True"),
        Mutant("chain", "Z99", "x", "f", "a", "pass"),
    ]


def test_a_line_that_is_no_mutant_is_an_error() -> None:
    with pytest.raises(ValueError, match="this is not a mutant: no node"):
        read("chain", "no node sends\n    Window.take: lsn < self.end -> True\n")
