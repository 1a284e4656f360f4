"""A reader of the simulation: hosts one client read stream and simulates its application.

It performs the stream's effects as the contracts in `logdevice.protocol` and `read_stream/events.py` promise,
and no better: wake-ups come late or twice, records are damaged on the way, the application is slow. What
checkers need to know about a reader is in its `view`.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from logdevice.protocol.io import Answered, Tell
from logdevice.protocol.messages.read import (
    EpochMetadataIs,
    GetEpochMetadata,
    Records,
    Start,
    StatusNotice,
    ToNode,
    ToReader,
    Window,
)
from logdevice.protocol.read_stream.events import (
    ConnectionLost,
    Consumed,
    Deliver,
    Effect,
    EndStream,
    Event,
    MetadataUnavailable,
    ReadRequest,
    SendStart,
)
from logdevice.protocol.read_stream.stream import ClientReadStream
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.simulation.network import Connection
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.node import brief
from logdevice.simulation.reading.oracle import LOG
from logdevice.simulation.reading.plan import ReaderPlan
from logdevice.simulation.reading.view import ReaderView
from logdevice.types import Gap, NodeId, Record, RecordFlags

if TYPE_CHECKING:
    from logdevice.simulation.reading.read_cluster import ReadCluster

Item = Record | Gap


class SimulatedReader:
    """One stream, its connections and its application."""

    def __init__(self, name: str, plan: ReaderPlan, cluster: ReadCluster) -> None:
        request = ReadRequest(
            log=LOG,
            start=plan.start,
            end=plan.end,
            location=plan.location,
            shuffle_seed=plan.shuffle_seed,
            time_range=plan.time_range,
            headers_only=plan.headers_only,
            force_all_send_all=plan.force_all_send_all,
        )
        self.name = name
        self.view = ReaderView(name, request, plan.settings.window_lsns)
        self._cluster = cluster
        self._world, self._network, self._witness = cluster.world, cluster.network, cluster.witness
        self._witness.views[name] = self.view
        self._process = SimProcess(name, self._network)
        rng = random.Random(self._world.rng.random())
        self.stream = ClientReadStream(request, cluster.read_config, plan.settings, rng)
        self._connections: dict[NodeId, Connection] = {}
        self._inbox: deque[Item] = deque()  # delivered, and not consumed by the application yet
        self._is_reading_planned = False

    @property
    def has_unread(self) -> bool:
        return bool(self._inbox)

    def start(self) -> None:
        self.view.is_started = True
        self._perform_all(self.stream.start(self._world.now_ms))

    def feed(self, event: Event) -> None:
        if self.view.is_started and not self.view.is_ended:
            self.view.reading.mode_before = self.view.reading.mode
            self._perform_all(self.stream.handle(event, self._world.now_ms))

    # Events of the network.

    def _open(self, node: NodeId) -> Connection:
        target = self._cluster.nodes[node]
        connection = Connection(
            self._process,
            target.process,
            lost=lambda: self._connection_lost(node),
            closed=lambda: target.forget(connection),
            heard=lambda message: self._received(node, message),
        )
        self._network.open(connection)
        return connection

    def _received(self, node: NodeId, message: ToReader) -> None:
        match message:
            case Records():
                message = self._decode(node, message)
            case StatusNotice():
                self.view.learn_status(message)
        self.feed(Answered(node, message))

    def _connection_lost(self, node: NodeId) -> None:
        del self._connections[node]
        self._process.say(f"loses its connection to {node}")
        self.feed(ConnectionLost(node))

    def lose_connections(self) -> None:
        for connection in list(self._connections.values()):
            self._network.reset(connection)

    def _decode(self, node: NodeId, message: Records) -> Records:
        """Decodes records; now and then one has a wrong checksum."""
        if self._world.faults.spoiled_in_flight == 0:
            return message
        records = list(message.records)
        for index, record in enumerate(records):
            if self._world.chance(self._world.faults.spoiled_in_flight):
                self._process.say(f"finds a bad checksum at {record.lsn} from {node}")
                self.view.spoiled.add((message.filter_version, node, record.lsn))
                # The damaged body keeps its length, because both ends must count the same bytes.
                noise = bytes(len(record.body))
                records[index] = replace(record, body=noise, flags=record.flags | RecordFlags.CORRUPT)
        return replace(message, records=tuple(records))

    # Effects of the stream.

    def _perform_all(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert not self.view.is_ended, f"{effect} after the end of the stream"
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendStart():
                self._send_start(effect)
            case Tell(node, Window() as window):
                self._witness.asked(self.view, window)
                self._send(node, window)
            case Tell(node, stop):
                self._send_stop(node, stop)
            case GetEpochMetadata():
                self._fetch_metadata(effect)
            case Deliver():
                self._take(effect)
            case EndStream():
                self._process.say("reached its end")
                self.view.is_ended = True
                for connection in self._connections.values():
                    self._network.close(connection)
                self._connections.clear()
            case WakeAt():
                self._process.wake_at(effect.time_ms, lambda: self.feed(Woken()))

    def _send_start(self, effect: SendStart) -> None:
        node, message = effect.node, effect.message
        if effect.reconnect and node in self._connections:
            self._network.close(self._connections.pop(node))
        if node not in self._connections:
            self._connections[node] = self._open(node)
        self.view.reading.note(node, message, self._world.now_ms)
        self._witness.asked(self.view, message)
        self._send(node, message)

    def _send_stop(self, node: NodeId, stop: ToNode) -> None:
        if node in self._connections:
            self._send(node, stop)
            self._network.close(self._connections.pop(node))

    def _send(self, node: NodeId, message: ToNode) -> None:
        if self._world.trace is not None:
            text = start_in_brief(message) if isinstance(message, Start) else brief(message)
            self._process.say(f"to {node}: {text}")
        if node in self._connections:
            connection, target = self._connections[node], self._cluster.nodes[node]
            self._network.to_target(connection, lambda: target.hear(connection, message))

    def _fetch_metadata(self, effect: GetEpochMetadata) -> None:
        self._process.say(f"asks for the metadata of epoch {effect.epoch}")

        def answer(event: EpochMetadataIs | MetadataUnavailable) -> None:
            self._process.say(f"is told {event}")
            self.feed(event)

        self._cluster.fetch_metadata(effect.epoch, answer)

    # The application.

    def _take(self, effect: Deliver) -> None:
        for item in effect.items:
            self._process.say(f"gets {item_in_brief(item)}")
            self._witness.delivered(self.view, item)
        self._inbox.extend(effect.items)
        self._plan_reading()

    def _plan_reading(self) -> None:
        if not self._is_reading_planned:
            self._is_reading_planned = True
            self._world.after(self._world.between(0, self._world.faults.lag_ms_max), self._read_inbox)

    def _read_inbox(self) -> None:
        """Consumes some of the delivered items in order; the others later."""
        self._is_reading_planned = False
        for _ in range(self._world.between(1, len(self._inbox))):
            item = self._inbox.popleft()
            self._witness.accepted(self.view, item)
        if self._inbox:
            self._plan_reading()
        self.feed(Consumed(item.lsn.next if isinstance(item, Record) else item.end))


def start_in_brief(start: Start) -> str:
    down = " ".join(str(node) for node in start.known_down) or "none"
    return (
        f"Start v{start.filter_version} [{start.start}, {start.end}) {start.mode.value} down: {down}, "
        f"window to {start.window_end}, {start.window_bytes} bytes"
    )


def item_in_brief(item: Item) -> str:
    return f"record {item.lsn}" if isinstance(item, Record) else str(item)
