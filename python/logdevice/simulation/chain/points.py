"""Reads single positions near the end of the log, or has them settled, and checks the answers.

A part of a chain client, for one life. If only the log itself can answer, it does not read the log: readers
do that all the time.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.chain.point_read import AskTail, PointIs, ReadLog, copied, located
from logdevice.protocol.messages.chain import ChainCopy, ChainRead, Settle, Settled
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import Epoch, Lsn

_BACK_MAX = 6
_BEYOND_MAX = 1
_PAUSE_MS_MAX = 300
_SETTLED_SHARE = 0.2

Ask = Callable[[Settle, Callable[[Settled], None]], None]


class PointReads:
    """Reads positions now and then. `ask` sends a request to the sequencer."""

    def __init__(self, process: SimProcess, witness: ChainWitness, ask: Ask) -> None:
        self._process = process
        self._world = process.world
        self._witness = witness
        self._ask = ask

    def start(self) -> None:
        self._process.later(self._world.between(1, _PAUSE_MS_MAX), self._look)

    def _look(self) -> None:
        self.start()
        highest = max(self._witness.issued.values(), default=None)
        if highest is None:
            return
        lsn = Lsn(max(1, highest + _BEYOND_MAX - self._world.between(0, _BACK_MAX)))
        if self._world.chance(_SETTLED_SHARE):
            self._settle(lsn)
            return
        was_promised = lsn in self._witness.ledger.promised
        # A client that knows of the record has seen its epoch. Then no outdated sequencer may answer.
        seen_epoch = lsn.epoch if was_promised else Epoch(0)

        def told(answer: Settled) -> None:
            step = located(answer)
            if isinstance(step, AskTail):
                self._ask_tail(step, lsn, was_promised)
            else:
                self._end(step, lsn, was_promised)

        self._ask(Settle(log=LOG, lsn=lsn, decide=False, seen_epoch=seen_epoch), told)

    def _settle(self, lsn: Lsn) -> None:
        def told(answer: Settled) -> None:
            self._process.say(f"is told that {lsn} is {answer.fate.value}")
            self._witness.settled(answer)

        self._ask(Settle(log=LOG, lsn=lsn), told)

    def _ask_tail(self, step: AskTail, lsn: Lsn, was_promised: bool) -> None:
        def answered(answer: ChainCopy) -> None:
            self._end(copied(answer), lsn, was_promised)

        self._process.network.ask(self._process, step.node, ChainRead(LOG, lsn), answered)

    def _end(self, step: ReadLog | PointIs, lsn: Lsn, was_promised: bool) -> None:
        if isinstance(step, PointIs):
            self._process.say(f"finds {step.status.value} at {lsn}")
            self._witness.point_read(lsn, step, was_promised=was_promised)
