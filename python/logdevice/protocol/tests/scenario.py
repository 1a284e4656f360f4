"""Scenarios: text files of commands with the transcript that is expected below each of them.

    # Any line that starts with '#' is for the person who reads it.
    sends node=0 down=1
    ----
    N0 sends 42, 44, 46

A block is one or more commands, a line `----` and what they print; an empty line ends it. A world
gives each command a meaning: a function from its arguments to the lines it prints. Running a
scenario gives back the whole text with what was really printed, so a difference reads as a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from logdevice.types import Location, Lsn, NodeId, nodes

SEPARATOR = "----"


class Arguments:
    """The `name=value` pairs of one command; each must be asked for, so that no typing error goes unseen."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self._pairs = dict(pairs)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._pairs.pop(name, default)
        assert value is not None, f"the command needs {name}=..."
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        return int(self.text(name, None if default is None else str(default)))

    def lsn(self, name: str, default: str | None = None) -> Lsn:
        return Lsn.parse(self.text(name, default))

    def node(self, name: str) -> NodeId:
        return NodeId(self.integer(name))

    def nodes(self, name: str, default: str | None = None) -> tuple[NodeId, ...]:
        text = self.text(name, default)
        return nodes(int(part) for part in text.split(",")) if text else ()

    def location(self, name: str, default: str | None = None) -> Location:
        return Location.parse(self.text(name, default))

    def refuse_unknown(self) -> None:
        assert not self._pairs, f"the command does not know {', '.join(self._pairs)}"


Handler = Callable[[Arguments], Iterable[str]]


class World(Protocol):
    """What a scenario is played in. Made anew for each file."""

    def commands(self) -> Mapping[str, Handler]: ...


def play(text: str, world: World) -> str:
    """The scenario with the transcript of this run in place of the expected one."""
    commands = world.commands()
    lines: list[str] = []
    printed: list[str] = []
    is_transcript = False
    for line in text.splitlines():
        if is_transcript and line:
            continue
        is_transcript = line == SEPARATOR
        lines.append(line)
        if is_transcript:
            lines += printed
            printed = []
        elif line and not line.startswith("#"):
            printed += _perform(line, commands)
    assert not printed, f"nothing may be printed without a {SEPARATOR} to print it below: {printed}"
    return "\n".join(lines) + "\n"


def _perform(line: str, commands: Mapping[str, Handler]) -> list[str]:
    name, *words = line.split()
    assert name in commands, f"{name!r} is none of {', '.join(commands)}"
    assert all("=" in word for word in words), f"{line!r}: arguments are name=value"
    arguments = Arguments(dict(word.split("=", 1) for word in words))
    try:
        printed = list(commands[name](arguments))
        arguments.refuse_unknown()
    except (AssertionError, ValueError) as error:
        raise AssertionError(f"{line!r}: {error}") from error
    return printed
