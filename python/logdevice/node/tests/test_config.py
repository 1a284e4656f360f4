"""Configuration files, identities of data directories, and the command line of `logdeviced`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logdevice.errors import InvalidArgumentError, InvalidSettingError, UnreadableMetadataError
from logdevice.metadata.values import NodeRole
from logdevice.node.config import COMPONENTS, NodeConfig, config_from, read_file
from logdevice.node.identity import FILE, claim, is_new
from logdevice.node.main import EXIT_OK, EXIT_START, EXIT_USAGE, given_settings, main, parser, run
from logdevice.settings import NodeSettings, StorageSettings, WireSettings
from logdevice.settings.declarations import declared
from logdevice.types import Location, NodeId

SMALLEST: dict[str, Any] = {
    "cluster": "ads",
    "node": 3,
    "address": "127.0.0.1:7040",
    "data_directory": "/data",
    "epoch_store": "sqlite:/data/metadata.db",
}


def with_changes(**changes: Any) -> dict[str, Any]:
    return {**SMALLEST, **changes}


def test_the_smallest_configuration_is_enough() -> None:
    config = config_from(SMALLEST, {})
    assert (config.node, config.roles) == (NodeId(3), (NodeRole.SEQUENCER, NodeRole.STORAGE))
    assert config.entry(7040).address == "127.0.0.1:7040"


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    plain = with_changes(location="eu.fra1", roles=["storage"], settings={"node": {"ping_interval_ms": 7}})
    (tmp_path / "node.json").write_text(json.dumps(plain))
    (tmp_path / "node.toml").write_text(
        'cluster = "ads"\nnode = 3\naddress = "127.0.0.1:7040"\ndata_directory = "/data"\n'
        'epoch_store = "sqlite:/data/metadata.db"\nlocation = "eu.fra1"\nroles = ["storage"]\n'
        "[settings.node]\nping_interval_ms = 7\n"
    )
    configs = [config_from(read_file(tmp_path / name), {}) for name in ("node.json", "node.toml")]
    assert configs[0] == configs[1]
    assert configs[0].location == Location.parse("eu.fra1")
    assert configs[0].settings.node.ping_interval_ms == 7


def test_a_flag_wins_over_the_file() -> None:
    content = with_changes(settings={"node": {"ping_interval_ms": 7, "pings_missed_max": 2}})
    settings = config_from(content, {"ping_interval_ms": 9}).settings
    assert (settings.node.ping_interval_ms, settings.node.pings_missed_max) == (9, 2)


def test_a_node_may_register_another_address_than_it_listens_on() -> None:
    config = config_from(with_changes(address="0.0.0.0:7040", advertised_address="n3.example:7040"), {})
    assert config.entry(7040).address == "n3.example:7040"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"cluster": "ads"}, "lacks: node, address"),
        (with_changes(adress="x"), "no 'adress'; the nearest is 'address'"),
        (with_changes(zzz=1), "no 'zzz'; there are"),
        (with_changes(node="three"), "node must be a number"),
        (with_changes(node=70_000), "from 0 to 65535"),
        (with_changes(cluster=""), "must have a name"),
        (with_changes(cluster=5), "cluster must be text"),
        (with_changes(address="nowhere"), "host:port"),
        (with_changes(advertised_address="nowhere"), "host:port"),
        (with_changes(epoch_store="mysql://x"), "not an address of an epoch store"),
        (with_changes(location="a b"), "location 'a b'"),
        (with_changes(location=5), "location must be text, got 5"),
        (with_changes(data_directory=5), "data_directory must be text, got 5"),
        (with_changes(roles=["king"]), "roles must be a list with storage or sequencer, or both, got .*king"),
        (with_changes(roles="storage"), "roles must be a list"),
        (with_changes(weight=-1.0), "weight"),
        (with_changes(weight="much"), "weight must be a number, got 'much'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_a_reason(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        config_from(content, {})


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ([], "groups of settings"),
        ({"nose": {}}, "no settings group 'nose'"),
        ({"node": 5}, "settings.node must be"),
        ({"node": {"ping_intervall_ms": 5}}, "the nearest is 'ping_interval_ms'"),
        ({"node": {"activation_check_ms": 5}}, "activation_check_ms is no longer a setting: a node looks"),
        (
            {"node": {"ping_interval_ms": 0}},
            "setting ping_interval_ms must be an integer of at least 1, got 0",
        ),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(settings: Any, complaint: str) -> None:
    with pytest.raises(InvalidSettingError, match=complaint):
        config_from(with_changes(settings=settings), {})


def test_a_file_that_cannot_be_parsed_is_refused(tmp_path: Path) -> None:
    for text, complaint in (("{", "cannot be parsed"), ("[]", "must hold an object")):
        (tmp_path / "node.json").write_text(text)
        with pytest.raises(InvalidArgumentError, match=complaint):
            read_file(tmp_path / "node.json")
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_file(tmp_path / "nothing.json")


def test_a_data_directory_belongs_to_one_node_of_one_cluster(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    assert is_new(directory, "ads", NodeId(3), store=None)
    claim(directory, "ads", NodeId(3))
    assert not is_new(directory, "ads", NodeId(3), store=None)
    with pytest.raises(InvalidArgumentError, match="holds the data of"):
        is_new(directory, "ads", NodeId(4), store=None)
    (directory / FILE).write_text("{")
    with pytest.raises(UnreadableMetadataError):
        is_new(directory, "ads", NodeId(3), store=None)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="cannot be used"):
        is_new(tmp_path / "file", "ads", NodeId(3), store=None)


def test_a_data_directory_without_its_store_is_new(tmp_path: Path) -> None:
    claim(tmp_path, "ads", NodeId(3))
    assert is_new(tmp_path, "ads", NodeId(3), store=tmp_path / "store")
    (tmp_path / "store").mkdir()
    assert not is_new(tmp_path, "ads", NodeId(3), store=tmp_path / "store")


def write_config(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "node.json"
    content = with_changes(
        address="127.0.0.1:0",
        data_directory=str(tmp_path / "data"),
        epoch_store=f"sqlite:{tmp_path}/metadata.db",
        settings={"storage": {"free_bytes_floor": 0}},
    )
    path.write_text(json.dumps({**content, **changes}))
    return path


def test_a_wrong_configuration_ends_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # `main` sets up logging for the whole process, and this process goes on with other tests.
    monkeypatch.setattr("logdevice.node.logging_setup.configure", lambda level, path: None)
    assert main(["--config", str(tmp_path / "nothing.json")]) == EXIT_USAGE
    assert "cannot be read" in capsys.readouterr().err
    assert main(["--config", str(write_config(tmp_path)), "--data-port", "none"]) == EXIT_USAGE
    assert "setting data_port must be an integer from -1 to 65535, got 'none'" in capsys.readouterr().err
    assert main(["--config", str(write_config(tmp_path)), "--peer-timeout-ms", "5"]) == EXIT_USAGE
    assert "peer_timeout_ms is no longer a setting: a node waits ten" in capsys.readouterr().err


def test_help_lists_every_setting_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    text = parser().format_help()
    for component in filter(declared, COMPONENTS.values()):
        assert str(component.__doc__) in text
        for name, knob in declared(component).items():
            assert f"  --{name.replace('_', '-')} VALUE" in text
            assert f"{knob.text} ({knob.kind.allowed}; {knob.shown_default} by default)" in text


def test_a_flag_sets_its_setting() -> None:
    given = parser().parse_args(["--config", "node.toml", "--ping-interval-ms", "9", "--data-local=FALSE"])
    settings = config_from(SMALLEST, given_settings(given)).settings
    assert settings.node == NodeSettings(ping_interval_ms=9)
    assert settings.wire == WireSettings(data_local=False)
    assert settings.storage == StorageSettings()


def started(config: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, *arguments, "-m", "logdevice.node", "--config", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def test_a_process_starts_obeys_signals_and_logs_json(tmp_path: Path) -> None:
    with started(write_config(tmp_path)) as process:
        assert process.stderr is not None
        line = json.loads(process.stderr.readline())
        assert (line["level"], line["where"]) == ("info", "node.assembly")
        assert "N3 listens on 127.0.0.1:" in line["message"]
        with started(write_config(tmp_path)) as second:
            assert "is in use by another process" in second.communicate()[1]
            assert second.returncode == EXIT_START
        process.send_signal(signal.SIGTERM)
        words = [json.loads(line)["message"] for line in process.stderr]
        assert words == ["N3 stops", "N3 has stopped"]
    assert process.returncode == EXIT_OK


def test_the_garbage_collector_of_a_node_skips_objects_made_by_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[int] = []

    async def asked_to_stop() -> None:
        frozen.append(gc.get_freeze_count())
        if len(frozen) > 1:  # a second signal would end the node at once
            await asyncio.Event().wait()

    monkeypatch.setattr("logdevice.node.main._asked_to_stop", asked_to_stop)
    config = config_from(read_file(write_config(tmp_path)), {})
    try:
        assert asyncio.run(run(config)) == EXIT_OK
    finally:
        gc.unfreeze()
    assert frozen[0] > 10_000


def test_a_process_refuses_to_run_without_assertions(tmp_path: Path) -> None:
    with started(write_config(tmp_path), "-O") as process:
        assert "does not run under python -O" in process.communicate()[1]
    assert process.returncode == EXIT_USAGE


def test_a_configuration_is_checked_when_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        NodeConfig(
            cluster="", node=NodeId(1), address="x:1", data_directory=tmp_path, epoch_store="sqlite:/x"
        )
