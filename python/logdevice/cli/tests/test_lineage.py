"""What `logs lineage` shows, and that `logs remove` asks first."""

from __future__ import annotations

import pytest

from logdevice.cli.commands.logs import lineage_rows
from logdevice.cli.main import main
from logdevice.protocol.lineage import Lineage
from logdevice.types import Epoch, Lsn


def test_branches_are_shown_oldest_first_with_their_versions() -> None:
    lineage = Lineage(dropped=3).branched(42, Epoch(1), Lsn(1)).branched(7, Epoch(5), Lsn.of(4, 9))
    assert lineage_rows(lineage) == [
        {"version": 4, "id": "00000000002a", "first_epoch": 1, "base": "e0n1"},
        {"version": 5, "id": "000000000007", "first_epoch": 5, "base": "e4n9"},
    ]


def test_a_log_is_not_removed_without_confirmation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "remove", "/a", "--endpoint", "127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert "gone for good" in said
    assert said.endswith("give --yes to confirm.\n")
