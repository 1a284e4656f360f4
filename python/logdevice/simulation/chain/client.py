"""A client of a chain log: runs the chain append for each of its records, and writes down every outcome.

It dies now and then, in the middle of whatever it does; what it was doing then is up to others. A share of
its records it sends to the sequencer as they are. It follows redirects the way the real client does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from logdevice.protocol.chain.append import (
    AskSequencer,
    ChainAppend,
    Effect,
    Event,
    PositionRead,
    ReadPosition,
    SequencerAnswered,
)
from logdevice.protocol.chain.messages import Settle
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.io import Answered, Ask, Lost, Reply
from logdevice.protocol.routing import Sequencers, Trouble
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus, Store, Stored
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.points import PointReads
from logdevice.simulation.chain.reading import PositionReads
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.whole.client import RETRY_MS_MAX, Client
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.plan import ClientPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.workload import LOG
from logdevice.types import Lsn, NodeId

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
        self.routes.known = Sequencers()
        self.process.later(self._world.between(1, _REBIRTH_MS_MAX), self.start)

    def _try(self, number: int) -> None:
        if self._world.chance(self._chain_plan.plain_share):
            super()._try(number)
            return
        self._attempts += 1
        body = f"{self.process.name}-{number}-{self._attempts}".encode() * self._world.between(1, 3)
        append = Append(log=LOG, body=body, entries=self._world.between(1, 3))
        self._ledger.sent(append)
        _Driven(self, append).start()

    def ended(self) -> None:
        self._in_flight -= 1

    def ask(self, question: Append | Settle, done: Callable[[Any], None]) -> None:
        """Until there is an answer for good; the machine's own deadline ends what no node answers."""

        def failed(trouble: Trouble) -> None:
            self.process.later(self._world.between(1, RETRY_MS_MAX), lambda: self.ask(question, done))

        self.routes.ask(question, done, failed)


class _Driven:
    """One append and its machine."""

    def __init__(self, client: ChainClient, append: Append) -> None:
        self._client = client
        self._append = append
        plan = client._chain_plan
        token = client._world.rng.randrange(1, 1 << 40)
        self._machine = ChainAppend(
            replace(append, seen_epoch=client._seen_epoch),
            token << 8,
            store_timeout_ms=plan.store_timeout_ms,
            timeout_ms=client._plan.patience_ms,
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
                case AskSequencer():
                    self._client.ask(effect.request, lambda answer: self._feed(SequencerAnswered(answer)))
                case Ask():
                    self._send(effect)
                case ReadPosition():
                    self._read(effect.lsn)
                case Reply():
                    self._end(effect.answer)
                case WakeAt():
                    process.wake_at(effect.time_ms, lambda: self._feed(Woken()))

    def _read(self, lsn: Lsn) -> None:
        def done(status: PointStatus) -> None:
            self._feed(PositionRead(lsn, status))

        self._client._reads.read(self._client.process, lsn, done)

    def _send(self, effect: Ask[Store]) -> None:
        node, request = effect.node, effect.request

        def answered(answer: object) -> None:
            assert isinstance(answer, Stored)
            self._feed(Answered(node, answer))

        self._client._links.ask(
            self._client.process,
            node,
            request,
            answered,
            lambda was_sent: self._feed(Lost(node, request, was_sent)),
        )

    def _end(self, answer: Appended) -> None:
        client, body = self._client, bytes(self._append.body)
        if answer.status is AppendStatus.OK:
            client._seen_epoch = max(client._seen_epoch, answer.lsn.epoch)
            client._witness.acknowledging(self._append, answer)
        elif answer.status is AppendStatus.UNKNOWN:
            client._ledger.unknown(body)
        else:
            client._ledger.refused(body)
        client.ended()
