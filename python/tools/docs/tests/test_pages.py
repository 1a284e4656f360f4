"""What the pages of settings and errors promise."""

from __future__ import annotations

import pytest

from logdevice.errors import kinds
from logdevice.log_attributes import ATTRIBUTES
from logdevice.settings.declarations import declared
from tools.docs.generate import ROOT
from tools.docs.pages import COMPONENTS, errors_page, knob_table, settings_page, table


def test_every_setting_has_a_row() -> None:
    page = settings_page()
    for component in COMPONENTS:
        assert f"## {component.__name__}" in page
        for knob in declared(component).values():
            assert page.count(f"| `{knob.name}` |") == 1
    assert "`all_send_all_timeout_ms` must be at least `scd_timeout_ms`." in page


def test_every_error_has_a_row() -> None:
    page = errors_page()
    for error in kinds():
        assert page.count(f"| {int(error.code)} | `{error.__name__}` |") == 1


def test_the_page_of_metadata_lists_every_attribute_as_it_is() -> None:
    expected = "\n".join(knob_table("attribute", ATTRIBUTES))
    page = (ROOT / "docs" / "metadata.md").read_text(encoding="utf-8")
    assert expected in page, f"it should contain:\n{expected}"


@pytest.mark.parametrize("page", [settings_page(), errors_page()])
def test_the_first_line_says_that_the_page_is_generated(page: str) -> None:
    assert page.splitlines()[0].startswith("<!-- Generated from ")


def test_a_bar_in_a_cell_does_not_open_another_cell() -> None:
    assert table(("a",), [("x|y",)]) == ["| a |", "| --- |", "| x\\|y |"]
