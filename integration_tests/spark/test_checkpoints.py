"""The errors that a user of Spark gets if options are wrong or a checkpoint does not fit the cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from integration_tests.spark.reading import (
    Source,
    append_numbers,
    entries_of,
    gaps_of,
    run_available,
)
from logdevice.client.blocking import Client
from logdevice.types import Lsn

pytestmark = pytest.mark.parametrize("source", ["python"], indirect=True)

ADVICE = "Correct the option; docs/spark.md lists what is allowed."


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"maxRecordPerTrigger": "5"},
            "there is no option 'maxrecordpertrigger'; the nearest is 'maxRecordsPerTrigger'",
        ),
        ({"minPartitions": "0"}, "option minPartitions must be an integer from 1 to 10000, got '0'"),
        (
            {"readTimeout": "soon"},
            "option readTimeout must be a time, such as 500ms, 30s or 5m; a plain number is",
        ),
    ],
)
def test_a_wrong_option_is_refused_when_the_frame_is_made(
    source: Source, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        source.stream("/any", **options)
    assert complaint in str(caught.value)
    assert ADVICE in str(caught.value)


def edit_offsets(checkpoint: Path, **changes: Any) -> None:
    rewrite_offsets(checkpoint, lambda plain: {**plain, **changes})


def rewrite_offsets(checkpoint: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes the last offsets of the source in a checkpoint."""
    last = max(int(path.name) for path in (checkpoint / "offsets").iterdir() if path.name.isdecimal())
    file = checkpoint / "offsets" / str(last)
    *head, ours = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*head, json.dumps(change(json.loads(ours)))]), encoding="utf-8")
    (checkpoint / "offsets" / f".{last}.crc").unlink(missing_ok=True)


def as_first_version(plain: dict[str, Any]) -> dict[str, Any]:
    """The offsets in version 1, which did not say where tasks end."""
    logs = {}
    for log, found in plain["logs"].items():
        marks = [[found["from"], "0", "0"], [found["next"], found["entries"], found["bytes"]]]
        logs[log] = {**{name: found[name] for name in ("path", "next", "from", "lineage")}, "marks": marks}
    return {"version": 1, "cluster": plain["cluster"], "logs": logs}


def test_a_query_continues_from_a_checkpoint_of_version_1(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    first = append_numbers(client, log, records=6)
    (rows,) = run_available(source.stream(log, startingOffsets="earliest"), tmp_path)
    assert entries_of(rows) == first
    rewrite_offsets(tmp_path, as_first_version)
    (tmp_path / "commits" / "0").unlink()  # the batch was planned before an upgrade, and runs again after it
    (tmp_path / "commits" / ".0.crc").unlink(missing_ok=True)
    later = append_numbers(client, log, records=2)
    again, more = run_available(source.stream(log, startingOffsets="earliest"), tmp_path)
    assert (entries_of(again), entries_of(more)) == (first, later)


def test_a_checkpoint_that_does_not_fit_fails_the_query_with_the_reason(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=6)
    run_available(source.stream(log), tmp_path)

    def stopped(**options: str) -> str:
        with pytest.raises(StreamingQueryException) as caught:
            run_available(source.stream(log, **options), tmp_path)
        return str(caught.value)

    complaint = stopped(endingOffsets="latest")
    assert "option endingOffsets is for batch reads; leave it out, a stream has no end" in complaint
    edit_offsets(tmp_path, cluster="other")
    assert (
        f"CheckpointClusterError: the checkpoint belongs to cluster 'other', but {source.endpoint}"
        in stopped()
    )
    edit_offsets(tmp_path, version=3)
    complaint = stopped()
    assert (
        "CheckpointFormatError: the checkpoint has version 3; this program reads versions up to" in complaint
    )
    assert "Run the version that wrote it, or a newer one" in complaint


def test_an_error_names_what_was_trimmed_or_removed_while_the_query_was_stopped(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=4)
    run_available(source.stream(log), tmp_path)
    position = client.tail(log).next
    lost = append_numbers(client, log, records=3)
    kept = append_numbers(client, log, records=3)
    assert client.trim(log, kept[0].lsn) == ()

    def stopped(**options: str) -> str:
        with pytest.raises(StreamingQueryException) as caught:
            run_available(source.stream(log, **options), tmp_path)
        return str(caught.value)

    complaint = stopped(failOnDataLoss="true")
    assert (
        f"CheckpointTrimmedError: {log} was trimmed up to {Lsn(kept[0].lsn)}, but the query must continue"
        in complaint
    )
    (rows,) = run_available(source.stream(log), tmp_path)
    assert gaps_of(rows) == [("TRIM", position, kept[0].lsn)]
    assert position <= lost[0].lsn
    assert entries_of(rows) == kept
    client.remove_log(log)
    complaint = stopped()
    assert (
        f"LogRemovedError: {log} was removed; the query had read it up to {Lsn(kept[-1].lsn + 1)}"
        in complaint
    )
    assert "Records that the query had not read are gone." in complaint
