"""What docs/decisions/ promises: numbers without holes, and a list of all records."""

from __future__ import annotations

from tools.docs.generate import ROOT

DECISIONS = ROOT / "docs" / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))


def test_decisions_are_numbered_from_1_without_holes_in_name_and_heading() -> None:
    expected = list(range(1, len(RECORDS) + 1))
    assert [int(record.name.partition("-")[0]) for record in RECORDS] == expected
    headings = [record.read_text(encoding="utf-8").partition("\n")[0] for record in RECORDS]
    assert [heading.partition(".")[0] for heading in headings] == [f"# {number}" for number in expected]


def test_the_list_of_decisions_has_a_row_for_each() -> None:
    page = (DECISIONS / "README.md").read_text(encoding="utf-8")
    rows = [line.partition(" | ")[0] for line in page.splitlines() if line.startswith("| [")]
    assert rows == [f"| [{number}]({record.name})" for number, record in enumerate(RECORDS, 1)]
