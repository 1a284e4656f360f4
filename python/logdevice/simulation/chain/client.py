"""A client of a chain log: runs the chain append for each of its records and notes every outcome.

It dies now and then, in the middle of its work; then the sequencer must decide the open positions. Some
records it sends to the sequencer with their bodies. It follows redirects as the real client does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from logdevice.protocol.chain.append import (
    AskSequencer,
    ChainAppend,
    PositionRead,
    ReadPosition,
    SequencerAnswered,
)
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.cluster.routing import KnownSequencers, Trouble
from logdevice.protocol.io import Reply
from logdevice.protocol.messages.chain import Settle
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.simulation.chain.points import PointReads
from logdevice.simulation.chain.reading import read_position
from logdevice.simulation.cluster.client import RETRY_MS_MAX, SimClient
from logdevice.simulation.cluster.plan import ClientPlan
from logdevice.simulation.host import SimHost
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import Lsn

if TYPE_CHECKING:
    from logdevice.simulation.chain.cluster import ChainCluster

_REBIRTH_MS_MAX = 200


class ChainClient(SimClient):
    def __init__(self, name: str, plan: ClientPlan, cluster: ChainCluster) -> None:
        super().__init__(name, plan, cluster)
        self._cluster = cluster
        self._points = PointReads(self.process, cluster.witness, self.ask)
        self._looking_life = -1  # the life in which it reads single positions

    def start(self) -> None:
        if self._looking_life != self.process.life:
            self._looking_life = self.process.life
            self._points.start()
        super().start()

    def die(self) -> None:
        """Dies with records in flight. The next life goes on with the next records."""
        self.process.end_life("dies")
        self.process.is_up = True
        self._in_flight = 0
        self.routes.known = KnownSequencers()
        self.process.later(self._world.between(1, _REBIRTH_MS_MAX), self.start)

    def _try(self, number: int) -> None:
        plan = self._cluster.plan
        if self._world.chance(plan.plain_share):
            super()._try(number)
            return
        append = self.attempt(number, Append(log=LOG, body=b"", entries=self._world.between(1, 3)))
        machine = ChainAppend(
            append,
            self._world.rng.randrange(1, 1 << 40) << 8,
            store_timeout_ms=plan.store_timeout_ms,
            timeout_ms=self._plan.patience_ms,
        )
        host: SimHost[ChainAppend] = SimHost(
            machine,
            self.process,
            {
                AskSequencer: lambda effect: self.ask(
                    effect.request, lambda answer: host.feed(SequencerAnswered(answer))
                ),
                ReadPosition: lambda effect: self._read(host, effect.lsn),
                Reply: lambda effect: self._end(append, effect.answer),
            },
        )
        host.perform(machine.start(self.process.now_ms))

    def ask(self, question: Append | Settle, done: Callable[[Any], None]) -> None:
        """Asks the sequencer until it gets an answer. The machine's own deadline ends the append."""

        def failed(trouble: Trouble) -> None:
            self.process.later(self._world.between(1, RETRY_MS_MAX), partial(self.ask, question, done))

        self.routes.ask(question, done, failed)

    def _read(self, host: SimHost[ChainAppend], lsn: Lsn) -> None:
        def done(status: PointStatus) -> None:
            host.feed(PositionRead(lsn, status))

        read_position(self._cluster, self.process, lsn, done)

    def _end(self, append: Append, answer: Appended) -> None:
        if answer.status is AppendStatus.OK:
            self._seen_epoch = max(self._seen_epoch, answer.lsn.epoch)
            self._cluster.witness.acknowledging(append, answer)
        else:
            self.note(append, answer)
        self._in_flight -= 1
