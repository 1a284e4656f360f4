"""A log state for tests; the test plays its disk and all other nodes.

The node is N1. Writes are durable when the test says so (`write`); with `Node(prompt=True)` they are durable
at once. Answers to requests are in `replies`.
"""

from __future__ import annotations

from typing import TypeVar

from logdevice.protocol.io import Answered, Asked, Reply
from logdevice.protocol.log_state.events import Answer, Effect, Event, Request
from logdevice.protocol.log_state.state import LogState
from logdevice.protocol.log_state.store_read import ReadEnd, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutRecord,
    PutState,
    StoreWrite,
)
from logdevice.protocol.log_state.stored_log import StoredLog, restore
from logdevice.protocol.messages.write import Clean, DigestRequest, EpochRecovered, Release, Seal, Store
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RecoverySettings
from logdevice.types import Epoch, EpochMetadata, LogId, Lsn, NodeId, Record, RecordFlags, Replication, nodes

LOG = LogId(7)
AnyEffect = TypeVar("AnyEffect", bound=Effect)


def lsn(text: str) -> Lsn:
    return Lsn.parse(text)


def record(at: str, *, wave: int = 1, flags: int = 0, body: bytes = b"body") -> Record:
    return Record(
        lsn(at),
        timestamp_ms=lsn(at).esn,
        copyset=nodes([1, 2, 3]),
        body=body,
        flags=flags,
        wave=wave,
        entry_end=lsn(at).esn * 10,
        byte_end=lsn(at).esn * 100,
    )


def store(
    at: str,
    *,
    wave: int = 1,
    good_end: str = "e1n1",
    amend: bool = False,
    draining: bool = False,
    recovery: bool = False,
    attempt: int = 0,
    sender: int = 0,
) -> Store:
    flags = int(RecordFlags.BY_RECOVERY) if recovery else 0
    return Store(
        log=LOG,
        record=record(at, wave=wave, flags=flags, body=b"" if amend else b"body"),
        good_end=lsn(good_end),
        sequencer=NodeId(sender),
        is_amend=amend,
        is_draining=draining,
        attempt=attempt,
    )


def seal(epoch: int, *, by: int = 4, last_clean: int = 0) -> Seal:
    return Seal(log=LOG, epoch=Epoch(epoch), sealed_by=NodeId(by), last_clean=Epoch(last_clean))


def clean(epoch: int, good_end: str, end: str, *, seal: int, attempt: int = 1) -> Clean:
    return Clean(
        log=LOG,
        epoch=Epoch(epoch),
        seal_epoch=Epoch(seal),
        good_end=lsn(good_end),
        end=lsn(end),
        attempt=attempt,
    )


def digest(epoch: int, start: str, *, seal: int = 1, attempt: int = 1) -> DigestRequest:
    return DigestRequest(
        log=LOG, epoch=Epoch(epoch), start=lsn(start), seal_epoch=Epoch(seal), attempt=attempt
    )


def release(end: str, *, sender: int = 0) -> Release:
    return Release(LOG, lsn(end), NodeId(sender))


def is_look_up(read: StoreRead) -> bool:
    """Whether this reads the header of one copy."""
    return read.headers_only and read.end == read.start.next


class Node:
    def __init__(
        self, stored: StoredLog | None = None, *, prompt: bool = True, rebuilding: bool = False
    ) -> None:
        self.machine = LogState(
            LOG, NodeId(1), RecoverySettings(), stored or StoredLog(), rebuilding=rebuilding
        )
        self.prompt = prompt
        self.finds = True  # look-ups are answered at once
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.replies: dict[int, Answer] = {}
        self.written: list[StoreWrite] = []
        self.unwritten: list[Persist] = []
        self.copies: dict[Lsn, Record] = {}
        self._requests = 0
        self.perform(self.machine.start(0))

    def perform(self, effects: list[Effect]) -> list[Effect]:
        """Performs effects; returns those of the machine other than writes and look-ups of copies."""
        self.effects = effects
        others: list[Effect] = []
        for effect in effects:
            match effect:
                case Persist():
                    self.unwritten.append(effect)
                    if self.prompt:
                        others += self.write()
                case StoreRead() if self.prompt and self.finds and is_look_up(effect):
                    others += self.find(effect)
                case Reply():
                    self.replies[effect.id] = effect.answer
                case WakeAt():
                    pass
                case _:
                    others.append(effect)
        return others

    def feed(self, event: Event) -> list[Effect]:
        return self.perform(self.machine.handle(event, self.now_ms))

    def find(self, read: StoreRead) -> list[Effect]:
        items = tuple(copy for lsn, copy in sorted(self.copies.items()) if read.start <= lsn < read.end)
        return self.feed(RecordsRead(read.read_id, items, read.end, ReadEnd.LIMIT))

    @property
    def look_ups(self) -> list[StoreRead]:
        """The look-ups that the last event caused."""
        return [read for read in self.wanted(StoreRead) if is_look_up(read)]

    @property
    def reads(self) -> list[StoreRead]:
        return [read for read in self.wanted(StoreRead) if not is_look_up(read)]

    def answer(self, node: int, answer: EpochRecovered) -> list[Effect]:
        """The answer of the only other node that a purge can ask."""
        self.feed(MetadataLogRead((EpochMetadata(Epoch(1), nodes([1, node]), Replication.parse("2")),)))
        return self.feed(Answered(NodeId(node), answer))

    def write(self) -> list[Effect]:
        """Makes the oldest write durable."""
        persist = self.unwritten.pop(0)
        self.written += persist.writes
        for write in persist.writes:
            if isinstance(write, PutRecord):
                self.copies[write.record.lsn] = write.record
        return self.feed(Persisted(persist.write_id))

    def fail(self, error: PersistError) -> list[Effect]:
        return self.feed(PersistFailed(self.unwritten.pop(0).write_id, error))

    def request(self, request: Request) -> int:
        self._requests += 1
        self.others = self.feed(Asked(self._requests, request))
        return self._requests

    def ask(self, request: Request) -> Answer | None:
        """Sends a request; returns its answer, None if there is none yet."""
        return self.replies.get(self.request(request))

    def wanted(self, kind: type[AnyEffect]) -> list[AnyEffect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def wait(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.feed(Woken())

    def reboot(self) -> Node:
        """The node after a restart, with everything that was durable."""
        states = {write.name: write.value for write in self.written if isinstance(write, PutState)}
        newest = {copy.lsn.epoch: copy for _, copy in sorted(self.copies.items())}
        return Node(restore(states, newest.values(), Lsn(0)))
