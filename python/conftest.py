"""Options and fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

# The only code whose coverage is asked for, and its tests reach all of it. To trace the others, too, takes
# more than half of their time: the simulator runs the same lines millions of times.
COVERED = Path(__file__).parent / "logdevice" / "protocol"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the expected transcripts of the scenarios anew; read the diff before you keep it",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if COVERED not in item.path.parents:
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether expected transcripts are to be written instead of compared."""
    return bool(request.config.getoption("--rewrite"))
