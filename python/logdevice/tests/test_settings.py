"""What settings promise: an object that exists is valid, and a refusal says what would be allowed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from logdevice.errors import InvalidSettingError
from logdevice.knobs import Knob, Settings, from_mapping, knobs, setting
from logdevice.settings import COMPONENTS, NodeReadSettings, ReadStreamSettings

KNOBS = [(component, knob) for component in COMPONENTS for knob in knobs(component)]
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
    assert knob.accepts(knob.default)
    assert knob.text.endswith(".")
    assert "  " not in knob.text
    # Whoever sets a number has to know what it counts and how far it may go.
    assert knob.choices or isinstance(knob.default, bool) or knob.minimum is not None
    assert not knob.name.endswith(("_ms", "_ms_min", "_ms_max")) or knob.unit == "ms"


def test_a_name_means_one_thing_in_all_components() -> None:
    names = [knob.name for _, knob in KNOBS]
    assert len(names) == len(set(names))


@every_knob
def test_a_value_of_another_type_is_refused(component: type[Settings], knob: Knob) -> None:
    wrong = 1 if isinstance(knob.default, bool | str) else True
    assert refusal(component, **{knob.name: wrong}).startswith(f"{knob.flag} must be {knob.allowed}, got ")
    assert "None" in refusal(component, **{knob.name: None})


@every_knob
def test_a_value_out_of_bounds_is_refused(component: type[Settings], knob: Knob) -> None:
    outside = [bound + step for bound, step in ((knob.minimum, -1), (knob.maximum, 1)) if bound is not None]
    for value in outside:
        assert refusal(component, **{knob.name: type(knob.default)(value)}).startswith(
            f"{knob.flag} must be "
        )


def test_a_refusal_names_flag_value_and_what_is_allowed() -> None:
    allowed = "an integer, at least 1 and at most 1000000"
    assert refusal(ReadStreamSettings, window_lsns=0) == f"--window-lsns must be {allowed}, got 0"
    allowed = "one of disabled, observe, enabled"
    assert refusal(ReadStreamSettings, slow_node_detection="on") == (
        f"--slow-node-detection must be {allowed}, got 'on'"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_must_be_finite(value: float) -> None:
    assert "--slow-node-margin" in refusal(ReadStreamSettings, slow_node_margin=value)


def test_an_integer_is_a_number_too() -> None:
    assert ReadStreamSettings(slow_node_margin=3).slow_node_margin == 3


PAIRS = [(component, knob.name) for component, knob in KNOBS if knob.name.endswith("_min")]


@pytest.mark.parametrize(("component", "smaller"), PAIRS)
def test_a_minimum_above_its_maximum_is_refused(component: type[Settings], smaller: str) -> None:
    larger = smaller.removesuffix("_min") + "_max"
    component(**{smaller: 5, larger: 5})
    message = refusal(component, **{smaller: 6, larger: 5})
    assert message.endswith(
        f"{larger.replace('_', '-')} must not be below --{smaller.replace('_', '-')}, got 5 and 6"
    )


def test_all_send_all_does_not_come_before_scd_has_tried() -> None:
    ReadStreamSettings(scd_timeout_ms=7, all_send_all_timeout_ms=7)
    message = refusal(ReadStreamSettings, scd_timeout_ms=8, all_send_all_timeout_ms=7)
    assert message == "--all-send-all-timeout-ms must not be below --scd-timeout-ms, got 7 and 8"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        NodeReadSettings().read_bytes_max = 5  # type: ignore[misc]


@every_knob
def test_a_mapping_may_hold_values_or_their_text(component: type[Settings], knob: Knob) -> None:
    assert from_mapping(component, {knob.name: knob.default}) == component()
    assert from_mapping(component, {knob.name: str(knob.default)}) == component()


def test_a_mapping_is_checked_like_everything_else() -> None:
    for value in (0, "0", "many", None, 1.5, [1]):
        with pytest.raises(InvalidSettingError, match="--window-lsns must be an integer"):
            from_mapping(ReadStreamSettings, {"window_lsns": value})
    with pytest.raises(
        InvalidSettingError, match="--skip-partially-trimmed must be true or false, got 'yes'"
    ):
        from_mapping(ReadStreamSettings, {"skip_partially_trimmed": "yes"})


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidSettingError, match="no setting 'windw_lsns'; the nearest is 'window_lsns'"):
        from_mapping(ReadStreamSettings, {"windw_lsns": 5})


def test_a_name_like_no_other_is_refused_with_all_there_are() -> None:
    with pytest.raises(
        InvalidSettingError, match="'qqq'; there are: read_bytes_max, read_time_ms_max, send_"
    ):
        from_mapping(NodeReadSettings, {"qqq": 5})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSettings(Settings):
    """Where things are."""

    data_directory: str = setting("data", "Where records are kept.", restart=True)
    columns_max: int = setting(5, "At most so many.", maximum=9)


def test_text_without_choices_may_be_anything() -> None:
    assert PlaceSettings(data_directory="").data_directory == ""
    assert refusal(PlaceSettings, data_directory=5) == "--data-directory must be text, got 5"


def test_a_bound_may_be_on_one_side_only() -> None:
    assert PlaceSettings(columns_max=-100).columns_max == -100
    assert refusal(PlaceSettings, columns_max=10) == "--columns-max must be an integer, at most 9, got 10"
