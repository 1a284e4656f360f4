"""A client of a chain log: runs the chain append for each of its records, and writes down every outcome.

It dies now and then, in the middle of whatever it does; what it was doing then is up to others. A share of
its records it sends to the sequencer as they are. It follows redirects the way the real client does.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.chain.append import (
    AppendRequest,
    AskPosition,
    AskSettled,
    ChainAppend,
    Effect,
    Event,
    Fail,
    Finish,
    PositionIssued,
    PositionRead,
    PositionSettled,
    ReadOutcome,
    ReadPosition,
    StoredAt,
    StoreLost,
)
from logdevice.protocol.chain.events import SendChain
from logdevice.protocol.chain.messages import (
    ChainStored,
    Issued,
    Locate,
    Located,
    Next,
    Settle,
    Settled,
    SettleStatus,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.points import PointReads
from logdevice.simulation.chain.reading import PositionReads
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.whole.client import BURST, RETRY_MS_MAX, Client
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.plan import ClientPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.workload import LOG
from logdevice.types import Lsn, NodeId

_ELSEWHERE = {
    AppendStatus.REDIRECTED,
    AppendStatus.PREEMPTED,
    AppendStatus.NO_SEQUENCER,
    AppendStatus.OVERLOADED,
    AppendStatus.TOO_FEW_NODES,
    SettleStatus.REDIRECTED,
    SettleStatus.NO_SEQUENCER,
}
_REBIRTH_MS_MAX = 200


class ChainClient(Client):
    def __init__(
        self,
        plan: ClientPlan,
        process: Process,
        *,
        nodes: list[NodeId],
        links: Links,
        witness: ChainWitness,
        chain_plan: ChainPlan,
        reads: PositionReads,
    ) -> None:
        super().__init__(plan, process, nodes=nodes, links=links, ledger=witness.ledger)
        self._witness = witness
        self._chain_plan = chain_plan
        self._reads = reads
        self._points = PointReads(process, links, witness, self.ask)
        self._looking_life = -1  # in which it looks at positions

    def start(self) -> None:
        if self._looking_life != self.process.life:
            self._looking_life = self.process.life
            self._points.start()
        super().start()

    def die(self) -> None:
        """Everything in flight is left as it is; the next life goes on with the next records."""
        self._world.say(self.process.name, "dies")
        self.process.end_life()
        self._links.died(self.process)
        self.process.is_up = True
        self._in_flight = 0
        self.process.later(self._world.between(1, _REBIRTH_MS_MAX), self.start)

    def append_some(self, target: NodeId) -> None:
        self._target = target
        for _ in range(min(BURST, self._plan.appends - self._begun)):
            self.append_one()

    def _try(self, number: int) -> None:
        if self._world.chance(self._chain_plan.plain_share):
            super()._try(number)
            return
        self._attempts += 1
        body = f"{self.process.name}-{number}-{self._attempts}".encode() * self._world.between(1, 3)
        append = Append(log=LOG, body=body, entries=self._world.between(1, 3))
        self._ledger.sent(append)
        _Driven(self, append).start()

    def _note(self, body: bytes, answer: Appended) -> None:
        if answer.status is AppendStatus.TOO_FEW_NODES:
            self._ledger.refused(body)
        super()._note(body, answer)

    def ended(self) -> None:
        self._in_flight -= 1

    def ask(
        self, question: Next | Settle | Locate, done: Callable[[Issued | Settled | Located], None]
    ) -> None:
        """Until somebody answers for good; the machine's own deadline ends what nobody answers."""
        is_over = False

        def again() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                pause_ms = self._world.between(1, RETRY_MS_MAX)
                self.process.later(pause_ms, lambda: self.ask(question, done))

        def answered(answer: object) -> None:
            nonlocal is_over
            assert isinstance(answer, Issued | Settled | Located)
            if answer.status in _ELSEWHERE:
                if answer.node is not None:
                    self._target = answer.node
                elif self._world.chance(0.5):
                    self._target = self._world.rng.choice(self._nodes)
                again()
            elif not is_over:
                is_over = True
                done(answer)

        def lost(was_sent: bool) -> None:
            self._target = self._world.rng.choice(self._nodes)
            again()

        self._links.ask(self.process, self._target, question, answered, lost)
        self.process.later(self._plan.patience_ms // 2, again)


class _Driven:
    """One append and its machine."""

    def __init__(self, client: ChainClient, append: Append) -> None:
        self._client = client
        self._append = append
        plan = client._chain_plan
        token = client._world.rng.randrange(1, 1 << 40)
        client._witness.asking(token, append)
        self._machine = ChainAppend(
            AppendRequest(
                log=LOG,
                token=token << 8,
                body=append.body,
                entries=append.entries,
                seen_epoch=client._seen_epoch,
                store_timeout_ms=plan.store_timeout_ms,
                timeout_ms=client._plan.patience_ms,
            )
        )

    def start(self) -> None:
        self._perform(self._machine.start(self._client.process.now_ms))

    def _feed(self, event: Event) -> None:
        self._perform(self._machine.handle(event, self._client.process.now_ms))

    def _perform(self, effects: list[Effect]) -> None:
        process = self._client.process
        life = process.life
        for effect in effects:
            if process.life != life:
                return
            match effect:
                case AskPosition():
                    self._client.ask(effect.next, self._take_issued)
                case AskSettled():
                    self._client.ask(effect.settle, self._take_settled)
                case SendChain():
                    self._send(effect)
                case ReadPosition():
                    self._read(effect.lsn)
                case Finish():
                    self._finish(effect)
                case Fail():
                    self._fail(effect)
                case WakeAt():
                    process.wake_at(effect.time_ms, lambda: self._feed(Woken()))

    def _take_issued(self, issued: Issued | Settled | Located) -> None:
        assert isinstance(issued, Issued)
        self._feed(PositionIssued(issued))

    def _take_settled(self, settled: Issued | Settled | Located) -> None:
        assert isinstance(settled, Settled)
        self._feed(PositionSettled(settled))

    def _read(self, lsn: Lsn) -> None:
        def done(outcome: ReadOutcome) -> None:
            self._feed(PositionRead(lsn, outcome))

        self._client._reads.read(self._client.process, lsn, done)

    def _send(self, effect: SendChain) -> None:
        node, lsn = effect.node, effect.request.lsn

        def done(answer: object) -> None:
            assert isinstance(answer, ChainStored)
            self._feed(StoredAt(node, answer))

        self._client._links.ask(
            self._client.process,
            node,
            effect.request,
            done,
            lambda was_sent: self._feed(StoreLost(node, lsn)),
        )

    def _finish(self, finish: Finish) -> None:
        client = self._client
        client._seen_epoch = max(client._seen_epoch, finish.lsn.epoch)
        appended = Appended(log=LOG, status=AppendStatus.OK, lsn=finish.lsn, timestamp_ms=finish.timestamp_ms)
        client._witness.acknowledging(self._append, appended)
        client.ended()

    def _fail(self, fail: Fail) -> None:
        if fail.status is AppendStatus.UNKNOWN:
            self._client._ledger.unknown(self._append.body)
        else:
            self._client._ledger.refused(self._append.body)
        self._client.ended()
