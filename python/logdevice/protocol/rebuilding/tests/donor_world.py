"""The world of scenarios about a donor: one node that follows the event log and copies one log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from logdevice.protocol.io import Ask, Lost, Tell
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, PutCopies
from logdevice.protocol.messages.write import GetTail, Trim
from logdevice.protocol.rebuilding.donor import Effect
from logdevice.protocol.rebuilding.donor_events import (
    CopyingEnded,
    EventLogMoved,
    EventRecorded,
    LookAtLog,
    PutOff,
    RecordEvent,
)
from logdevice.protocol.rebuilding.node_status import EventKind, NodeEvent, NodeEvents, apply
from logdevice.protocol.rebuilding.tests.donating import ALL, LOG, SIGHT, Donating, history, record
from logdevice.protocol.tests.scenario import Arguments, Handler


class DonorWorld:
    """N1 among N1 to N4."""

    def __init__(self) -> None:
        self._donor = Donating()
        self._events = NodeEvents()

    def commands(self) -> Mapping[str, Handler]:
        return {
            "event": self.event,
            "see": self.see,
            "tail": self.tail,
            "read": self.read,
            "stored": self.stored,
            "trimmed": self.trimmed,
            "lost": self.lost,
            "recorded": self.recorded,
            "wait": self.wait,
        }

    def event(self, arguments: Arguments) -> Iterator[str]:
        """Something happened to a node."""
        event = NodeEvent(kind=EventKind[arguments.text("kind")], node=arguments.node("node"))
        self._events = apply(self._events, event, ALL)
        return self._tell(self._donor.feed(EventLogMoved(self._events, (LOG,))))

    def see(self, arguments: Arguments) -> Iterator[str]:
        """What is known about the log: the nodeset of epoch 1 and, if there is one, of epoch 2."""
        nodesets = [arguments.nodes("e1", "1,2,3,4")]
        second = arguments.nodes("e2", "")
        entries = history(*nodesets, second) if second else history(*nodesets)
        sight = replace(
            SIGHT,
            history=entries,
            epoch=entries[-1].first_epoch,
            released_end=arguments.lsn("released"),
            trim_end=arguments.lsn("trim", "e0n0"),
            alive=frozenset(arguments.nodes("alive", "1,2,3,4")),
        )
        return self._tell(self._donor.see(sight))

    def tail(self, arguments: Arguments) -> Iterator[str]:
        return self._tell(self._donor.tail(arguments.text("next")))

    def read(self, arguments: Arguments) -> Iterator[str]:
        """One record, or nothing, and then up to `next`."""
        copyset = arguments.nodes("copyset", "")
        records = [record(arguments.text("lsn"), *copyset)] if copyset else []
        return self._tell(self._donor.read(*records, next=arguments.text("next")))

    def stored(self, arguments: Arguments) -> Iterator[str]:
        return self._tell(self._donor.store(CopiesStatus[arguments.text("status", "OK")]))

    def trimmed(self, arguments: Arguments) -> Iterator[str]:
        return self._tell(self._donor.trim())

    def lost(self, arguments: Arguments) -> Iterator[str]:
        """The last request is lost."""
        ask = self._donor.the(Ask)
        return self._tell(self._donor.feed(Lost(ask.node, ask.request, True, ask.id)))

    def recorded(self, arguments: Arguments) -> Iterator[str]:
        """The event that it has recorded is in the event log, and it is told so."""
        event = self._donor.the(RecordEvent).event
        self._events = apply(self._events, event, ALL)
        yield from self._tell(self._donor.feed(EventRecorded(event, True)))
        yield from self._tell(self._donor.feed(EventLogMoved(self._events, (LOG,))))

    def wait(self, arguments: Arguments) -> Iterator[str]:
        return self._tell(self._donor.wait(arguments.integer("ms")))

    def _tell(self, effects: list[Effect]) -> Iterator[str]:
        if not effects:
            yield "nothing"
        for effect in effects:
            yield _text(effect)


def _text(effect: Effect) -> str:
    match effect:
        case LookAtLog():
            return "look at the log"
        case PutOff():
            return f"put off: {effect.why}"
        case StoreRead():
            return f"read {effect.start} to {effect.end}"
        case Tell():
            return f"tell {effect.node}: released up to {effect.message.end}"
        case Ask():
            return f"ask {effect.node}: {_request(effect.request)}"
        case RecordEvent():
            sure = "for sure" if effect.event.is_authoritative else "but something may be lost"
            return f"say {effect.event.kind.value}, version {effect.event.version}, {sure}"
        case CopyingEnded():
            return "copying ends"
        case _:
            raise AssertionError(effect)


def _request(request: GetTail | Trim | PutCopies | AmendCopies) -> str:
    match request:
        case GetTail():
            return "where does the log end?"
        case Trim():
            return f"trim up to {request.end}"
        case _:
            verb = "keep" if isinstance(request, PutCopies) else "amend"
            copies = ", ".join(f"{each.lsn} {','.join(map(str, each.copyset))}" for each in request.records)
            return f"{verb} {copies}"
