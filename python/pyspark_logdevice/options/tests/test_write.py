"""The options of the sink: which values are allowed, and the exact messages for wrong ones."""

from __future__ import annotations

import pytest

from logdevice.errors import InvalidOptionError
from pyspark_logdevice.options.write import WRITE_OPTIONS, WriteOptions, parse

ENDPOINT = {"endpoint": "a:1"}
TIME = "a time, such as 500ms, 30s or 5m; a plain number is milliseconds"
# For every option: a wrong value, and what is allowed.
WRONG = [
    ("endpoint", "nowhere", "host:port,host:port"),
    ("cluster", " ", "the name of the cluster"),
    ("log", "", "the path or number of a log"),
    ("writerId", "", "a name"),
    ("batchId", "-1", "an integer from 0 to 1099511627775"),
    ("recordBytes", "0", "bytes, such as 1048576, 512k or 64m"),
    ("recordEntries", "many", "an integer from 1 to 1048576"),
    ("retryTimeout", "soon", TIME),
    ("surface", "scala", "auto, python or jvm"),
]


def refusal(changes: dict[str, str], *, streaming: bool = False) -> str:
    with pytest.raises(InvalidOptionError) as refused:
        parse({**ENDPOINT, **changes}, streaming=streaming)
    return refused.value.message


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_a_wrong_value_is_refused_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    assert refusal({name: value}) == f"option {name} must be {allowed}, got {value!r}"


def test_every_option_has_a_wrong_value_above() -> None:
    assert {name.lower() for name, _, _ in WRONG} == set(WRITE_OPTIONS)


def test_options_become_values() -> None:
    given = {"path": "/x", "checkpointLocation": "/c", "recordBytes": "1m", "retryTimeout": "3s"}
    options = parse({**ENDPOINT, **given}, streaming=True)
    assert options == WriteOptions(endpoint="a:1", log="/x", record_bytes=1 << 20, retry_timeout_ms=3000)
    assert options.client_settings() == {"append_timeout_ms": 3000, "call_timeout_ms": 3000}


def test_options_that_do_not_go_together_are_refused() -> None:
    assert refusal({"endpiont": "b:1"}) == "there is no option 'endpiont'; the nearest is 'endpoint'"
    assert (
        refusal({"batchId": "1"}) == "option batchId needs option writerId: give the name of the writer too"
    )
    assert refusal({"batchId": "1", "writerId": "w"}, streaming=True) == (
        "option batchId is for df.write; leave it out, a stream numbers its batches"
    )
    assert refusal({"path": "/x", "log": "/y"}) == "give either a path or the option log, not both"
    with pytest.raises(InvalidOptionError, match="option endpoint is missing"):
        parse({}, streaming=False)
