"""The arguments of `logdevice etl` become options of the query. Runs without Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from logdevice.cli.commands.etl import etl_options
from logdevice.cli.main import main, parser
from logdevice.errors import InvalidArgumentError
from pyspark_logdevice.etl import EtlOptions, Target

HERE = ("etl", "--endpoint", "127.0.0.1:1")


def read(*words: str) -> EtlOptions:
    return etl_options(parser().parse_args([*HERE, *words]))


def test_a_target_directory_has_the_checkpoint_and_the_query_begins_with_the_oldest_record() -> None:
    options = read("--logs", "/a,/b", "--to", "./lake/a/")
    assert options == EtlOptions(
        source={"endpoint": "127.0.0.1:1", "logs": "/a,/b", "startingOffsets": "earliest"},
        to=Target("./lake/a/"),
        checkpoint="./lake/a/_checkpoint",
    )
    assert options.to.is_directory
    assert options.to.beside("gaps") == Target("./lake/a_gaps")


def test_every_option_can_be_given() -> None:
    options = read(
        *("--logs", "/a", "--to", "sales.clicks", "--checkpoint", "s3://b/c", "--schema", "user string"),
        *("--partition-by", "log_date, user", "--dead-letters", "bad", "--gaps", "./gaps", "--once"),
        *("--every", "1 minute", "--option", "startingTimestamp=2026-01-31T12:00:00Z"),
    )
    assert options == EtlOptions(
        source={"endpoint": "127.0.0.1:1", "logs": "/a", "startingTimestamp": "2026-01-31T12:00:00Z"},
        to=Target("sales.clicks"),
        checkpoint="s3://b/c",
        schema="user string",
        partition_by=("log_date", "user"),
        dead_letters=Target("bad"),
        gaps=Target("./gaps"),
        once=True,
        every="1 minute",
    )
    assert not options.to.is_directory


def test_a_target_that_is_a_table_name_needs_a_checkpoint() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read("--logs", "/a", "--to", "clicks")
    assert caught.value.message == (
        "--checkpoint is missing: 'clicks' is the name of a table, so give a directory for the positions (a "
        "--to with a slash, such as ./clicks, is a directory and needs no --checkpoint)"
    )


def test_without_spark_the_command_says_what_to_install() -> None:
    program = f"""if True:
        import sys
        sys.modules["pyspark"] = None
        from logdevice.cli.main import main
        sys.exit(main({[*HERE, "--logs", "/a", "--to", "./a"]}))"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "install them: pip install 'logdevice-spark[spark,delta]'" in done.stderr


def test_a_missing_argument_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*HERE, "--logs", "/a"])
    assert caught.value.code == 2
    assert "--to" in capsys.readouterr().err
