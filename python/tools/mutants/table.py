"""What is broken: the tables in `tables/`, one for each part of the protocol.

    C2  a node in the known-down list sends nothing
        CopyFilter.__init__: frozenset(start.known_down) - {me} -> frozenset(start.known_down)

The rule and what is wrong without it; then, indented, the place and what becomes of its code: an
expression, or statements with `;` between them. `-> pass` takes a statement away. `finder.py` says how
the code is found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).parent / "tables"
MUTANT = re.compile(r"^(?P<rule>[A-Z]\d+) +(?P<why>.+)\n(?P<change>(?: +.+\n)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    part: str  # whose simulation should notice: the table's name
    rule: str
    why: str
    place: str = ""
    old: str = ""
    new: str = ""


def all_mutants() -> list[Mutant]:
    return [
        mutant for table in sorted(TABLES.glob("*.txt")) for mutant in read(table.stem, table.read_text())
    ]


def read(part: str, table: str) -> list[Mutant]:
    if rest := MUTANT.sub("", table).strip():
        raise ValueError(f"{part}: this is not a mutant: {rest}")
    mutants = []
    for found in MUTANT.finditer(table):
        place, _, change = " ".join(found["change"].split()).partition(": ")
        old, _, new = change.partition(" -> ")
        mutants.append(Mutant(part, found["rule"], found["why"], place, old, new))
    return mutants
