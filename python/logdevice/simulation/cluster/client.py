"""A client that appends: it follows redirects, repeats refused appends, and notes every outcome.

Each attempt has its own body, so that the log shows which attempts got in. An append whose outcome is unknown
is never sent again: that is for the application to decide, and this application does not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from logdevice.protocol.cluster.routing import Answer, Trouble
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.simulation.cluster.plan import ClientPlan
from logdevice.simulation.cluster.routes import Routes
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import Epoch, NodeId

if TYPE_CHECKING:
    from logdevice.simulation.cluster.cluster import WholeCluster

RETRY_MS_MAX = 150
BURST = 8


class SimClient:
    def __init__(self, name: str, plan: ClientPlan, cluster: WholeCluster) -> None:
        self.process = SimProcess(name, cluster.network)
        self.is_hasty = False  # appends without pauses
        self._plan = plan
        self._ledger = cluster.ledger
        self._world = cluster.world
        self.routes = Routes(self.process, list(cluster.nodes), plan.patience_ms)
        self._seen_epoch = Epoch(0)
        self._begun = 0
        self._in_flight = 0
        self._attempts = 0

    @property
    def is_done(self) -> bool:
        return self._begun >= self._plan.appends and not self._in_flight

    def start(self) -> None:
        if self._begun < self._plan.appends:
            wanted = min(self._world.between(1, self._plan.burst_max), self._plan.appends - self._begun)
            for _ in range(min(wanted, self._plan.in_flight_max - self._in_flight)):
                self.append_one()
            pause_ms = 5 if self.is_hasty else self._plan.pause_ms_max
            self.process.later(self._world.between(0, pause_ms), self.start)

    def append_some(self, target: NodeId) -> None:
        """Appends several records at once, to a sequencer that is about to crash."""
        self.routes.known.learn(LOG, target)
        for _ in range(min(BURST, self._plan.appends - self._begun)):
            self.append_one()

    def append_one(self) -> None:
        self._begun += 1
        self._in_flight += 1
        self._try(self._begun)

    def _try(self, number: int) -> None:
        append = Append(log=LOG, body=b"", entries=self._world.between(1, 3))

        def done(answer: Answer) -> None:
            assert isinstance(answer, Appended)
            if answer.status in (AppendStatus.OK, AppendStatus.UNKNOWN):
                self._in_flight -= 1
            else:
                self._retry(number)

        def failed(trouble: Trouble) -> None:
            if trouble is Trouble.OPEN:
                self._in_flight -= 1
            else:
                self._retry(number)

        spell = partial(self.attempt, number)
        self.routes.ask(append, done, failed, is_repeatable=False, spell=spell, note=self.note)

    def attempt(self, number: int, append: Append) -> Append:
        """The append as it is sent this time, with its own body."""
        self._attempts += 1
        body = f"{self.process.name}-{number}-{self._attempts}".encode() * self._world.between(1, 3)
        append = replace(append, body=body, seen_epoch=self._seen_epoch)
        self._ledger.sent(append)
        return append

    def note(self, sent: Append, answer: Appended | None) -> None:
        """Notes the outcome of one attempt. No answer: it was never sent."""
        body = bytes(sent.body)
        if answer is None or answer.status not in (AppendStatus.OK, AppendStatus.UNKNOWN):
            self._ledger.refused(body)
        elif answer.status is AppendStatus.UNKNOWN:
            self._ledger.unknown(body)
        else:
            self._seen_epoch = max(self._seen_epoch, answer.lsn.epoch)
            self._ledger.acknowledged(body, answer.lsn)

    def _retry(self, number: int) -> None:
        self.process.later(self._world.between(1, RETRY_MS_MAX), lambda: self._try(number))
