"""How a setting is declared, checked and read: the machinery under `settings.py`.

A settings class is a frozen dataclass whose fields are made by `setting(...)`. An object that exists
is valid: wrong types, values out of bounds and settings that contradict each other are refused when
it is made, with the name of the flag. Flags and documents are derived from the same declaration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar

from logdevice.errors import InvalidSettingError

Value = bool | int | float | str
AnySettings = TypeVar("AnySettings", bound="Settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """What is known about one setting besides its value."""

    name: str
    default: Value
    text: str
    unit: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    restart: bool  # a running process does not notice a change

    @property
    def flag(self) -> str:
        return flag(self.name)

    @property
    def allowed(self) -> str:
        """What a value must be, in words: `an integer, at least 1`."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {bool: "true or false", int: "an integer", float: "a number", str: "text"}[type(self.default)]
        bounds = {"at least": self.minimum, "at most": self.maximum}
        limits = " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)
        return f"{words}, {limits}" if limits else words

    def accepts(self, value: object) -> bool:
        wanted = type(self.default)
        # A bool is an int to Python, but nobody means `true` when a count is asked for.
        types = (int, float) if wanted is float else (wanted,)
        if type(value) not in types or (self.choices and value not in self.choices):
            return False
        if isinstance(value, int | float):
            lowest = -math.inf if self.minimum is None else self.minimum
            highest = math.inf if self.maximum is None else self.maximum
            return math.isfinite(value) and lowest <= value <= highest
        return True

    def parse(self, text: str) -> Value:
        """The value written as `text`, as on a command line."""
        wanted = type(self.default)
        try:
            value = {"true": True, "false": False}[text.lower()] if wanted is bool else wanted(text)
        except (ValueError, KeyError):
            raise self.refusal(text) from None
        return self.checked(value)

    def checked(self, value: Value) -> Value:
        if not self.accepts(value):
            raise self.refusal(value)
        return value

    def refusal(self, value: object) -> InvalidSettingError:
        return InvalidSettingError(f"{self.flag} must be {self.allowed}, got {value!r}")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def setting(
    default: Value,
    text: str,
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    restart: bool = False,
) -> Any:
    """A field of a settings class. `text` says what happens when the value is larger or smaller."""
    metadata = {
        "default": default,
        "text": text,
        "unit": unit,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "restart": restart,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one component."""

    # Pairs (smaller, larger) that must be in this order, besides every `x_min` and `x_max`.
    ordered: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __post_init__(self) -> None:
        check(self)


def knobs(component: type[Settings]) -> list[Knob]:
    return [Knob(name=f.name, **f.metadata) for f in fields(component)]


def check(settings: Settings) -> None:
    """Raises InvalidSettingError for the first setting that is not allowed."""
    values: dict[str, Any] = {
        knob.name: knob.checked(getattr(settings, knob.name)) for knob in knobs(type(settings))
    }
    limits = [(name, name.removesuffix("_min") + "_max") for name in values if name.endswith("_min")]
    for smaller, larger in [*limits, *settings.ordered]:
        low, high = values[smaller], values[larger]
        if low > high:
            raise InvalidSettingError(
                f"{flag(larger)} must not be below {flag(smaller)}, got {high!r} and {low!r}"
            )


def from_mapping(component: type[AnySettings], mapping: Mapping[str, object]) -> AnySettings:
    """Settings from names and values. Text is read the way a flag would be; the rest keeps its type."""
    known = {knob.name: knob for knob in knobs(component)}
    values: dict[str, Any] = {}
    for name, value in mapping.items():
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"; the nearest is {nearest[0]!r}" if nearest else f"; there are: {', '.join(known)}"
            raise InvalidSettingError(f"there is no setting {name!r}{hint}")
        values[name] = known[name].parse(value) if isinstance(value, str) else value
    return component(**values)
