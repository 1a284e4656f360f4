"""Finds the cluster that a command works on: `--endpoint`, `--data`, the environment, or ./logdevice-data.

The first of these that is given decides. Commands that start, stop or damage processes need a local cluster,
so they use only `--data` and ./logdevice-data.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logdevice.cli.local.local_cluster import LocalCluster, exists
from logdevice.errors import InvalidArgumentError

if TYPE_CHECKING:
    from logdevice.client.blocking import Client

ENDPOINT_VARIABLE: Final = "LOGDEVICE_ENDPOINT"
DATA_DEFAULT: Final = Path("logdevice-data")


@dataclass(frozen=True, slots=True)
class TargetCluster:
    """The endpoint of a cluster; `local` is set if its processes run on this machine."""

    endpoint: str
    local: LocalCluster | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which cluster")
    group.add_argument(
        "--endpoint",
        metavar="HOST:PORT,...",
        help=f"addresses of some nodes (default: --data, or the environment variable {ENDPOINT_VARIABLE})",
    )
    add_data_option(group)


def add_data_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"directory of a local cluster, as made by `logdevice up` (default ./{DATA_DEFAULT})",
    )


def find(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> TargetCluster:
    """The cluster that the options, the environment or the current directory name, in this order.

    Raises InvalidArgumentError if none of them does.
    """
    if options.endpoint:
        return TargetCluster(options.endpoint)
    if options.data is not None:
        return _local(options.data)
    if endpoint := environment.get(ENDPOINT_VARIABLE):
        return TargetCluster(endpoint)
    if exists(DATA_DEFAULT):
        return _local(DATA_DEFAULT)
    raise InvalidArgumentError(
        f"no cluster is given: use --endpoint HOST:PORT or --data DIR, set {ENDPOINT_VARIABLE}, or run the "
        f"command where ./{DATA_DEFAULT} is (`logdevice up` starts a cluster on this machine)"
    )


def find_local(options: argparse.Namespace) -> LocalCluster:
    """The local cluster in `--data` or ./logdevice-data; InvalidArgumentError if there is none."""
    return LocalCluster.load(options.data if options.data is not None else DATA_DEFAULT)


def connect(options: argparse.Namespace) -> Client:
    from logdevice.client import connect  # takes a while to load

    return connect(find(options).endpoint)


def _local(data: Path) -> TargetCluster:
    cluster = LocalCluster.load(data)
    return TargetCluster(cluster.endpoint, cluster)
