"""The form of the documents: no broken link, no test that does not exist, no line that is too long."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.docs.generate import ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ELSEWHERE = ("http://", "https://")


def pages(root: Path) -> list[Path]:
    folders = ("docs", "examples", ".github")
    return sorted([*root.glob("*.md"), *(page for each in folders for page in (root / each).rglob("*.md"))])


def broken(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return [
        link
        for link in LINK.findall(text)
        if not link.startswith(ELSEWHERE) and not leads_somewhere(page, link)
    ]


def leads_somewhere(page: Path, link: str) -> bool:
    """A folder does not count: the site has no page for it."""
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.is_file() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """How headings are linked to, as code hosts and the site do it."""
    found: set[str] = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        number = sum(1 for each in found if re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", each))
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


@pytest.mark.parametrize("page", pages(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A b, `c`!\n[here](#a-b-c) [gone](#d) [file](no.md) [folder](.) `[code](no.md)`", encoding="utf-8"
    )
    assert broken(page) == ["#d", "no.md", "."]


def test_every_test_that_a_document_names_exists() -> None:
    files = [*(ROOT / "python").rglob("test_*.py"), *(ROOT / "integration_tests").rglob("test_*.py")]
    known = {"test_architecture.py"}
    for file in files:
        tests = re.findall(r"def (test_(\w+))", file.read_text(encoding="utf-8"))
        known |= {
            file.stem,
            file.name,
            *(name for name, _ in tests),
            *(f"{file.stem}.{name}" for _, name in tests),
        }
    named = re.compile(r"`(test_[\w.]+)`")
    assert {
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages(ROOT)
        for name in named.findall(page.read_text(encoding="utf-8"))
        if name not in known
    } == set()


@pytest.mark.parametrize("page", pages(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_fits_into_120_columns(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    assert [line for line in prose if len(line) > 120] == []
