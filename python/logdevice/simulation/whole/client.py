"""A client that appends: follows redirects, tries again what was refused, and writes down every outcome.

Each attempt has a body of its own, so that the log itself tells which attempts got in. What may or may
not be in the log is never sent again: that is for the application to decide, and this one lets it be.
"""

from __future__ import annotations

from logdevice.protocol.write_messages import Append, Appended, AppendStatus
from logdevice.simulation.whole.ledger import Ledger
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.plan import ClientPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.workload import LOG
from logdevice.types import Epoch, NodeId

RETRY_MS_MAX = 150
BURST = 8


class Client:
    def __init__(
        self, plan: ClientPlan, process: Process, *, nodes: list[NodeId], links: Links, ledger: Ledger
    ) -> None:
        self.process = process
        self.is_hasty = False  # no pauses any more
        self._plan = plan
        self._nodes = nodes
        self._links = links
        self._ledger = ledger
        self._world = process.world
        self._target = self._world.rng.choice(nodes)
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
        """Several at once, to a sequencer in trouble."""
        self._target = target
        for _ in range(min(BURST, self._plan.appends - self._begun)):
            self.append_one()

    def append_one(self) -> None:
        self._begun += 1
        self._in_flight += 1
        self._try(self._begun)

    def _try(self, number: int) -> None:
        self._attempts += 1
        body = f"{self.process.name}-{number}-{self._attempts}".encode() * self._world.between(1, 3)
        append = Append(log=LOG, body=body, entries=self._world.between(1, 3), seen_epoch=self._seen_epoch)
        self._ledger.sent(append)
        is_over = False

        def end_once() -> bool:
            nonlocal is_over
            was_over, is_over = is_over, True
            return not was_over

        def answered(answer: object) -> None:
            assert isinstance(answer, Appended)
            self._note(body, answer)
            if not end_once():
                return
            if answer.status in (AppendStatus.OK, AppendStatus.UNKNOWN):
                self._in_flight -= 1
            else:
                self._retry(number)

        def lost(was_sent: bool) -> None:
            self._target = self._world.rng.choice(self._nodes)
            if not was_sent:
                self._ledger.refused(body)
            if end_once():
                if was_sent:
                    self._in_flight -= 1
                else:
                    self._retry(number)

        def give_up() -> None:
            if end_once():
                self._target = self._world.rng.choice(self._nodes)
                self._in_flight -= 1

        self._links.ask(self.process, self._target, append, answered, lost)
        self.process.later(self._plan.patience_ms, give_up)

    def _note(self, body: bytes, answer: Appended) -> None:
        """An answer that comes after the client has lost its patience is as true as any."""
        match answer.status:
            case AppendStatus.OK:
                self._seen_epoch = max(self._seen_epoch, answer.lsn.epoch)
                self._ledger.acknowledged(body, answer.lsn)
            case AppendStatus.UNKNOWN:
                self._ledger.unknown(body)
            case _:
                self._ledger.refused(body)
                is_told = answer.node is not None
                self._target = answer.node if answer.node is not None else self._target
                if not is_told and self._world.chance(0.5):
                    self._target = self._world.rng.choice(self._nodes)

    def _retry(self, number: int) -> None:
        self.process.later(self._world.between(1, RETRY_MS_MAX), lambda: self._try(number))
