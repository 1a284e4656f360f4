"""Options and fixtures that every test may use."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the expected transcripts of the scenarios anew; read the diff before you keep it",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether expected transcripts are to be written instead of compared."""
    return bool(request.config.getoption("--rewrite"))
