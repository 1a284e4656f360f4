"""What the glossary promises: it renders, and it has each word once."""

from __future__ import annotations

import re
from collections import Counter
from enum import Enum
from itertools import groupby

import pytest

from logdevice.types import AuthoritativeStatus, GapType
from tools.docs.generate import ROOT

DOCS = ROOT / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")
HEAD, SEPARATOR = "| word | meaning |", "| --- | --- |"
_OF_READERS = [kind for kind in GapType if kind is not GapType.ROLLBACK]  # which is in rows of Spark alone
_OF_SPARK = [kind for kind in GapType if kind is not GapType.FILTERED_OUT]  # Spark reads without a time range


def rows(page: str) -> list[str]:
    """The lines of tables that are neither a head nor a separator."""
    return [line for line in page.splitlines() if is_table_line(line) and line not in (HEAD, SEPARATOR)]


def terms(page: str) -> list[str]:
    """What is bold in the first column."""
    return [term for row in rows(page) for term in re.findall(r"\*\*(.+?)\*\*", row.split(" | ")[0])]


def rows_without_table(page: str) -> list[str]:
    """Rows that Markdown shows as text, because no head and separator come first in their block."""
    blocks = [list(lines) for is_row, lines in groupby(page.splitlines(), is_table_line) if is_row]
    return [row for block in blocks if block[:2] != [HEAD, SEPARATOR] for row in block]


def is_table_line(line: str) -> bool:
    return line.startswith("|")


def test_no_row_stands_outside_of_a_table() -> None:
    assert rows_without_table(GLOSSARY) == []


def test_a_blank_line_that_cuts_a_table_is_noticed() -> None:
    cut = f"## Logs\n\n{HEAD}\n{SEPARATOR}\n| **log** | ... |\n\n| **keyed log** | ... |\n"
    assert rows_without_table(cut) == ["| **keyed log** | ... |"]


def test_every_row_defines_a_term_and_says_what_it_means() -> None:
    assert [row for row in rows(GLOSSARY) if not re.fullmatch(r"\| \*\*.+?\*\*.* \| [^|]+ \|", row)] == []


def test_no_term_is_defined_twice() -> None:
    assert [term for term, count in Counter(terms(GLOSSARY)).items() if count > 1] == []


@pytest.mark.parametrize("word", [*GapType, *AuthoritativeStatus], ids=lambda word: word.name)
def test_every_gap_type_and_every_status_is_defined_once(word: Enum) -> None:
    assert terms(GLOSSARY).count(word.name) == 1


@pytest.mark.parametrize(("page", "kinds"), [("client.md", _OF_READERS), ("spark.md", _OF_SPARK)])
def test_every_gap_type_is_on_the_pages_of_those_who_meet_it(page: str, kinds: list[GapType]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [kind.value for kind in kinds if f"`{kind.value}`" not in text] == []


def test_every_page_that_the_glossary_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)", GLOSSARY)
    assert links
    assert [link for link in links if not (DOCS / link).is_file()] == []
