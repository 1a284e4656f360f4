"""A log state compared with a dictionary: it keeps its promises in any order of events, also with crashes.

The dictionary holds the promises: for each LSN the best copy whose store was acknowledged. Every copy
has its own body, so that the store shows which request wrote it.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from logdevice.protocol.io import Asked, Reply
from logdevice.protocol.log_state.copies import precedence
from logdevice.protocol.log_state.events import Answer, Effect, Event, ReleaseAdvanced, Request, TrimAdvanced
from logdevice.protocol.log_state.state import LogState
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist, PersistError, PersistFailed
from logdevice.protocol.log_state.stored_log import StoredLog, restore
from logdevice.protocol.log_state.tests.node_log import LOG, digest, release, seal, store
from logdevice.protocol.messages.write import (
    Delete,
    DigestRecords,
    DigestRequest,
    Seal,
    Sealed,
    SealStatus,
    Store,
    Stored,
    StoreStatus,
    Trim,
    Trimmed,
)
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead, ReadMetadataLog
from logdevice.protocol.timers import Woken
from logdevice.settings import RecoverySettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.types import Epoch, EpochMetadata, Lsn, NodeId, Record, RecordFlags, Replication, nodes

_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
_ALONE = (EpochMetadata(Epoch(1), nodes([1]), Replication.parse("1")),)

EPOCHS = st.integers(1, 3)
ESNS = st.integers(1, 2)
WAVES = st.integers(1, 3)
PROMPT = st.booleans()  # whether the disk does its work at once


class LogStateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryLogStore()
        self.now_ms = 0
        self.number = 0
        self.promised: dict[Lsn, Record] = {}  # the best copy at each LSN that was acknowledged
        self.refused: set[bytes] = set()  # bodies of stores that were refused
        self.deletes: dict[Lsn, int] = {}  # the highest wave for which a delete was sent
        self.sealed = self.trimmed = 0  # up to where the node has promised to be sealed and trimmed
        self.boot(StoredLog())

    def boot(self, stored: StoredLog) -> None:
        self.machine = LogState(LOG, NodeId(1), RecoverySettings(), stored)
        self.writes: list[Persist] = []
        self.reads: list[StoreRead] = []
        self.asked: dict[int, tuple[Request, dict[Lsn, Record], int]] = {}
        self.advanced: dict[type[object], Lsn] = {}
        self.perform(self.machine.start(self.now_ms))

    def feed(self, event: Event) -> None:
        self.perform(self.machine.handle(event, self.now_ms))

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist():
                    self.writes.append(effect)
                case StoreRead():
                    self.reads.append(effect)
                case Reply():
                    self.answered(*self.asked.pop(effect.id), effect.answer)
                case ReleaseAdvanced() | TrimAdvanced():
                    assert effect.end > self.advanced.get(type(effect), Lsn(0)), "the end went back"
                    self.advanced[type(effect)] = effect.end
                case ReadMetadataLog():
                    self.feed(MetadataLogRead(_ALONE))  # Y4: no other node knows
                case _:
                    pass

    def ask(self, request: Request, *, prompt: bool) -> None:
        self.number += 1
        self.asked[self.number] = request, dict(self.promised), self.sealed
        self.feed(Asked(self.number, request))
        if prompt:
            self.the_disk_catches_up()

    # Requests.

    @rule(epoch=EPOCHS, esn=ESNS, wave=WAVES, good=ESNS, prompt=PROMPT)
    def store_a_copy(self, epoch: int, esn: int, wave: int, good: int, prompt: bool) -> None:
        self.put(store(f"e{epoch}n{esn}", wave=wave, good_end=f"e{epoch}n{good}"), prompt=prompt)

    @rule(epoch=EPOCHS, esn=ESNS, wave=WAVES, prompt=PROMPT)
    def recovery_stores_a_copy(self, epoch: int, esn: int, wave: int, prompt: bool) -> None:
        self.put(store(f"e{epoch}n{esn}", wave=wave, recovery=True, attempt=1), prompt=prompt)

    def put(self, request: Store, prompt: bool) -> None:
        record = replace(request.record, body=b"%d" % (self.number + 1))
        self.ask(replace(request, record=record), prompt=prompt)

    @rule(epoch=EPOCHS, esn=ESNS, wave=WAVES, prompt=PROMPT)
    def delete_a_copy(self, epoch: int, esn: int, wave: int, prompt: bool) -> None:
        lsn = Lsn.of(epoch, esn)
        self.deletes[lsn] = max(self.deletes.get(lsn, 0), wave)
        self.ask(Delete(LOG, lsn, wave), prompt=prompt)

    @rule(epoch=EPOCHS, prompt=PROMPT)
    def seal_an_epoch(self, epoch: int, prompt: bool) -> None:
        self.ask(seal(epoch), prompt=prompt)

    @rule(epoch=EPOCHS, start=ESNS, prompt=PROMPT)
    def digest_an_epoch(self, epoch: int, start: int, prompt: bool) -> None:
        self.ask(digest(epoch, f"e{epoch}n{start}", seal=epoch), prompt=prompt)

    @rule(epoch=EPOCHS, esn=ESNS, prompt=PROMPT)
    def release_up_to(self, epoch: int, esn: int, prompt: bool) -> None:
        self.ask(release(f"e{epoch}n{esn}"), prompt=prompt)

    @rule(esn=ESNS, prompt=PROMPT)
    def trim_up_to(self, esn: int, prompt: bool) -> None:
        self.ask(Trim(LOG, Lsn.of(1, esn)), prompt=prompt)

    # Other events.

    @precondition(lambda self: self.writes)
    @rule()
    def a_write_becomes_durable(self) -> None:
        self.feed(self.store.write([self.writes.pop(0)])[0])

    @precondition(lambda self: self.writes)
    @rule(error=st.sampled_from(PersistError))
    def a_write_fails(self, error: PersistError) -> None:
        self.feed(PersistFailed(self.writes.pop(0).write_id, error))

    @precondition(lambda self: self.reads)
    @rule()
    def a_read_ends(self) -> None:
        self.feed(self.store.scan(self.reads.pop(0)))

    @rule()
    def the_disk_catches_up(self) -> None:
        while self.writes or self.reads:
            if self.writes:
                self.a_write_becomes_durable()
            if self.reads:
                self.a_read_ends()

    @rule()
    def time_goes_by(self) -> None:
        self.now_ms += 600
        self.feed(Woken())

    @rule()
    def the_node_crashes(self) -> None:
        store = self.store
        self.boot(restore(store.states(LOG), store.newest(LOG), store.trim_end(LOG)))

    # Promises.

    def answered(self, request: Request, promised: dict[Lsn, Record], sealed: int, answer: Answer) -> None:
        match request, answer:
            case Store(record=record), Stored(status=StoreStatus.OK):
                is_recovery = bool(record.flags & _BY_RECOVERY)
                assert is_recovery or record.lsn.epoch > sealed, (
                    "J1: the epoch was sealed when the store came"
                )
                best = self.promised.get(record.lsn, record)
                self.promised[record.lsn] = max(best, record, key=precedence)
            case Store(record=record), Stored(status=StoreStatus.PREEMPTED):
                self.refused.add(bytes(record.body))
            case Seal(), Sealed(status=SealStatus.OK):
                self.sealed = max(self.sealed, request.epoch)
            case DigestRequest(), DigestRecords(has_failed=False):
                self.check_digest(request, promised, answer)
            case Trim(), Trimmed():
                assert answer.end >= request.end
                self.trimmed = max(self.trimmed, request.end)
            case _:
                pass

    def check_digest(
        self, request: DigestRequest, promised: dict[Lsn, Record], answer: DigestRecords
    ) -> None:
        """J12: a digest shows every store of its epoch that was acknowledged before it."""
        shown = {record.lsn: record for record in answer.records}
        for lsn, record in promised.items():
            if lsn.epoch == request.epoch and lsn >= request.start and not self.may_be_gone(lsn, record):
                assert precedence(shown[lsn]) >= precedence(record), f"{lsn} in a digest"

    def may_be_gone(self, lsn: Lsn, record: Record) -> bool:
        return lsn < self.machine_trim or precedence(record) <= (False, self.deletes.get(lsn, 0))

    @property
    def machine_trim(self) -> Lsn:
        return max(self.machine.stored.trim_end, self.store.trim_end(LOG))

    @invariant()
    def acknowledged_copies_are_there(self) -> None:
        """J4, J7, J8, J11: each acknowledged copy, or a better one."""
        for lsn, record in self.promised.items():
            if not self.may_be_gone(lsn, record):
                copy = self.store.get(LOG, lsn)
                assert copy is not None, f"{lsn} is gone"
                assert precedence(copy) >= precedence(record), f"{lsn} was replaced by a worse copy"

    @invariant()
    def refused_copies_are_not_there(self) -> None:
        for lsn in self.store.lsns(LOG):
            copy = self.store.get(LOG, lsn)
            assert copy is not None
            assert bytes(copy.body) not in self.refused, f"{lsn} was refused"

    @invariant()
    def promises_survive(self) -> None:
        """J1, J11: they also survive crashes."""
        stored = self.machine.stored
        assert stored.seal.epoch >= self.sealed
        assert stored.trim_end >= self.trimmed


LogStateMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogState = LogStateMachine.TestCase
