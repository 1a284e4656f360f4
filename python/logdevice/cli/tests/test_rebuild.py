"""What the commands about the data of nodes show."""

from __future__ import annotations

import io
import json

import pytest

from logdevice.cli.commands.check import show as show_report
from logdevice.cli.commands.rebuild import show, shown_state
from logdevice.cli.commands.rebuild_progress import progress_of
from logdevice.cli.main import main
from logdevice.cli.output import Output
from logdevice.cli.progress import bar
from logdevice.client.admin.replication_check import CheckReport, Finding, Problem
from logdevice.protocol.messages.service import NodeState, NodeStates, NodeStatus
from logdevice.protocol.rebuilding.node_status import CaseMode
from logdevice.types import AuthoritativeStatus, Lsn, NodeId

FULL, LOST, EMPTY, AWAY = AuthoritativeStatus


def state(
    mode: CaseMode = CaseMode.RESTORE,
    status: AuthoritativeStatus = AuthoritativeStatus.UNAVAILABLE,
    *,
    is_ready: bool = False,
    is_settled: bool = False,
) -> NodeState:
    return NodeState(
        node=NodeId(3),
        mode=mode,
        status=status,
        is_recoverable=True,
        is_ready=is_ready,
        is_settled=is_settled,
        donors=4,
        donors_done=0,
    )


def said(*, is_json: bool = False) -> tuple[Output, io.BytesIO, io.StringIO]:
    results, remarks = io.BytesIO(), io.StringIO()
    return Output(results, remarks, is_json=is_json), results, remarks


def test_the_state_of_a_nodes_data_is_shown_in_a_word_or_two() -> None:
    assert shown_state(None) == "whole"
    assert shown_state(state(CaseMode.CHECK, FULL)) == "whole"
    assert shown_state(state(is_ready=True)) == "lost"
    assert shown_state(state()) == "away"
    assert shown_state(state(status=LOST)) == "given up"
    assert shown_state(state(status=EMPTY, is_settled=True)) == "elsewhere"
    assert shown_state(state(CaseMode.DRAIN, FULL)) == "draining"
    assert shown_state(state(CaseMode.DRAIN, EMPTY, is_ready=True, is_settled=True)) == "drained"


def test_nodes_with_an_open_case_are_listed() -> None:
    output, results, _ = said()
    show(NodeStates(5, (state(is_ready=True),)), output)
    assert results.getvalue().decode().split() == ["node", "data", "N3", "lost"]


def test_a_bar_shows_the_share_done_and_the_time_left() -> None:
    assert bar(0, None) == "[" + "." * 30 + "] 0%"
    assert bar(0.5, 10) == "[" + "#" * 15 + "." * 15 + "] 50%, about 10 s left"
    assert bar(2, 10) == "[" + "#" * 30 + "] 100%"


def donor(share: float, elapsed_s: float) -> NodeStatus:
    metrics = {"logdevice_rebuild_share": share, "logdevice_rebuild_elapsed_seconds": elapsed_s}
    return NodeStatus(node=NodeId(1), started_ms=0, logs="{}", metrics=json.dumps(metrics))


def test_progress_is_the_mean_of_the_donors_and_the_time_left_is_that_of_the_slowest() -> None:
    found = progress_of([state(is_ready=True)], [donor(0.5, 10), donor(0.25, 10), None, donor(1, 0)])
    assert found is not None
    assert found.plain == {
        "what": "restoring N3",
        "share": 0.5833,
        "seconds_left": 30.0,
        "donors": 4,
        "donors_done": 0,
    }
    assert found.line.endswith("58%, about 30 s left; 0 of 4 nodes done")


def test_no_time_left_is_shown_until_every_donor_has_copied_some() -> None:
    found = progress_of([state(CaseMode.DRAIN, FULL)], [donor(0.5, 10), donor(0.01, 10)])
    assert found is not None
    assert found.left_s is None
    assert "left" not in found.line


def test_settled_cases_show_no_progress() -> None:
    assert progress_of([], [donor(1, 0)]) is None
    assert progress_of([state(CaseMode.DRAIN, EMPTY, is_ready=True, is_settled=True)], []) is None


def test_data_is_not_given_up_without_confirmation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark-unrecoverable", "3", "--endpoint", "127.0.0.1:1"]) == 2
    assert "give --yes to confirm" in capsys.readouterr().err


def test_a_report_shows_the_first_findings_and_how_many_there_are() -> None:
    report = CheckReport(Lsn(9), records=5, copies=14)
    report.findings += [Finding(Lsn.of(1, esn), Problem.TOO_FEW_COPIES, "on N1") for esn in (1, 2)]
    report.silent = (NodeId(4),)
    output, results, remarks = said()
    show_report(report, 1, output)
    text = results.getvalue().decode()
    assert "e1n1  TOO_FEW_COPIES  on N1" in text
    assert "and 1 more" in text
    assert "5 records in 14 copies: 2 findings" in text
    assert "N4" in remarks.getvalue()
    assert not report.is_clean
