"""A client read stream on the bench: the test plays the nodes, the application and the clock.

LSNs are written as plain numbers and mean epoch 1; pass an `Lsn` for another epoch. By default
metadata is answered at once and the application consumes at once, so a test plays only the nodes.
`delivered` holds everything the application got, `effects` what the last event caused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from logdevice.protocol.io import Answered, Tell
from logdevice.protocol.messages.read import (
    EpochMetadataIs,
    GapNotice,
    GapReason,
    GetEpochMetadata,
    ReadMode,
    Records,
    Start,
    Started,
    StartedStatus,
    StatusNotice,
    Stop,
    Window,
)
from logdevice.protocol.read_stream.events import (
    ConnectionLost,
    Consumed,
    Deliver,
    Effect,
    EndStream,
    Event,
    ReadConfig,
    ReadConfigChanged,
    ReadRequest,
    SendStart,
)
from logdevice.protocol.read_stream.health import StreamHealth
from logdevice.protocol.read_stream.stream import ClientReadStream
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import ReadStreamSettings
from logdevice.types import (
    LSN_MAX,
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Gap,
    Location,
    LogId,
    Lsn,
    MetadataSource,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    Scope,
)

LOG = LogId(7)
RELEASED = 1_000
EffectType = TypeVar("EffectType")
ToldType = TypeVar("ToldType", Stop, Window)


def lsn(position: int) -> Lsn:
    """A plain number is an ESN of epoch 1."""
    return position if isinstance(position, Lsn) else Lsn.of(1, position)


def record(position: int, *, body: bytes = b"x", flags: int = 0) -> Record:
    return Record(lsn(position), timestamp_ms=int(position) & 0xFFFF, copyset=(), body=body, flags=flags)


def bridge(position: int) -> Record:
    return record(position, body=b"", flags=RecordFlags.HOLE | RecordFlags.BRIDGE | RecordFlags.BY_RECOVERY)


def hole(position: int) -> Record:
    return record(position, body=b"", flags=RecordFlags.HOLE | RecordFlags.BY_RECOVERY)


class Reading:
    def __init__(
        self,
        *,
        nodes: int | Sequence[int] = 5,
        copies: int = 3,
        start: int = 1,
        end: int = LSN_MAX,
        scd: bool = True,
        local_scd: bool = False,
        locations: dict[int, str] | None = None,
        replication: Replication | None = None,
        consumes: bool = True,
        answers_metadata: bool = True,
        bridges: bool = True,
        request: dict[str, object] | None = None,
        **settings: object,
    ) -> None:
        ids = [NodeId(node) for node in (range(1, nodes + 1) if isinstance(nodes, int) else nodes)]
        self.nodes = ids
        self.locations = {node: Location.parse((locations or {}).get(node, "")) for node in ids}
        self.consumes, self.answers_metadata = consumes, answers_metadata
        self._modes = {"scd": scd, "local_scd": local_scd}
        self.metadata = EpochMetadata(
            Epoch(1), tuple(ids), replication or Replication.of({Scope.NODE: copies}), bridges
        )
        self.last_epoch = Epoch(1)
        self.metadata_source = MetadataSource.BOUNDED
        self.now_ms = 0
        self.delivered: list[Record | Gap] = []
        self.effects: list[Effect] = []
        self.starts: list[SendStart] = []
        self.has_ended = False
        self._wake_ups: list[int] = []
        # Slow-node detection has tests of its own; elsewhere its timers would only be noise.
        settings = {"slow_node_detection": "disabled", **settings}
        self.stream = ClientReadStream(
            ReadRequest(log=LOG, start=lsn(start), end=lsn(end), **(request or {})),  # type: ignore[arg-type]
            self.config(scd=scd, local_scd=local_scd),
            ReadStreamSettings(**settings),  # type: ignore[arg-type]
            random.Random(1),
        )
        self._perform(self.stream.start(self.now_ms))

    def config(self, *, scd: bool = True, local_scd: bool = False) -> ReadConfig:
        return ReadConfig(nodes=self.locations, scd=scd, local_scd=local_scd)

    # ---- the nodes --------------------------------------------------------------------------

    def started(
        self, *nodes: int, status: StartedStatus = StartedStatus.OK, released: int = 0, version: int = 0
    ) -> None:
        """STARTED from these nodes; from all of them if none is named."""
        released_end = Lsn(0) if released == 0 else lsn(released)
        for node in nodes or self.nodes:
            answer = Started(LOG, version or self.version, status, released_end)
            self.feed(Answered(NodeId(node), answer), keep_effects=True)

    def records(
        self, node: int, *records: int | Record, version: int = 0, under_replicated: bool = False
    ) -> None:
        batch = tuple(item if isinstance(item, Record) else record(item) for item in records)
        message = Records(LOG, version or self.version, batch, under_replicated)
        self.feed(Answered(NodeId(node), message))

    def gap(
        self,
        node: int | Iterable[int],
        start: int,
        end: int,
        reason: GapReason = GapReason.NO_RECORDS,
        version: int = 0,
    ) -> None:
        """A gap notice for [start, end) from one or several nodes."""
        for sender in [node] if isinstance(node, int) else node:
            notice = GapNotice(LOG, version or self.version, lsn(start), lsn(end), reason)
            self.feed(Answered(NodeId(sender), notice))

    def lost(self, *nodes: int) -> None:
        for node in nodes:
            self.feed(ConnectionLost(NodeId(node)))

    def status(self, version: int, **statuses: AuthoritativeStatus) -> None:
        """`status(1, N5=AuthoritativeStatus.UNAVAILABLE)`."""
        pairs = tuple((NodeId(int(name[1:])), status) for name, status in statuses.items())
        self.feed(Answered(NodeId(0), StatusNotice(version, pairs)))

    def configure(self, *, scd: bool = True, local_scd: bool = False) -> None:
        self._modes = {"scd": scd, "local_scd": local_scd}
        self.feed(ReadConfigChanged(self.config(scd=scd, local_scd=local_scd)))

    def shrink(self, *nodes: int) -> None:
        """These nodes leave the configuration."""
        self.locations = {node: place for node, place in self.locations.items() if node not in nodes}
        self.nodes = list(self.locations)
        self.configure(**self._modes)

    def expand(self, *nodes: int) -> None:
        """These nodes come into the configuration."""
        self.locations = {**self.locations, **{NodeId(node): Location() for node in nodes}}
        self.nodes = sorted(self.locations)
        self.configure(**self._modes)

    # ---- time ---------------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        """Let time pass, and make every wake-up call that is due."""
        end_ms, effects = self.now_ms + ms, []
        while (due_ms := min(self._wake_ups, default=end_ms + 1)) <= end_ms:
            self._wake_ups.remove(due_ms)
            self.now_ms = max(self.now_ms, due_ms)
            self.feed(Woken())
            effects += self.effects
        self.now_ms, self.effects = end_ms, effects

    def wait_until(self, is_done: Callable[[], object], *, step_ms: int = 1) -> int:
        """Let time pass until `is_done`. Returns how long that took."""
        start_ms = self.now_ms
        for _ in range(1_000):
            if is_done():
                return self.now_ms - start_ms
            self.wait(step_ms)
        raise AssertionError(f"is_done is still false after {self.now_ms - start_ms} ms")

    def rewind(self) -> None:
        """Let time pass until the pending rewind happens."""
        version = self.version
        for _ in range(20_000):
            if self.version > version:
                return
            self.wait(1)
        raise AssertionError("no rewind was pending")

    # ---- what the stream does -----------------------------------------------------------------

    def feed(self, event: Event, *, keep_effects: bool = False) -> None:
        before = self.effects if keep_effects else []
        self._perform(self.stream.handle(event, self.now_ms))
        self.effects = before + self.effects

    def _perform(self, effects: list[Effect]) -> None:
        self.effects = list(effects)
        for effect in effects:
            match effect:
                case Deliver():
                    self.delivered += effect.items
                    if self.consumes:
                        self.consume(effect.items)
                case GetEpochMetadata() if self.answers_metadata:
                    self.answer_metadata(effect.epoch)
                case SendStart():
                    self.starts.append(effect)
                case WakeAt():
                    self._wake_ups.append(effect.time_ms)
                case EndStream():
                    self.has_ended = True
                case _:
                    pass

    def consume(self, items: Sequence[Record | Gap]) -> None:
        last = items[-1]
        end = last.end if isinstance(last, Gap) else last.lsn.next
        self.feed(Consumed(end), keep_effects=True)

    def answer_metadata(
        self,
        epoch: int,
        metadata: EpochMetadata | None = None,
        last_epoch: int | None = None,
        source: MetadataSource | None = None,
    ) -> None:
        answer = EpochMetadataIs(
            Epoch(epoch),
            metadata or self.metadata,
            Epoch(self.last_epoch if last_epoch is None else last_epoch),
            source or self.metadata_source,
        )
        self.feed(answer, keep_effects=True)

    def sent(self, kind: type[EffectType]) -> list[EffectType]:
        """The effects of one kind that the last event caused."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def told(self, kind: type[ToldType]) -> list[Tell[ToldType]]:
        """The messages of one kind, with their nodes, that the last event caused."""
        return [effect for effect in self.sent(Tell) if isinstance(effect.message, kind)]

    def start_of(self, node: int) -> Start:
        """The latest START that went to a node."""
        return [start.message for start in self.starts if start.node == node][-1]

    @property
    def stops(self) -> list[int]:
        return [stop.node for stop in self.told(Stop)]

    @property
    def windows(self) -> dict[int, Lsn]:
        return {window.node: window.message.window_end for window in self.told(Window)}

    @property
    def version(self) -> int:
        return max((start.message.filter_version for start in self.starts), default=1)

    @property
    def mode(self) -> ReadMode:
        return self.starts[-1].message.mode

    @property
    def known_down(self) -> tuple[int, ...]:
        return tuple(map(int, self.starts[-1].message.known_down))

    @property
    def text(self) -> list[str]:
        """What was delivered, one word each: `n5` or `DATALOSS 3-4`, epochs other than 1 in full."""
        return [_text(item) for item in self.delivered]

    @property
    def health(self) -> StreamHealth:
        return self.stream.health(self.now_ms)


def reading(**arguments: object) -> Reading:
    """A reader whose nodes have all answered, with plenty to read."""
    bench = Reading(**arguments)  # type: ignore[arg-type]
    bench.started(released=RELEASED)
    return bench


def rewound(bench: Reading) -> Reading:
    """Let the pending rewind happen; all nodes answer."""
    bench.rewind()
    bench.started(released=RELEASED)
    return bench


def _text(item: Record | Gap) -> str:
    if isinstance(item, Record):
        return _position(item.lsn)
    return f"{item.type.value} {_position(item.start)}-{_position(item.end)}"


def _position(position: Lsn) -> str:
    return f"n{position.esn}" if position.epoch == 1 else str(position)
