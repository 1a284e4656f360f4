"""How settings, attributes of logs and options of Spark are declared, read and refused.

A `Kind` says what a value must be, in words, and reads it from text: that is the one way in, for a flag, a
file and a value of Python alike. A class declares its values as fields of a frozen dataclass, made by
`setting(...)`. A plain field beside them is for tuning: constructors take it, nothing else knows of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import Any, ClassVar, Final, TypeVar

from logdevice.errors import InvalidSettingError, UsageError
from logdevice.settings.retired import RETIRED

Value = bool | int | float | str
AnySettings = TypeVar("AnySettings", bound="Settings")
NUMBER_MAX: Final = (1 << 63) - 1
_TIMES_MS: Final = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME: Final = re.compile(r"(\d+)\s*(ms|s|min|m|h|d|)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value must be: in words, and as the function that reads it from text or raises ValueError."""

    allowed: str
    parse: Callable[[str], Any]


def integer(minimum: int = 1, maximum: int = NUMBER_MAX) -> Kind:
    bounds = f"of at least {minimum}" if maximum == NUMBER_MAX else f"from {minimum} to {maximum}"
    return Kind(f"an integer {bounds}", lambda text: _within(int(text), minimum, maximum))


def number(minimum: float, maximum: float) -> Kind:
    return Kind(f"a number from {minimum} to {maximum}", lambda text: _within(float(text), minimum, maximum))


def _within(value: Any, minimum: float, maximum: float) -> Any:
    if not minimum <= value <= maximum:  # no comparison with NaN is true
        raise ValueError
    return value


def choice(*allowed: str) -> Kind:
    return _one_of({name: name for name in allowed})


def _one_of(values: Mapping[str, Any]) -> Kind:
    *most, last = values

    def parse(text: str) -> Any:
        if text.strip().lower() not in values:
            raise ValueError
        return values[text.strip().lower()]

    return Kind(f"{', '.join(most)} or {last}", parse)


TRUTH: Final = _one_of({"true": True, "false": False})


def duration_ms(text: str) -> int:
    """The milliseconds that a text means, such as `30000`, `30s` or `5m`. ValueError for other text."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a length of time; write it as 30000 (milliseconds), 30s or 5m")
    return int(match[1]) * _TIMES_MS[match[2].lower()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """What is known about one declared value."""

    name: str  # as people write it
    field: str  # of the class that declares it
    kind: Kind
    text: str
    shown_default: str  # as people would write it


def setting(default: Value, text: str, kind: Kind | None = None) -> Any:
    """A field of a class of declared values. Its kind, if not given, is a switch or an integer from 1 on."""
    usual = TRUTH if isinstance(default, bool) else integer()
    return field(default=default, metadata={"kind": kind or usual, "text": text})


def show(value: Any) -> str:
    """A value in the text form that `read` takes, as on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _declared(component: type) -> dict[str, Knob]:
    made = (
        Knob(**{"name": each.name, "field": each.name, "shown_default": show(each.default), **each.metadata})
        for each in fields(component)
        if each.metadata
    )
    return {knob.name.lower(): knob for knob in made}


# What a class declares, by name in lower case: Spark ignores case, and the others have no capitals.
declared: Callable[[type], Mapping[str, Knob]] = cache(_declared)


def read(table: Mapping[str, Knob], what: str, name: str, value: object) -> Any:
    """The value as it is kept. ValueError says what is allowed, or which name may have been meant."""
    knob = table.get(name)
    if knob is None:
        raise ValueError(f"there is no {what} {name!r}; {instead_of(name, [k.name for k in table.values()])}")
    try:
        return knob.kind.parse(str(value))
    except (ValueError, TypeError, OverflowError, UsageError):
        raise ValueError(f"{what} {knob.name} must be {knob.kind.allowed}, got {value!r}") from None


def instead_of(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to an unknown one, in words; if none is near, all known names."""
    names = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), names, n=1)
    return f"the nearest is {names[nearest[0]]!r}" if nearest else f"there are: {', '.join(names.values())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one component. An object that exists is valid in all that it declares."""

    # Pairs (smaller, larger) that must be in this order, besides every `x_min` and `x_max`. Where one of a
    # pair is for tuning, `changed` makes it follow the other one, because an operator cannot set it.
    ordered: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __post_init__(self) -> None:
        table = declared(type(self))
        for name, knob in table.items():
            value = getattr(self, name)
            if _read_setting(table, name, value) != value:
                raise InvalidSettingError(f"setting {name} must be {knob.kind.allowed}, got {value!r}")
        names = [each.name for each in fields(self)]
        limits = [(name, name.removesuffix("_min") + "_max") for name in names if name.endswith("_min")]
        for smaller, larger in [*limits, *self.ordered]:
            low, high = getattr(self, smaller), getattr(self, larger)
            if low > high:
                raise InvalidSettingError(
                    f"setting {larger} must not be below {smaller}, got {high!r} and {low!r}"
                )


def changed(settings: AnySettings, changes: Mapping[str, object]) -> AnySettings:
    """The settings with other values, by name; a value may be in its text form, as on a command line."""
    table = declared(type(settings))
    values: dict[str, Any] = {name: _read_setting(table, name, value) for name, value in changes.items()}
    for smaller, larger in settings.ordered:
        low, high = (values.get(name, getattr(settings, name)) for name in (smaller, larger))
        if low > high and larger not in table:
            values[larger] = low
        elif low > high and smaller not in table:
            values[smaller] = high
    return replace(settings, **values)


def no_setting(name: str, known: Iterable[str]) -> str:
    """Why there is no setting of this name, in words: what became of it, or which one may have been meant."""
    if name in RETIRED:
        return f"{name} is no longer a setting: {RETIRED[name]}"
    return f"there is no setting {name!r}; {instead_of(name, known)}"


def _read_setting(table: Mapping[str, Knob], name: str, value: object) -> Any:
    if name not in table:
        raise InvalidSettingError(no_setting(name, (knob.name for knob in table.values())))
    try:
        return read(table, "setting", name, value)
    except ValueError as problem:
        raise InvalidSettingError(str(problem)) from None
