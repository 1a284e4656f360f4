"""The error that is extracted from the long text of a Spark error."""

from __future__ import annotations

import pytest

from logdevice.errors import DataLossError, LogDeviceError, LogRemovedError
from pyspark_logdevice.etl_run import plain_error

CHAIN = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted
Traceback (most recent call last):
  File "reader.py", line 7, in read
logdevice.errors.{error}
 SQLSTATE: XXKST
=== Streaming Query ==="""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ("DataLossError: /a lost e1n5 to e1n9", DataLossError, "/a lost e1n5 to e1n9"),
        ("LogRemovedError: /a is gone", LogRemovedError, "/a is gone"),
        ("ErrorOfALaterVersion: something new", LogDeviceError, "something new"),
    ],
)
def test_an_error_of_the_source_is_found_in_sparks_text(
    error: str, kind: type[LogDeviceError], message: str
) -> None:
    found = plain_error(CHAIN.format(error=error))
    assert (type(found), found.message) == (kind, message)


def test_of_any_other_error_the_last_sentence_is_shown() -> None:
    found = plain_error("[STREAM_FAILED] Query terminated\nTraceback\nValueError: no such thing\n")
    assert found.message == "the query failed: no such thing"
    assert plain_error("[X] first line\nsecond").message == "the query failed: [X] first line"
