"""Scenarios: text files of commands, each with the expected transcript below it.

    # A line that starts with '#' is a comment.
    sends node=0 down=1
    ----
    N0 sends 42, 44, 46

A block is one or more commands, a line `----` and what they print; an empty line ends it. A world
gives each command a meaning: a function from its arguments to the lines it prints. Playing a
scenario returns the whole text with the lines that were really printed, so that tests show a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from logdevice.types import Location, Lsn, NodeId, nodes

SEPARATOR = "----"


class Arguments:
    """The `name=value` pairs of one command; each must be used, so that a typing error is noticed."""

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
        assert not self._pairs, f"unknown arguments: {', '.join(self._pairs)}"


Handler = Callable[[Arguments], Iterable[str]]


class World(Protocol):
    """The machines that a scenario is played with. Made anew for each file."""

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
    assert not printed, f"a command prints {printed}, but no {SEPARATOR} follows it"
    return "\n".join(lines) + "\n"


def _perform(line: str, commands: Mapping[str, Handler]) -> list[str]:
    name, *words = line.split()
    assert name in commands, f"unknown command {name!r}; the commands are {', '.join(commands)}"
    assert all("=" in word for word in words), f"{line!r}: arguments are name=value"
    arguments = Arguments(dict(word.split("=", 1) for word in words))
    try:
        printed = list(commands[name](arguments))
        arguments.refuse_unknown()
    except (AssertionError, ValueError) as error:
        raise AssertionError(f"{line!r}: {error}") from error
    return printed
