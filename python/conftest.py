"""Options and fixtures that every test may use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from logdevice.client.tests.small_cluster import SmallCluster

# Coverage is measured for this code alone, and its own tests reach all of it. Tracing the other tests, too,
# would more than double their time: the simulator runs the same lines millions of times.
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[SmallCluster]:
    """Nodes for tests that can share them: a test file has them for itself, and makes its own logs."""
    from logdevice.client.tests.cluster_thread import cluster_in_a_thread

    with cluster_in_a_thread() as cluster:
        yield cluster
    gc.unfreeze()  # `connections.freeze_gc` is meant for processes that do nothing else
