"""Several logs whose sequencers' clocks differ, clients that read and append, and cuts taken meanwhile.

The sequencers and the cut are the real machines; nodes, the epoch store and recovery are simulated.
Sequencers are replaced at any moment, and the old ones still answer clients that ask them. All chance comes
from one seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from logdevice.protocol.cut import CutFailed, CutFound, CutTaking
from logdevice.protocol.io import Ask
from logdevice.protocol.messages.write import AppendStatus, Barrier, BarrierIs, GetTail, Store, Tail
from logdevice.protocol.sequencer.epoch_state import EpochState, EpochStoreRead, ReadEpochStore
from logdevice.protocol.sequencer.events import Effect, Event
from logdevice.protocol.sequencer.tests.sequencing import LOG, METADATA, Sequencing, state
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, LogId, LogPoint, Lsn, NodeId

Key = tuple[int, Lsn]  # a record: its log and its LSN
LOGS = 3
SKEW_MS = 40
SETTINGS = WriteSettings(release_interval_ms=0, clock_places_max=8)


@dataclass
class _Kept:
    time_ms: int
    causes: frozenset[Key]


@dataclass
class _Client:
    seen_ms: int = 0
    knows: set[Key] = field(default_factory=set)


class _Machine(Sequencing):
    """One sequencer of one log, with the answers it gave to barriers."""

    def __init__(self, offset_ms: int) -> None:
        super().__init__(SETTINGS)
        self.offset_ms = offset_ms
        self.barriers: dict[int, BarrierIs] = {}
        self.questions: list[int] = []  # to the epoch store, on their way
        self.released_end = Lsn(0)

    def feed(self, event: Event) -> list[Effect]:
        effects = super().feed(event)
        self.barriers |= self.replies(BarrierIs)
        self.questions += [effect.question for effect in self.wanted(ReadEpochStore) if effect.question]
        self.released_end = max([self.released_end, *self.released().values()])
        return effects


class _Log:
    def __init__(self) -> None:
        self.epoch = 1  # in the epoch store
        self.records: dict[Lsn, _Kept] = {}  # that are in the log for good
        self.machine = _Machine(0)
        self.old: _Machine | None = None
        self.flights: list[tuple[_Client, int, list[Ask[Store]], frozenset[Key]]] = []

    def replace_sequencer(self, now_ms: int, offset_ms: int) -> None:
        """Records in flight are lost; they were not acknowledged."""
        self.flights = []
        last = max(self.records, default=Lsn(0))
        time_ms = self.records[last].time_ms if last else 0
        tail = LogPoint(lsn=Lsn(last + 1), timestamp_ms=time_ms)
        self.old, self.machine = self.machine, _Machine(offset_ms)
        self.machine.now_ms = now_ms + offset_ms
        read = EpochState(
            epoch=Epoch(self.epoch),
            last_clean=Epoch(self.epoch),
            metadata=METADATA,
            owner=NodeId(4),
            tail=tail,
        )
        self.machine.activate(read)
        self.epoch += 1


@dataclass(frozen=True)
class CutOutcome:
    violations: list[str]


def simulate_cut(seed: int) -> CutOutcome:
    """Take one cut, for `make mutants`."""
    problem = CutWorld(seed).play(is_consistent=True)
    return CutOutcome([] if problem is None else [problem])


class CutWorld:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._now_ms = 10_000
        self._requests = 1_000
        self._logs = [_Log() for _ in range(LOGS)]
        self._clients = [_Client() for _ in range(3)]
        for log in self._logs:
            log.replace_sequencer(self._now_ms, self._skew())
            log.old = None

    def play(self, *, is_consistent: bool) -> str | None:
        """Take one cut amid appends, reads and failovers. Returns what is wrong with it, or None."""
        self._noise(self._rng.randint(5, 25))
        before = [max(log.records, default=Lsn(0)) for log in self._logs]
        found = self._cut(is_consistent)
        if found is None:
            return None  # given up: sequencers were replaced too often
        self._noise(5)
        inside = {
            (number, lsn)
            for number, log in enumerate(self._logs)
            for lsn in log.records
            if lsn < found[number]
        }
        for number, lsn in enumerate(before):
            if lsn and (number, lsn) not in inside:
                return f"log {number} had {lsn} acknowledged before, and the cut ends at {found[number]}"
        for number, lsn in sorted(inside) if is_consistent else ():
            missing = self._logs[number].records[lsn].causes - inside
            if missing:
                return f"log {number} has {lsn} in the cut, and not its causes {sorted(missing)}"
        return None

    def _cut(self, is_consistent: bool) -> list[Lsn] | None:
        taking = CutTaking(
            [LogId(number) for number in range(LOGS)],
            is_consistent=is_consistent,
            seen_ms=0,
            attempts_max=20,
        )
        while True:
            answers = self._round(taking.questions())
            outcome = taking.answered(answers)
            if isinstance(outcome, CutFound):
                return [end.end.lsn for end in outcome.ends]
            if isinstance(outcome, CutFailed):
                return None
            assert outcome is None, f"{outcome}"

    def _round(self, questions: list[GetTail | Barrier]) -> list[Tail | BarrierIs]:
        """Ask all questions in any order, and again where the answer says so. Answers come in any order."""
        answers: dict[int, Tail | BarrierIs] = {}
        asked: dict[int, tuple[_Machine, int]] = {}
        while len(answers) < LOGS:
            number = self._rng.choice([number for number in range(LOGS) if number not in answers])
            answer = self._ask(number, questions[number], asked)
            if answer is not None:
                answers[number] = answer
            self._noise(self._rng.randint(0, 3))
        return [answers[number] for number in range(LOGS)]

    def _ask(
        self, number: int, question: GetTail | Barrier, asked: dict[int, tuple[_Machine, int]]
    ) -> Tail | BarrierIs | None:
        log = self._logs[number]
        if number in asked:
            machine, request = asked[number]
            answer = machine.barriers.get(request)
            if answer is None:
                if machine is not log.machine:
                    del asked[number]  # it may never answer: ask the new sequencer
                return None
            del asked[number]
            final = (AppendStatus.OK, AppendStatus.TOO_LATE)
            return answer if answer.status in final else None
        is_outdated = log.old is not None and self._rng.random() < 0.2
        machine = log.old if log.old is not None and is_outdated else log.machine
        machine.now_ms = max(machine.now_ms, self._now_ms + machine.offset_ms)
        if isinstance(question, GetTail):
            tail = machine.tail()
            return tail if tail.status is AppendStatus.OK else None
        self._requests += 1
        asked[number] = machine, self._requests
        machine.ask(self._requests, replace(question, log=LOG))
        return None

    def _noise(self, steps: int) -> None:
        for _ in range(steps):
            self._now_ms += self._rng.randint(0, 2)
            draw = self._rng.random()
            log = self._rng.choice(self._logs)
            log.machine.now_ms = max(log.machine.now_ms, self._now_ms + log.machine.offset_ms)
            if draw < 0.45:
                self._append(log)
            elif draw < 0.75:
                self._finish(log)
            elif draw < 0.92:
                self._read(log)
            elif draw < 0.97:
                self._confirm(log)
            elif draw < 0.985:
                log.replace_sequencer(self._now_ms, self._skew())
        for log in self._logs:
            self._confirm(log)

    def _append(self, log: _Log) -> None:
        client = self._rng.choice(self._clients)
        request = log.machine.append(clock_ms=client.seen_ms)
        log.flights.append((client, request, log.machine.stores(), frozenset(client.knows)))
        if self._rng.random() < 0.7:
            self._finish(log)

    def _finish(self, log: _Log) -> None:
        """The oldest record in flight is stored and acknowledged."""
        if not log.flights:
            return
        client, request, stores, causes = log.flights.pop(0)
        log.machine.store(stores)
        answer = log.machine.answers[request]
        number = self._logs.index(log)
        log.records[answer.lsn] = _Kept(answer.timestamp_ms, causes)
        client.seen_ms = max(client.seen_ms, answer.timestamp_ms)
        client.knows.add((number, answer.lsn))

    def _read(self, log: _Log) -> None:
        """A client reads a record; it then knows all that the writer of the record knew."""
        readable = [lsn for lsn in log.records if lsn < log.machine.released_end]
        if readable:
            client, lsn = self._rng.choice(self._clients), self._rng.choice(readable[-3:])
            kept = log.records[lsn]
            client.seen_ms = max(client.seen_ms, kept.time_ms)
            client.knows |= {(self._logs.index(log), lsn), *kept.causes}

    def _confirm(self, log: _Log) -> None:
        for machine in (log.machine, log.old):
            if machine is not None and machine.questions:
                machine.feed(EpochStoreRead(3, state(log.epoch), machine.questions.pop(0)))

    def _skew(self) -> int:
        return self._rng.randint(-SKEW_MS, SKEW_MS)
