"""The world of scenarios about a reader: one client read stream, and nodes that the scenario plays.

Plain numbers are LSNs of epoch 1, `e2n5` is one of another epoch. The same message to several
nodes is printed as one line. The application consumes at once, and the metadata says that
the named nodes hold epoch 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from logdevice.protocol.io import Tell
from logdevice.protocol.messages.read import GapReason, GetEpochMetadata, Start, StartedStatus, Window
from logdevice.protocol.read_stream.events import Deliver, Effect, EndStream, SendStart
from logdevice.protocol.read_stream.tests.reading import Reading, lsn
from logdevice.protocol.tests.scenario import Arguments, Handler
from logdevice.protocol.timers import WakeAt
from logdevice.types import LSN_MAX, AuthoritativeStatus, Gap, Lsn, NodeId, Record, Replication


class Transcript(Reading):
    """A stream on the bench that remembers its effects until `take`."""

    def __init__(self, **arguments: object) -> None:
        self._told: list[Effect] = []
        super().__init__(**arguments)  # type: ignore[arg-type]

    def _perform(self, effects: list[Effect]) -> None:
        self._told += effects
        super()._perform(effects)

    def take(self) -> list[Effect]:
        told, self._told = self._told, []
        return told


class ReaderWorld:
    """The command `reader` begins to read; the others play the nodes, the application and the clock."""

    def __init__(self) -> None:
        self._locations: dict[int, str] = {}
        self._reading: Transcript | None = None

    def commands(self) -> Mapping[str, Handler]:
        return {
            "node": self.node,
            "reader": self.reader,
            "started": self.started,
            "records": self.records,
            "gap": self.gap,
            "lost": self.lost,
            "status": self.status,
            "wait": self.wait,
            "health": self.health,
        }

    def node(self, arguments: Arguments) -> Iterator[str]:
        self._locations[arguments.node("id")] = arguments.text("location")
        yield from ()

    def reader(self, arguments: Arguments) -> Iterator[str]:
        nodes = arguments.nodes("nodes")
        for node in nodes:
            self._locations.setdefault(node, "")
        mode = arguments.text("mode", "SCD")
        assert mode in ("SCD", "ALL_SEND_ALL"), f"a reader reads in SCD or ALL_SEND_ALL, not in {mode}"
        self._reading = Transcript(
            nodes=nodes,
            locations=self._locations,
            replication=Replication.parse(arguments.text("replication")),
            start=_position(arguments, "start", "1"),
            end=_position(arguments, "end", "max"),
            scd=mode == "SCD",
            window_lsns=arguments.integer("window", 512),
        )
        return self._told()

    def started(self, arguments: Arguments) -> Iterator[str]:
        status = StartedStatus[arguments.text("status", "OK")]
        released = _position(arguments, "released", "e0n0")
        self._bench.started(*arguments.nodes("nodes"), status=status, released=released)
        return self._told()

    def records(self, arguments: Arguments) -> Iterator[str]:
        lsns = [_lsn(text) for text in arguments.text("lsns").split(",")]
        for node in arguments.nodes("nodes"):
            self._bench.records(node, *lsns)
        return self._told()

    def gap(self, arguments: Arguments) -> Iterator[str]:
        reason = GapReason[arguments.text("reason", "NO_RECORDS")]
        start, end = _position(arguments, "start"), _position(arguments, "end")
        self._bench.gap(arguments.nodes("nodes"), start, end, reason)
        return self._told()

    def lost(self, arguments: Arguments) -> Iterator[str]:
        self._bench.lost(*arguments.nodes("nodes"))
        return self._told()

    def status(self, arguments: Arguments) -> Iterator[str]:
        status = AuthoritativeStatus[arguments.text("is")]
        names = {str(node): status for node in arguments.nodes("nodes")}
        self._bench.status(arguments.integer("version"), **names)
        return self._told()

    def wait(self, arguments: Arguments) -> Iterator[str]:
        self._bench.wait(arguments.integer("ms"))
        return self._told()

    def health(self, _: Arguments) -> Iterator[str]:
        yield str(self._bench.health)

    @property
    def _bench(self) -> Transcript:
        assert self._reading is not None, "there is no reader yet"
        return self._reading

    def _told(self) -> Iterator[str]:
        """What the stream did; messages that differ only in their node are on one line."""
        told: dict[str, list[NodeId]] = {}
        for effect in self._bench.take():
            match effect:
                case Deliver():
                    yield from _flush(told)
                    yield f"delivers {', '.join(map(_describe, effect.items))}"
                case SendStart():
                    how = "on a new connection, " if effect.reconnect else ""
                    told.setdefault(f"{how}{_describe_start(effect.message)}", []).append(effect.node)
                case Tell():
                    what = effect.message
                    text = f"WINDOW up to {_text(what.window_end)}" if isinstance(what, Window) else "STOP"
                    told.setdefault(text, []).append(effect.node)
                case EndStream():
                    yield from _flush(told)
                    yield "ends"
                case GetEpochMetadata() | WakeAt():
                    pass
                case _:
                    assert_never(effect)
        yield from _flush(told)


def _flush(told: dict[str, list[NodeId]]) -> Iterable[str]:
    lines = [f"{message} to {' '.join(map(str, nodes))}" for message, nodes in told.items()]
    told.clear()
    return lines


def _describe_start(start: Start) -> str:
    down = f" known down {' '.join(map(str, start.known_down))}" if start.known_down else ""
    return (
        f"START v{start.filter_version} {start.mode.value}{down} "
        f"from {_text(start.start)}, window up to {_text(start.window_end)},"
    )


def _describe(item: Record | Gap) -> str:
    if isinstance(item, Record):
        return _text(item.lsn)
    return f"{item.type.value} [{_text(item.start)}, {_text(item.end)})"


def _text(position: Lsn) -> str:
    return str(position.esn) if position.epoch == 1 else str(position)


def _position(arguments: Arguments, name: str, default: str | None = None) -> Lsn:
    return _lsn(arguments.text(name, default))


def _lsn(text: str) -> Lsn:
    if text == "max":
        return LSN_MAX
    return lsn(int(text)) if text.isdecimal() else Lsn.parse(text)
