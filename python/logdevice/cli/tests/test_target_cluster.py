"""Which cluster a command works on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.target_cluster import DATA_DEFAULT, ENDPOINT_VARIABLE, find, find_local
from logdevice.errors import InvalidArgumentError

ENVIRONMENT = {ENDPOINT_VARIABLE: "env:1"}


def options(endpoint: str | None = None, data: Path | None = None) -> argparse.Namespace:
    return argparse.Namespace(endpoint=endpoint, data=data)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalCluster:
    monkeypatch.chdir(tmp_path)
    return LocalCluster.create(Path(DATA_DEFAULT), nodes=1)


@pytest.mark.usefixtures("here")
def test_an_endpoint_comes_first(tmp_path: Path) -> None:
    assert find(options("flag:1", tmp_path), ENVIRONMENT).endpoint == "flag:1"


@pytest.mark.usefixtures("here")
def test_a_directory_comes_before_the_environment(tmp_path: Path) -> None:
    other = LocalCluster.create(tmp_path / "other", nodes=1)
    place = find(options(data=tmp_path / "other"), ENVIRONMENT)
    assert place.endpoint == other.endpoint
    assert place.local is not None


@pytest.mark.usefixtures("here")
def test_the_environment_comes_before_the_current_directory() -> None:
    assert find(options(), ENVIRONMENT).endpoint == "env:1"


def test_the_current_directory_comes_last(here: LocalCluster) -> None:
    assert find(options(), {}).endpoint == here.endpoint


def test_commands_about_processes_need_a_local_cluster(here: LocalCluster, tmp_path: Path) -> None:
    assert find_local(options()).endpoint == here.endpoint
    with pytest.raises(InvalidArgumentError, match="no local cluster"):
        find_local(options(data=tmp_path / "nothing"))
