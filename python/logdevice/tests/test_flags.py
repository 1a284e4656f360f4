"""What flags promise: every setting has one, with its default, and nonsense is refused by name."""

from __future__ import annotations

import argparse

import pytest

from logdevice.errors import InvalidSettingError
from logdevice.flags import add_flags, from_flags
from logdevice.knobs import AnySettings, Settings, knobs
from logdevice.settings import COMPONENTS, NodeReadSettings, ReadStreamSettings


def all_flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="program")
    for component in COMPONENTS:
        add_flags(parser, component)
    return parser


def read(component: type[AnySettings], *arguments: str) -> AnySettings:
    return from_flags(all_flags().parse_args(arguments), component)


@pytest.mark.parametrize("component", COMPONENTS)
def test_without_flags_everything_has_its_default(component: type[Settings]) -> None:
    assert read(component) == component()


def test_a_flag_sets_its_setting_and_no_other() -> None:
    assert read(ReadStreamSettings, "--window-lsns", "16") == ReadStreamSettings(window_lsns=16)
    assert read(ReadStreamSettings, "--window-slide-share=0.5") == ReadStreamSettings(window_slide_share=0.5)
    assert read(NodeReadSettings, "--window-lsns", "16") == NodeReadSettings()


def test_text_and_truth_can_be_set() -> None:
    settings = read(ReadStreamSettings, "--slow-node-detection=observe", "--skip-partially-trimmed=FALSE")
    assert settings == ReadStreamSettings(slow_node_detection="observe", skip_partially_trimmed=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--window-lsns", "0"), "--window-lsns must be an integer, at least 1 and at most 1000000, got 0"),
        (
            ("--window-lsns", "few"),
            "--window-lsns must be an integer, at least 1 and at most 1000000, got 'few'",
        ),
        (("--skip-partially-trimmed", "1"), "--skip-partially-trimmed must be true or false, got '1'"),
        (("--slow-node-detection", "on"), "must be one of disabled, observe, enabled, got 'on'"),
    ],
)
def test_nonsense_is_refused_by_name(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read(ReadStreamSettings, *arguments)
    assert message in capsys.readouterr().err


def test_flags_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="--rewind-delay-ms-max must not be below"):
        read(ReadStreamSettings, "--rewind-delay-ms-max=1", "--rewind-delay-ms-min=2")


def test_help_tells_of_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    text = all_flags().format_help()
    for component in COMPONENTS:
        assert str(component.__doc__) in text
        for knob in knobs(component):
            assert f"  {knob.flag} " in text
            assert f"{knob.text} Default: {str(knob.default).lower()}." in text
    assert "--slow-node-detection disabled|observe|enabled" in text
    assert "--skip-partially-trimmed true|false" in text
    assert "--gap-grace-ms MS" in text
    assert "--rewind-delay-decay NUMBER" in text
