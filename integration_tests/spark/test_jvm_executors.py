"""Executors in other processes are killed while their Python workers hang: no worker is left over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from integration_tests.spark import session
from integration_tests.spark.stand_in import ROWS

PROGRAM_S = 280
ROOT = Path(__file__).parents[2]


def test_executors_that_are_killed_leave_no_worker_behind(tmp_path: Path) -> None:
    session.require_jar()
    command = [sys.executable, "-m", "integration_tests.spark.kill_executor", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_WORKER_DIR": str(tmp_path / "work")}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PROGRAM_S, check=False
    )
    assert done.stdout == f"[{ROWS}] rows, 1 killed, 0 left\n", done.stderr[-5000:]
