"""Command-line flags made from settings: one flag per setting, with its default, bounds and text.

    parser = argparse.ArgumentParser()
    add_flags(parser, NodeReadSettings)
    settings = from_flags(parser.parse_args(), NodeReadSettings)

A value that is not allowed ends in argparse's usual message; two values that contradict each other in
InvalidSettingError.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from logdevice.errors import InvalidSettingError
from logdevice.knobs import AnySettings, Knob, Settings, Value, from_mapping, knobs


def add_flags(parser: argparse.ArgumentParser, component: type[Settings]) -> None:
    group = parser.add_argument_group(str(component.__doc__))
    for knob in knobs(component):
        # argparse formats help with %, so a percent sign in a text has to be doubled.
        text = f"{knob.text} Default: {show(knob.default)}.".replace("%", "%%")
        group.add_argument(
            knob.flag,
            dest=knob.name,
            type=_reader(knob),
            default=knob.default,
            metavar=_placeholder(knob),
            help=text,
        )


def from_flags(namespace: argparse.Namespace, component: type[AnySettings]) -> AnySettings:
    return from_mapping(component, {knob.name: getattr(namespace, knob.name) for knob in knobs(component)})


def show(value: Value) -> str:
    """A value as one would write it behind a flag."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _placeholder(knob: Knob) -> str:
    if knob.choices:
        return "|".join(knob.choices)
    return "true|false" if isinstance(knob.default, bool) else (knob.unit or "number").upper()


def _reader(knob: Knob) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        try:
            return knob.parse(text)
        except InvalidSettingError as error:
            raise argparse.ArgumentTypeError(error.message) from error

    return read
