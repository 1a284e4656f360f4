"""A writer with tags: it dies and starts again, with its journal or without, sometimes beside its successor.

Each life is a process with its own incarnation. Some writers keep their forward table on a disk; others begin
with what the log says about them. A life that was replaced may go on beside its successor until it is fenced
off. Every settled append is noted as promised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logdevice.protocol.cluster.routing import Answer, SequencerFound, Trouble
from logdevice.protocol.io import Ask, Asked, Reply
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, GetWriter, WriterIs
from logdevice.protocol.writers.forward_table import (
    STORED,
    FindAnotherSequencer,
    ForwardTable,
    GiveUp,
    IncarnationRenewed,
    Numbered,
    RenewIncarnation,
    Resumed,
    WriterIdentity,
)
from logdevice.settings import ClientSettings
from logdevice.simulation.cluster.plan import WriterPlan
from logdevice.simulation.cluster.routes import Routes
from logdevice.simulation.host import SimHost
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.oracle import LOG

if TYPE_CHECKING:
    from logdevice.simulation.cluster.cluster import WholeCluster

ASK_AGAIN_MS = 300
PATIENCE_MS = 1_000
BURST = 10
RESTART_MS_MAX = 400


class SimWriter:
    """A writer's name. Its processes append one after the other, or for a while two at once."""

    def __init__(self, number: int, plan: WriterPlan, cluster: WholeCluster) -> None:
        self.number, self.plan, self.cluster = number, plan, cluster
        self.is_hasty = False  # appends without pauses
        # What it keeps on its disk.
        self.next_seq = 1
        self.kept: dict[int, tuple[int, bytes]] = {}  # unsettled appends: request -> number and body
        self.begun = 0  # appends of all lives
        self.incarnations = 0
        self._lives: list[WriterLife] = []

    @property
    def is_done(self) -> bool:
        """Whether the newest life has nothing left to do."""
        newest = self._lives[-1]
        if not newest.process.is_up:
            return False
        return newest.is_over or (newest.is_idle and self.begun >= self.plan.appends)

    @property
    def names(self) -> list[str]:
        return [life.process.name for life in self._lives if life.process.is_up]

    def begin_life(self) -> None:
        self.incarnations += 1
        life = WriterLife(self)
        self._lives.append(life)
        life.start()

    def append_some(self) -> None:
        """Appends several records at once, to a sequencer that is about to crash."""
        newest = self._lives[-1]
        if newest.process.is_up:
            newest.append_some()

    def strike(self) -> None:
        """Dies; or goes on, and its successor starts beside it."""
        newest, world = self._lives[-1].process, self.cluster.world
        if not newest.is_up:
            return
        if self.plan.has_journal or world.chance(0.6):  # a journal is locked, so no second life can start
            newest.end_life("dies")
            world.after(world.between(1, RESTART_MS_MAX), self.begin_life)
        else:
            self.begin_life()


class WriterLife:
    """One process of a writer."""

    def __init__(self, writer: SimWriter) -> None:
        cluster = writer.cluster
        self.process = SimProcess(f"writer{writer.number}.{writer.incarnations}", cluster.network)
        self._writer, self._plan = writer, writer.plan
        self._life = writer.incarnations
        self._nodes, self._ledger, self._world = list(cluster.nodes), cluster.ledger, cluster.world
        self._bodies: dict[int, bytes] = {}  # by request
        self._host: SimHost[ForwardTable] | None = None
        self._routes = Routes(self.process, self._nodes, PATIENCE_MS)

    @property
    def is_over(self) -> bool:
        return self._host is not None and self._host.machine.is_over

    @property
    def is_idle(self) -> bool:
        return self._host is not None and not self._host.machine.unsettled

    def start(self) -> None:
        self.process.say("begins")
        if self._plan.has_journal:
            self._open(self._writer.next_seq)
        else:
            self._ask_where_to_begin()
        self._submit_some()

    def _ask_where_to_begin(self) -> None:
        def answered(answer: Answer) -> None:
            assert isinstance(answer, WriterIs)
            assert answer.status is AppendStatus.OK, "refusals are repeated by the routing"
            self._open(max(1, answer.next_seq))

        def failed(trouble: Trouble) -> None:
            self.process.later(self._world.between(1, ASK_AGAIN_MS), self._ask_where_to_begin)

        self._routes.ask(GetWriter(LOG, self._writer.number, 0), answered, failed)

    def _open(self, first_seq: int) -> None:
        plan, writer = self._plan, self._writer
        identity = WriterIdentity(
            log=LOG, writer=writer.number, incarnation=self._life, is_ordered=plan.is_ordered
        )
        settings = ClientSettings(
            writer_window=plan.window_max,
            resend_timeout_ms=plan.resend_ms,
            attempt_timeout_ms=4 * plan.resend_ms,
            retry_pause_ms_min=5,
            writer_pause_ms_max=100,
        )
        self._host = host = SimHost(
            ForwardTable(identity, settings, first_seq),
            self.process,
            {
                Numbered: self._keep,
                Ask: self._send,
                FindAnotherSequencer: lambda effect: self._find(host),
                RenewIncarnation: lambda effect: self._renew(host),
                Reply: self._settled,
                GiveUp: lambda effect: self._given_up(effect.appended, host.machine),
            },
        )
        inherited = list(writer.kept.items()) if plan.has_journal else []
        for request, (seq, body) in sorted(inherited, key=lambda item: item[1][0]):
            self._bodies[request] = body
            host.feed(Resumed(request, Append(log=LOG, body=body, entries=1), seq))

    def _submit_some(self) -> None:
        plan, host = self._plan, self._host
        if self.is_over or self._writer.begun >= plan.appends:
            return
        if host is not None and host.machine.unsettled < plan.unsettled_max:
            for _ in range(self._world.between(1, plan.burst_max)):
                self._append_one(host)
        pause_ms = 5 if self._writer.is_hasty else plan.pause_ms_max
        self.process.later(self._world.between(1, pause_ms), self._submit_some)

    def append_some(self) -> None:
        if self._host is not None and not self.is_over:
            for _ in range(min(BURST, self._plan.appends - self._writer.begun)):
                self._append_one(self._host)

    def _append_one(self, host: SimHost[ForwardTable]) -> None:
        self._writer.begun += 1
        number, request = self._writer.number, self._writer.begun
        body = f"w{number}-{self._life}-{request}".encode()
        self._bodies[request] = body
        # An unordered process with a journal mixes inherited appends with its own, so they share one life.
        has_place = self._plan.is_ordered or not self._plan.has_journal
        life = self._life if has_place else 0
        self._ledger.tagged.made[body] = (number, self._plan.is_ordered, (life, request))
        host.feed(Asked(request, Append(log=LOG, body=body, entries=1)))

    def _keep(self, effect: Numbered) -> None:
        self._writer.kept[effect.id] = effect.seq, self._bodies[effect.id]
        self._writer.next_seq = max(self._writer.next_seq, effect.seq + 1)

    def _send(self, effect: Ask[Append]) -> None:
        assert self._host is not None, "the writer has its forward table"
        if effect.request.body not in self._ledger.attempts:
            self._ledger.sent(effect.request)
        self._host.send(effect)

    def _find(self, host: SimHost[ForwardTable]) -> None:
        """Asks for the sequencer. The answer may be wrong, or empty."""
        owner, rng = self._writer.cluster.owner, self._world.rng
        found = SequencerFound(rng.choice([owner, owner, rng.choice(self._nodes), None]))
        self.process.later(self._world.between(1, 20), lambda: host.feed(found))

    def _renew(self, host: SimHost[ForwardTable]) -> None:
        self._writer.incarnations += 1
        renewed = IncarnationRenewed(self._writer.incarnations)
        self.process.later(self._world.between(1, 20), lambda: host.feed(renewed))

    def _settled(self, effect: Reply[Appended]) -> None:
        body = self._bodies.pop(effect.id)
        self._writer.kept.pop(effect.id, None)
        if effect.answer.status in STORED:
            self.process.say(f"knows that {body.decode()} is at {effect.answer.lsn}")
            self._ledger.settled(body, effect.answer.lsn)

    def _given_up(self, appended: Appended, table: ForwardTable) -> None:
        self.process.say(f"gives up: {appended.status.value}")
        complain = self._writer.cluster.witness.complain
        is_fenced = appended.status is AppendStatus.FENCED
        if is_fenced and table.incarnation == self._writer.incarnations:
            complain(self.process.name, "fenced out without a successor")
        may_forget = self._ledger.trim_end or self._ledger.has_branched or self._plan.may_be_forgotten
        if not is_fenced and not may_forget:
            complain(self.process.name, "forgotten for no reason")
