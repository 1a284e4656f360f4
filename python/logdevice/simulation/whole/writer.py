"""A writer with tags: it dies and comes back, with what it had kept of its appends or without, or twice.

Each life is a process with an incarnation of its own. Some keep their forward table on a disk; others
begin anew with what the log says about them. A life that was given up for dead may go on beside its
successor, until it is fenced off. Everything that is settled is written down as promised.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.routing import Answer, Trouble
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus, GetWriter, WriterIs
from logdevice.protocol.writers.forward_table import (
    STORED,
    Effect,
    Event,
    FindSequencer,
    ForwardLimits,
    ForwardTable,
    GiveUp,
    IncarnationRenewed,
    Numbered,
    RenewIncarnation,
    Resumed,
    SequencerFound,
    WriterIdentity,
)
from logdevice.simulation.whole.ledger import Ledger
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.plan import WriterPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.routes import Routes
from logdevice.simulation.workload import LOG
from logdevice.types import NodeId

Complain = Callable[[str, str | None], None]
ASK_AGAIN_MS = 300
PATIENCE_MS = 1_000
BURST = 10


class Journal:
    """What a writer keeps on its disk, and what the simulation knows of it."""

    def __init__(self) -> None:
        self.next_seq = 1
        self.kept: dict[int, tuple[int, bytes]] = {}  # request -> number and body, of what is not settled
        self.begun = 0  # appends of all lives
        self.lives = 0


class WriterLife:
    """One process of a writer."""

    def __init__(
        self,
        number: int,
        plan: WriterPlan,
        journal: Journal,
        process: Process,
        *,
        nodes: list[NodeId],
        owner: Callable[[], NodeId],
        links: Links,
        ledger: Ledger,
        complain: Complain,
    ) -> None:
        journal.lives += 1
        self.process = process
        self.is_hasty = False
        self.is_over = False
        self._number, self._plan, self._journal = number, plan, journal
        self._life = journal.lives
        self._nodes, self._owner, self._links, self._ledger = nodes, owner, links, ledger
        self._complain = complain
        self._world = process.world
        self._bodies: dict[int, bytes] = {}  # by request
        self._table: ForwardTable | None = None
        self._routes = Routes(process, nodes, links, PATIENCE_MS)

    @property
    def is_idle(self) -> bool:
        return self.is_over or (self._table is not None and not self._table.unsettled)

    def start(self) -> None:
        if self._plan.has_journal:
            self._open(self._journal.next_seq)
        else:
            self._ask_where_to_begin()
        self._submit_some()

    def _ask_where_to_begin(self) -> None:
        def answered(answer: Answer) -> None:
            assert isinstance(answer, WriterIs)
            assert answer.status is AppendStatus.OK, "no other answer is for good"
            self._open(max(1, answer.next_seq))

        def failed(trouble: Trouble) -> None:
            self.process.later(self._world.between(1, ASK_AGAIN_MS), self._ask_where_to_begin)

        self._routes.ask(GetWriter(LOG, self._number, 0), answered, failed)

    def _open(self, first_seq: int) -> None:
        plan, journal = self._plan, self._journal
        identity = WriterIdentity(
            log=LOG, writer=self._number, incarnation=self._life, is_ordered=plan.is_ordered
        )
        limits = ForwardLimits(
            window_max=plan.window_max,
            resend_ms_min=plan.resend_ms,
            resend_ms_max=4 * plan.resend_ms,
            pause_ms_min=5,
            pause_ms_max=100,
        )
        inherited = sorted(journal.kept.items()) if plan.has_journal else []
        self._table = ForwardTable(identity, limits, first_seq)
        for request, (seq, body) in sorted(inherited, key=lambda item: item[1][0]):
            self._bodies[request] = body
            self._feed(Resumed(request, Append(log=LOG, body=body, entries=1), seq))

    def _submit_some(self) -> None:
        plan, journal = self._plan, self._journal
        if self.is_over or journal.begun >= plan.appends:
            return
        if self._table is not None and self._table.unsettled < plan.unsettled_max:
            for _ in range(self._world.between(1, plan.burst_max)):
                self.append_one()
        pause_ms = 5 if self.is_hasty else plan.pause_ms_max
        self.process.later(self._world.between(1, pause_ms), self._submit_some)

    def append_some(self) -> None:
        if self._table is not None and not self.is_over:
            for _ in range(min(BURST, self._plan.appends - self._journal.begun)):
                self.append_one()

    def append_one(self) -> None:
        assert self._table is not None, "the writer is open"
        self._journal.begun += 1
        request = self._journal.begun
        body = f"w{self._number}-{self._life}-{request}".encode()
        self._bodies[request] = body
        self._ledger.writes[body] = (self._number, self._plan.is_ordered, (self._life, request))
        self._feed(Asked(request, Append(log=LOG, body=body, entries=1)))

    def _feed(self, event: Event) -> None:
        if self._table is not None and not self.is_over:
            for effect in self._table.handle(event, self.process.now_ms):
                self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        journal = self._journal
        match effect:
            case Numbered():
                journal.kept[effect.id] = effect.seq, self._bodies[effect.id]
                journal.next_seq = max(journal.next_seq, effect.seq + 1)
            case Ask():
                self._send(effect)
            case FindSequencer():
                self._find()
            case RenewIncarnation():
                journal.lives += 1
                renewed = IncarnationRenewed(journal.lives)
                self.process.later(self._world.between(1, 20), lambda: self._feed(renewed))
            case Reply():
                body = self._bodies.pop(effect.id)
                journal.kept.pop(effect.id, None)
                if effect.answer.status in STORED:
                    lsn = effect.answer.lsn
                    self._world.say(self.process.name, f"knows that {body.decode()} is at {lsn}")
                    self._ledger.settled(body, lsn)
            case GiveUp():
                self._give_up(effect.appended)
            case WakeAt():
                self.process.wake_at(effect.time_ms, lambda: self._feed(Woken()))

    def _send(self, effect: Ask[Append]) -> None:
        node, append = effect.node, effect.request

        def answered(answer: object) -> None:
            assert isinstance(answer, Appended)
            self._feed(Answered(node, answer, effect.id))

        def lost(was_sent: bool) -> None:
            self._feed(Lost(node, append, was_sent, effect.id))

        if append.body not in self._ledger.attempts:
            self._ledger.sent(append)
        self._links.ask(self.process, node, append, answered, lost)

    def _find(self) -> None:
        """Whoever is asked may be wrong, or know nothing."""
        world = self._world
        choices = [self._owner(), self._owner(), world.rng.choice(self._nodes), None]
        self.process.later(
            world.between(1, 20), lambda: self._feed(SequencerFound(world.rng.choice(choices)))
        )

    def _give_up(self, appended: Appended) -> None:
        self._world.say(self.process.name, f"gives up: {appended.status.value}")
        self.is_over = True
        is_fenced = appended.status is AppendStatus.FENCED
        if is_fenced and self._table is not None and self._table.incarnation == self._journal.lives:
            self._complain(self.process.name, "fenced off by nobody")
        if not is_fenced and not self._ledger.trim_end and not self._plan.may_be_forgotten:
            self._complain(self.process.name, "forgotten without need")
