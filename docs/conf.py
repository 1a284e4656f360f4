"""How Sphinx makes a site of the documents: `make site`.

The pages are those of the repository. The list beside them is that of docs/README.md, by the same sections.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LINK: Final = re.compile(r"\]\(([^)#:]+\.md)[#)]")
TO_FIRST_PAGE: Final = (
    '<meta http-equiv="refresh" content="0; url=README.html"><a href="README.html">Documents</a>\n'
)

project = "LogDevice for Spark"
author = "LogDevice for Spark developers"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "build", "connector", "dist", "examples", "integration_tests", "python"]
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_title = project
html_show_sphinx = False
html_copy_source = False
highlight_language = "none"  # output and commands are not to be coloured as if they were Python


def setup(app: Any) -> None:
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_first_page)


def add_contents(_app: Any, name: str, source: list[str]) -> None:
    """Gives the first page the list of all pages, which the theme shows beside every page."""
    if name == root_doc:
        source[0] += "\n".join(contents(ROOT))


def contents(root: Path) -> list[str]:
    """Lists of pages for Sphinx: one for each section of docs/README.md, and one for all other pages."""
    index = root / "docs" / "README.md"
    listed = {index, root / f"{root_doc}.md"}
    lines = list_of("", [index], root)
    for section in index.read_text(encoding="utf-8").split("\n## ")[1:]:
        pages = dict.fromkeys((index.parent / link).resolve() for link in LINK.findall(section))
        lines += list_of(section.partition("\n")[0], [page for page in pages if page not in listed], root)
        listed |= set(pages)
    pages = sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])
    return lines + list_of("More", [page for page in pages if page not in listed], root)


def list_of(caption: str, pages: list[Path], root: Path) -> list[str]:
    options = [":hidden:", ":maxdepth: 1", *([f":caption: {caption}"] if caption else [])]
    names = [page.relative_to(root).with_suffix("").as_posix() for page in pages]
    return ["", "```{toctree}", *options, "", *names, "```", ""]


def add_first_page(app: Any, problem: Exception | None) -> None:
    if problem is None:
        (Path(app.outdir) / "index.html").write_text(TO_FIRST_PAGE, encoding="utf-8")
