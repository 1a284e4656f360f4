"""What `make docs` promises: everything generated is in the tree, is current, and nothing is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import rule_tables
from tools.docs.generate import ROOT, main, outdated


def test_everything_in_the_tree_is_current() -> None:
    assert [str(path.relative_to(ROOT)) for path in outdated()] == [], "run `make docs`"


def test_what_is_missing_old_or_left_over_is_named_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, left_over = tmp_path / "docs" / "errors.md", tmp_path / rule_tables.FOLDER / "gone.md"
    for file in (old, left_over):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("old", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    said = capsys.readouterr().out
    for name in (
        "docs/settings.md",
        "docs/errors.md",
        "docs/images/architecture.svg",
        f"{rule_tables.FOLDER}/gone.md",
    ):
        assert f"{name} is not what the code says" in said
    assert old.read_text(encoding="utf-8") == "old"

    assert main([], tmp_path) == 0
    assert not left_over.exists()
    capsys.readouterr()
    assert main(["--check"], tmp_path) == 0
    assert main([], tmp_path) == 0
    assert capsys.readouterr().out == ""


def test_a_rule_that_no_test_names_is_complained_about(tmp_path: Path) -> None:
    for name, text in {
        "docs/protocol/new.md": "# New rules\n\n- **Q1** guarded\n- **Q2** not guarded\n",
        "python/test_new.py": 'def test_one() -> None:\n    """Q1."""\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert rule_tables.unguarded(tmp_path) == ["docs/protocol/new.md: no test names rule Q2"]
    page = rule_tables.pages(tmp_path)[f"{rule_tables.FOLDER}/new.md"]
    assert "| Q1 | `test_new.one` |" in page
