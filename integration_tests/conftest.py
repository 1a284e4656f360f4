"""One cluster of real processes for all tests of a run; every test finds it whole and makes its own log.

With LOGDEVICE_REPLICATION_MODE=chain, logs are chain logs unless a test sets another mode. So the same tests,
also those with Spark, run with the other kind of log (`make test-chain`). Tests that are marked `both_kinds`
always run with both kinds.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from integration_tests.cluster import Cluster
from logdevice.cli.commands.clusters import bring_up

# A run in the background ignores interrupts, and so would every process that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MODE = os.environ.get("LOGDEVICE_REPLICATION_MODE", "copyset")
KINDS = ("copyset", "chain") if MODE == "copyset" else (MODE,)
NODES = 5
REPLICATION = 3
TEST_TIMEOUT_S = 300
HERE = Path(__file__).parent
PLACES = ("spark", "cluster", "drivers")
# These take half of the time of all tests with Spark: those that start Spark themselves, and some others.
DRIVERS = frozenset(
    {
        "test_checkpoints.py",
        "test_data_loss.py",
        "test_etl.py",
        "test_etl_command.py",
        "test_jvm_executors.py",
        "test_killed_driver.py",
        "test_other_executors.py",
        "test_rollback.py",
    }
)


class OnePlaceOneWorker(LoadScopeScheduling):  # type: ignore[misc]
    """Gives all tests of a place to one worker. There are three places: the tests of each share a cluster,
    and those of two also share Spark. They take longest, so they begin first.

    All other tests go to the next free worker, file by file: test by test, workers would wait for the
    scheduler. Only simulations go test by test, and last, because some of their files take half a minute.

    xdist_group would do the same, but xdist 3.8 ignores groups with pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        place = self.config.rootpath / file
        if HERE not in place.parents:
            return nodeid if "simulation" in place.parts else file
        if place.parent.name != "spark":
            return "cluster"
        return "drivers" if place.name in DRIVERS else "spark"

    def _assign_work_unit(self, node: WorkerController) -> None:
        if places := [place for place in PLACES if place in self.workqueue]:
            self.workqueue.move_to_end(places[0], last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return OnePlaceOneWorker(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_kinds"):
        metafunc.parametrize("log", KINDS, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    limit = config.getoption("timeout") or TEST_TIMEOUT_S  # --timeout, if given, decides
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)
            # Longer than any wait inside a test, so that the test itself can say what did not happen.
            item.add_marker(pytest.mark.timeout(limit))


@contextmanager
def running(data: Path) -> Iterator[Cluster]:
    """A new cluster, for as long as the block runs."""
    cluster = Cluster.create(data, nodes=NODES, replication=REPLICATION)
    try:
        bring_up(cluster)
        with cluster.client() as client:
            for kind in KINDS:
                client.create_directory(f"/{kind}", {"replication_mode": kind})
            if MODE != "copyset":
                client.set_attributes("/", {"replication_mode": MODE})
        yield cluster
    finally:
        cluster.kill_all()


@pytest.fixture(scope="session")
def shared_cluster(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster") / "data") as cluster:
        pytestconfig.stash[SHARED] = cluster
        yield cluster


SHARED = pytest.StashKey[Cluster]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stops the cluster after its last test, because an idle cluster would slow down unit tests. If another
    test needs it later, `mend` starts it again.
    """
    if nextitem is not None and HERE not in nextitem.path.parents and SHARED in item.config.stash:
        item.config.stash[SHARED].kill_all()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    shared_cluster.mend()
    return shared_cluster


@pytest.fixture
def cluster_to_damage(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster for one test: a node that has lost records for good is not whole after a restart."""
    with running(tmp_path / "data") as cluster:
        yield cluster


@pytest.fixture
def log(request: pytest.FixtureRequest) -> str:
    """The path of a log that only this test uses."""
    name: str = request.node.name
    directory = getattr(request, "param", "tests")  # one of KINDS, if the test is run for several
    return f"/{directory}/" + re.sub(r"[^\w-]+", "-", name).strip("-")[:100]
