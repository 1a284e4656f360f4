"""What settings promise: an object that exists is valid, and a refusal says what would be allowed."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from logdevice.errors import InvalidSettingError
from logdevice.settings import (
    BatchSettings,
    ChainSettings,
    ClientSettings,
    NodeReadSettings,
    ReadStreamSettings,
    StorageSettings,
)
from logdevice.settings.declarations import Knob, Settings, changed, declared, duration_ms
from tools.docs.pages import COMPONENTS

KNOBS = [(component, knob) for component in COMPONENTS for knob in declared(component).values()]
every_knob = pytest.mark.parametrize(
    ("component", "knob"), KNOBS, ids=lambda value: getattr(value, "name", "")
)


def refusal(component: type[Settings], **values: Any) -> str:
    with pytest.raises(InvalidSettingError) as caught:
        component(**values)
    return caught.value.message


def test_the_defaults_are_the_documented_ones() -> None:
    stream, node = ReadStreamSettings(), NodeReadSettings()
    assert (stream.window_lsns, stream.window_slide_share, stream.window_bytes) == (
        512,
        0.7,
        64 * 1024 * 1024,
    )
    assert (stream.scd_timeout_ms, stream.all_send_all_timeout_ms) == (10_000, 20_000)
    assert (node.read_bytes_max, node.read_time_ms_max, node.send_queue_bytes_max) == (
        4 * ((1 << 20) + (1 << 16)),
        1000,
        8 * ((1 << 20) + (1 << 16)),
    )


@every_knob
def test_every_setting_explains_itself_and_has_a_valid_default(component: type[Settings], knob: Knob) -> None:
    assert knob.kind.parse(knob.shown_default) == getattr(component(), knob.field)
    assert knob.text.endswith(".")
    assert "  " not in knob.text
    assert re.search(r"[.] (Raise|Set) it ", knob.text), "it says when to change the setting"
    if " Raise it " in knob.text:
        assert "; lower it " in knob.text


def test_a_name_means_one_thing_in_all_components() -> None:
    names = [each.name for component in COMPONENTS for each in fields(component)]
    assert len(names) == len(set(names))


@every_knob
def test_a_value_of_another_type_is_refused(component: type[Settings], knob: Knob) -> None:
    default = getattr(component(), knob.field)
    wrong = 1 if isinstance(default, bool | str) else True
    for value in (wrong, None, [1], "?"):
        message = f"setting {knob.name} must be {knob.kind.allowed}, got {value!r}"
        assert refusal(component, **{knob.name: value}) == message


def test_text_that_would_be_allowed_is_no_value() -> None:
    assert refusal(ReadStreamSettings, window_lsns="7").endswith("got '7'")
    assert refusal(ReadStreamSettings, slow_node_detection="OBSERVE").endswith("got 'OBSERVE'")


@pytest.mark.parametrize(
    ("component", "name", "allowed", "outside"),
    [
        (ReadStreamSettings, "window_lsns", "an integer from 1 to 1000000", (0, 1_000_001)),
        (ClientSettings, "writer_delay_ms", "an integer of at least 0", (-1, 1 << 63)),
        (StorageSettings, "compact_live_share", "a number from 0 to 0.95", (-0.1, 1, float("nan"))),
        (ReadStreamSettings, "slow_node_detection", "disabled, observe or enabled", ("on",)),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    component: type[Settings], name: str, allowed: str, outside: tuple[object, ...]
) -> None:
    for value in outside:
        assert refusal(component, **{name: value}) == f"setting {name} must be {allowed}, got {value!r}"


def test_an_integer_is_a_number_too() -> None:
    assert StorageSettings(compact_live_share=0).compact_live_share == 0


PAIRS = [
    (component, each.name)
    for component in COMPONENTS
    for each in fields(component)
    if each.name.endswith("_min")
]


@pytest.mark.parametrize(("component", "smaller"), PAIRS)
def test_a_minimum_above_its_maximum_is_refused(component: type[Settings], smaller: str) -> None:
    larger = smaller.removesuffix("_min") + "_max"
    component(**{smaller: 5, larger: 5})
    message = refusal(component, **{smaller: 6, larger: 5})
    assert message == f"setting {larger} must not be below {smaller}, got 5 and 6"


def test_all_send_all_does_not_come_before_scd_has_tried() -> None:
    ReadStreamSettings(scd_timeout_ms=7, all_send_all_timeout_ms=7)
    message = refusal(ReadStreamSettings, scd_timeout_ms=8, all_send_all_timeout_ms=7)
    assert message == "setting all_send_all_timeout_ms must not be below scd_timeout_ms, got 7 and 8"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        NodeReadSettings().read_bytes_max = 5  # type: ignore[misc]


@every_knob
def test_a_mapping_may_hold_values_or_their_text(component: type[Settings], knob: Knob) -> None:
    assert changed(component(), {knob.name: getattr(component(), knob.field)}) == component()
    assert changed(component(), {knob.name: knob.shown_default}) == component()


def test_what_a_mapping_does_not_name_stays() -> None:
    small = ReadStreamSettings(window_lsns=7, stall_grace_ms=5)
    assert changed(small, {"window_bytes": "9"}) == ReadStreamSettings(
        window_lsns=7, stall_grace_ms=5, window_bytes=9
    )


def test_a_mapping_is_checked_like_everything_else() -> None:
    for value in (0, "0", "many", None, 1.5, [1]):
        with pytest.raises(InvalidSettingError, match="setting window_lsns must be an integer"):
            changed(ReadStreamSettings(), {"window_lsns": value})
    with pytest.raises(InvalidSettingError, match="skip_partially_trimmed must be true or false, got 'yes'"):
        changed(ReadStreamSettings(), {"skip_partially_trimmed": "yes"})


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidSettingError, match="no setting 'windw_lsns'; the nearest is 'window_lsns'"):
        changed(ReadStreamSettings(), {"windw_lsns": 5})


def test_what_is_for_tuning_is_no_setting() -> None:
    message = "read_time_ms_max is no longer a setting: one read of the store takes at most a second"
    with pytest.raises(InvalidSettingError, match=message):
        changed(NodeReadSettings(), {"read_time_ms_max": 5})
    assert NodeReadSettings(read_time_ms_max=5).read_time_ms_max == 5


def test_what_is_for_tuning_follows_a_setting_that_it_must_not_pass() -> None:
    """An operator cannot set the other one of the pair."""
    calls = changed(ClientSettings(), {"call_timeout_ms": 800})
    assert (calls.call_timeout_ms, calls.attempt_timeout_ms) == (800, 800)
    assert changed(ClientSettings(), {"call_timeout_ms": 8_000}).attempt_timeout_ms == 5_000
    streams = changed(ReadStreamSettings(), {"scd_timeout_ms": 60_000})
    assert (streams.scd_timeout_ms, streams.all_send_all_timeout_ms) == (60_000, 60_000)
    assert changed(ReadStreamSettings(), {"scd_timeout_ms": 1_000}).all_send_all_timeout_ms == 20_000
    chains = changed(ChainSettings(), {"chain_fill_ms": 300})
    assert (chains.chain_fill_ms, chains.chain_look_ms) == (300, 300)


def test_two_settings_in_the_wrong_order_are_refused_together() -> None:
    message = "setting batch_raw_bytes_max must not be below batch_bytes_max, got 268435456 and 268435457"
    with pytest.raises(InvalidSettingError, match=message):
        changed(BatchSettings(), {"batch_bytes_max": (256 << 20) + 1})


def test_a_name_like_no_other_is_refused_with_all_there_are() -> None:
    with pytest.raises(InvalidSettingError, match="'qqq'; there are: send_queue_bytes_max"):
        changed(NodeReadSettings(), {"qqq": 5})


def test_a_time_has_a_unit_or_is_milliseconds() -> None:
    times = {"30": 30, "30ms": 30, " 2 S": 2_000, "5m": 300_000, "5min": 300_000, "1h": 3_600_000}
    assert {text: duration_ms(text) for text in times} == times
    assert duration_ms("2d") == 172_800_000
    for wrong in ("", "1w", "-1s", "1.5s", "s"):
        with pytest.raises(ValueError, match="is not a length of time"):
            duration_ms(wrong)
