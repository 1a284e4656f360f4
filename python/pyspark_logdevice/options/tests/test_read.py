"""The options of the source: which values are allowed, and the exact messages for wrong ones."""

from __future__ import annotations

import pickle

import pytest

from logdevice.client import connect
from logdevice.errors import InvalidOptionError
from logdevice.types import Lsn
from pyspark_logdevice.options.read import OPTIONS, ReadOptions, parse
from pyspark_logdevice.options.values import AtCut, Edge, Places

GIVEN = {"endpoint": "a:1", "logs": "/x"}


def refusal(changes: dict[str, str], *, streaming: bool = False) -> str:
    with pytest.raises(InvalidOptionError) as caught:
        parse({**GIVEN, **changes}, streaming=streaming)
    assert str(caught.value) == (
        f"{caught.value.message}. Correct the option; docs/spark.md lists what is allowed."
    )
    return caught.value.message


def test_positions_at_named_cuts() -> None:
    good = parse({"endpoint": "a:1", "logs": "/a", "startingOffsets": " cut:x-1 "})
    assert good.starting_offsets == Places(others=AtCut("x-1"))
    for bad in ("cut:", "cut:a b", "cut:../x"):
        with pytest.raises(InvalidOptionError, match="startingOffsets"):
            parse({"endpoint": "a:1", "logs": "/a", "startingOffsets": bad})
    with pytest.raises(InvalidOptionError, match="options cut and endingOffsets both say where to end"):
        parse({"endpoint": "a:1", "logs": "/a", "cut": "consistent", "endingOffsets": "latest"})


def test_options_that_are_not_given_have_defaults() -> None:
    options = parse(GIVEN)
    assert options == ReadOptions(endpoint="a:1", logs=("/x",))
    assert (options.gaps, options.fail_on_data_loss, options.scd) == ("dataloss", False, True)
    assert options.max_records_per_trigger is None
    assert options.max_bytes_per_trigger == 256 << 20


def test_the_case_of_names_does_not_matter_and_values_are_converted() -> None:
    options = parse(
        {
            "ENDPOINT": " a:1 , b:2 ",
            "logspattern": "/ads/.*",
            "StartingOffsets": '{"/ads/a": "e5n3", "7": 42, "*": "latest"}',
            "endingTimestamp": "2026-11-16T08:00:00+01:00",
            "maxRecordsPerTrigger": "1000",
            "maxBytesPerTrigger": "64m",
            "minPartitions": "4",
            "maxRecordsPerPartition": "10",
            "maxBytesPerPartition": "512 KB",
            "gaps": "ALL",
            "failOnDataLoss": "True",
            "readLevel": "Durable",
            "scd": "false",
            "location": "eu.one",
            "readTimeout": "30s",
            "retryTimeout": "500",
            "pollTimeout": "1m",
            "logRefresh": "1h",
            "cluster": " ads ",
            "surface": "JVM",
        }
    )
    assert options == ReadOptions(
        endpoint="a:1,b:2",
        cluster="ads",
        logs_pattern="/ads/.*",
        starting_offsets=Places((("/ads/a", Lsn.of(5, 3)), ("7", Lsn(42))), Edge.LATEST),
        ending_timestamp_ms=1_794_812_400_000,
        max_records_per_trigger=1000,
        max_bytes_per_trigger=64 << 20,
        min_partitions=4,
        max_records_per_partition=10,
        max_bytes_per_partition=512 << 10,
        gaps="all",
        fail_on_data_loss=True,
        read_level="durable",
        scd=False,
        location="eu.one",
        read_timeout_ms=30_000,
        retry_timeout_ms=500,
        poll_timeout_ms=60_000,
        log_refresh_ms=3_600_000,
        surface="jvm",
    )
    settings = options.client_settings()
    assert settings == {"append_timeout_ms": 500, "call_timeout_ms": 500}
    config = connect("a:1", settings=settings).config.client
    assert (config.call_timeout_ms, config.attempt_timeout_ms) == (500, 500)
    assert connect("a:1", settings=parse(GIVEN).client_settings()).config.client.attempt_timeout_ms == 5000
    assert pickle.loads(pickle.dumps(options)) == options


def test_logs_are_paths_and_numbers_in_a_list_of_either_form() -> None:
    assert parse({"endpoint": "a:1", "logs": "/a, 7,/b,/a"}).logs == ("/a", "7", "/b")
    assert parse({"endpoint": "a:1", "logs": '["/with,comma", 7]'}).logs == ("/with,comma", "7")
    assert parse({"endpoint": "a:1", "path": "/a"}).logs == ("/a",)


def test_positions_are_found_by_path_by_number_or_for_all() -> None:
    places = parse({**GIVEN, "startingOffsets": '{"/a": "earliest", "7": "e1n2"}'}).starting_offsets
    assert places is not None
    assert [places.of("/a", 1), places.of("/b", 7), places.of("/c", 8)] == [Edge.EARLIEST, Lsn.of(1, 2), None]
    meanings: dict[str, Edge | Lsn] = {"latest": Edge.LATEST, "oldest": Edge.EARLIEST, "e2n9": Lsn.of(2, 9)}
    for text, place in meanings.items():
        options = parse({**GIVEN, "startingOffsets": text})
        assert options.starting_offsets == Places(others=place)


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    assert refusal({"maxRecordPerTrigger": "1"}) == (
        "there is no option 'maxRecordPerTrigger'; the nearest is 'maxRecordsPerTrigger'"
    )
    assert refusal({"startingOffset": "latest"}) == (
        "there is no option 'startingOffset'; the nearest is 'startingOffsets'"
    )
    assert refusal({"zzz": "1"}).startswith("there is no option 'zzz'; there are: endpoint, cluster, ")


COUNT = "an integer of at least 1"
SIZE = "bytes, such as 1048576, 512k or 64m"
TIME = "a time, such as 500ms, 30s or 5m; a plain number is milliseconds"
INSTANT = "milliseconds since 1970, or ISO 8601 with a time zone, such as 2026-11-16T08:00:00Z"
PLACES = 'earliest, latest, cut:NAME, an LSN, or JSON such as {"/a": "e5n3", "7": "latest", "*": "earliest"}'
LOGS = "paths and numbers of logs, such as /ads/clicks,/ads/views,7, or a JSON list of them"
WRONG = [
    ("endpoint", "host:port,host:port", ["", "nowhere", "a:0", "a:99999", "a:1,b"]),
    ("cluster", "the name of the cluster", ["", "  "]),
    ("logs", LOGS, ["", "ads", "/a,,/b", "-1", "[]", '["/a", true]', '[["/a"]]', "[", '{"/a": 1}']),
    ("logsPattern", "a regular expression", ["", "(", "*"]),
    ("startingOffsets", PLACES, ["", "first", "e5", "-1", "{", "{}]", '{"a": 1}', '{"/a": null}']),
    ("startingOffsets", PLACES, ['{"/a": true}', '{"/a": [1]}', '{"/a": 1, "/a": 2}', "0", "max"]),
    ("startingTimestamp", INSTANT, ["", "yesterday", "-1", "2026-11-16T08:00:00", "99999999999999999999"]),
    ("endingOffsets", PLACES, ["", "last"]),
    ("endingTimestamp", INSTANT, ["1960-01-01T00:00:00Z"]),
    ("maxRecordsPerTrigger", COUNT, ["", "0", "-1", "many", "1.5", "9223372036854775808"]),
    ("maxBytesPerTrigger", SIZE, ["", "0", "64x", "-1", "1.5m", "9999999999g"]),
    ("minPartitions", "an integer from 1 to 10000", ["", "0", "10001", "two"]),
    ("maxRecordsPerPartition", COUNT, ["0", "x"]),
    ("maxBytesPerPartition", SIZE, ["0"]),
    ("cut", "none or consistent", ["", "fresh", "true"]),
    ("gaps", "dataloss, all or none", ["", "some", "DATA LOSS"]),
    ("failOnDataLoss", "true or false", ["", "yes", "1"]),
    ("onRollback", "fail or emit", ["", "ignore"]),
    ("readLevel", "released or durable", ["", "persisted"]),
    ("scd", "true or false", ["on"]),
    (
        "location",
        "region.datacenter.cluster.row.rack; trailing parts may be left out",
        ["a.b.c.d.e.f", "a b"],
    ),
    ("readTimeout", TIME, ["", "0", "soon", "-5s", "5 weeks"]),
    ("retryTimeout", TIME, ["0s"]),
    ("pollTimeout", TIME, ["-1"]),
    ("logRefresh", TIME, ["x"]),
    ("surface", "auto, python or jvm", ["scala"]),
]


@pytest.mark.parametrize(
    ("name", "allowed", "value"), [(name, allowed, value) for name, allowed, bad in WRONG for value in bad]
)
def test_a_wrong_value_is_refused_with_what_is_allowed(name: str, allowed: str, value: str) -> None:
    given = {key: text for key, text in GIVEN.items() if key != "logs" or name != "logsPattern"}
    with pytest.raises(InvalidOptionError) as caught:
        parse({**given, name: value})
    assert caught.value.message == f"option {name} must be {allowed}, got {value!r}"


def test_every_option_is_tested_with_wrong_values() -> None:
    assert {name.lower() for name, _, _ in WRONG} == set(OPTIONS)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        parse({"logs": "/x"})
    assert caught.value.message == "option endpoint is missing; it must be host:port,host:port"
    with pytest.raises(InvalidOptionError) as caught:
        parse({"endpoint": "a:1"})
    assert caught.value.message == "give option logs or option logsPattern"
    assert refusal({"logsPattern": "/.*"}) == "give one of logs and logsPattern, not both"
    assert refusal({"path": "/y"}) == "give either a path or the option logs, not both"
    assert refusal({"startingOffsets": "latest", "startingTimestamp": "5"}) == (
        "give one of startingOffsets and startingTimestamp, not both"
    )
    assert refusal({"endingOffsets": "latest", "endingTimestamp": "5"}) == (
        "give one of endingOffsets and endingTimestamp, not both"
    )
    for ending in ("earliest", '{"/x": "earliest"}'):
        assert refusal({"endingOffsets": ending}) == (
            "option endingOffsets must not be earliest: nothing would be read"
        )


def test_a_stream_has_no_end() -> None:
    for name, value in {"endingOffsets": "latest", "endingTimestamp": "5"}.items():
        assert refusal({name: value}, streaming=True) == (
            f"option {name} is for batch reads; leave it out, a stream has no end"
        )
    assert parse({**GIVEN, "endingOffsets": "latest"}).ending_offsets == Places(others=Edge.LATEST)
