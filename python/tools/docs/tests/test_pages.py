"""What the pages of settings and errors promise."""

from __future__ import annotations

import pytest

from logdevice.errors import kinds
from logdevice.log_attributes import ATTRIBUTES
from logdevice.settings.declarations import declared
from logdevice.settings.retired import RETIRED
from tools.docs.generate import ROOT
from tools.docs.pages import COMPONENTS, errors_page, knob_table, settings_page, table


def test_every_setting_has_a_row() -> None:
    page = settings_page()
    for component in filter(declared, COMPONENTS):
        assert f"(`{component.__name__}`)\n" in page
        for knob in declared(component).values():
            assert page.count(f"| `{knob.name}` |") == 1
    assert "`batch_raw_bytes_max` must be at least `batch_bytes_max`." in page
    assert "all_send_all_timeout_ms" not in page


def test_every_setting_that_is_gone_is_in_a_row_of_the_page_about_upgrading() -> None:
    page = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    rows = page.split("<!-- retired settings -->")[1].splitlines()
    for name, answer in RETIRED.items():
        (row,) = (line for line in rows if f"`{name}`" in line)
        assert row.endswith(f"| {answer} |")


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
