"""The processor time and memory of processes of this machine, as Linux counts them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from logdevice.cli.local.local_cluster import LocalCluster

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def pids(cluster: LocalCluster) -> list[int]:
    """The process ids of the running nodes."""
    return [entry.process.pid for entry in cluster.nodes.values() if entry.process]


def cpu_s(processes: Iterable[int]) -> float:
    """The processor time of all of them since they began, including the kernel's work for them."""
    total = 0
    for pid in processes:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS_PER_S


def resident_bytes(processes: Iterable[int]) -> int:
    """The memory that all of them use now."""
    return sum(_status(pid, "VmRSS") for pid in processes)


def peak_bytes(pid: int) -> int:
    """The peak memory of a process."""
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
