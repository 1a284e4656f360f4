"""Runs the `logdevice` command for tests: in this process if that is enough, else as its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from integration_tests.cluster import Cluster
from logdevice.cli.main import main
from logdevice.cli.target_cluster import ENDPOINT_VARIABLE

COMMAND = (sys.executable, "-m", "logdevice.cli")


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it wrote."""

    code: int
    out: bytes
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """Runs commands on one cluster."""

    def __init__(self, cluster: Cluster, capture: pytest.CaptureFixture[bytes]) -> None:
        self._cluster, self._capture = cluster, capture

    def __call__(self, *words: str) -> Said:
        """Runs a command, and returns its output and exit code, whatever they are."""
        self._capture.readouterr()
        code = main([*words, "--data", str(self._cluster.data)])
        out, err = self._capture.readouterr()
        return Said(code, out, err.decode())

    def done(self, *words: str) -> Said:
        """Runs a command that must succeed."""
        said = self(*words)
        assert said.code == 0, f"{words} ended with {said.code}: {said.err}"
        return said

    def process(self, *words: str) -> subprocess.Popen[bytes]:
        return process(*words, "--data", str(self._cluster.data))


def process(*words: str) -> subprocess.Popen[bytes]:
    """Starts a command as its own process, without a cluster in its environment."""
    environment = {name: value for name, value in os.environ.items() if name != ENDPOINT_VARIABLE}
    return subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
