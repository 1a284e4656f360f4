"""One node of a cluster with a chain log: the plain one, with the chain's sequencer and its messages."""

from __future__ import annotations

import random
from collections.abc import Callable

from logdevice.protocol.chain.events import (
    AnswerLocate,
    AnswerNext,
    AnswerSettle,
    ChainAnswered,
    ChainEvent,
    ChainUnanswered,
    CompletedReceived,
    LocateReceived,
    NextReceived,
    SendChain,
    SettleReceived,
)
from logdevice.protocol.chain.messages import (
    ChainCompleted,
    ChainCopy,
    ChainStored,
    Issued,
    Locate,
    Located,
    Next,
    Settle,
    Settled,
)
from logdevice.protocol.chain.sequencer import ChainSequencer
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.log_state_events import Effect as StorageEffect
from logdevice.protocol.log_state_events import ReportCompleted
from logdevice.protocol.sequencer_events import Effect, Event, SequencerConfig
from logdevice.protocol.write_messages import AppendStatus
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.network import Network
from logdevice.simulation.whole.links import Links, Question, Reply
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.node import Node
from logdevice.simulation.whole.sequencing import Sequencing
from logdevice.simulation.whole.storage import Storage
from logdevice.simulation.workload import LOG
from logdevice.simulation.world import World
from logdevice.types import NodeId

_Answer = Callable[[Issued | Settled | Located], None]


class ChainSequencing(Sequencing):
    """The sequencer half, with positions."""

    def __init__(
        self,
        node: NodeId,
        plan: ChainPlan,
        base: Node,
        *,
        links: Links,
        metadata: Metadata,
        witness: ChainWitness,
    ) -> None:
        super().__init__(
            node,
            base.process,
            plan.write_settings,
            plan.recovery_settings,
            plan.reading.locations,
            links=links,
            metadata=metadata,
            witness=witness,
            crash=base.crash,
        )
        self._plan = plan
        self._chain_witness = witness
        self._questions: dict[int, _Answer] = {}

    def boot(self, config: SequencerConfig) -> None:
        super().boot(config)
        rng = random.Random(self._process.world.rng.random())
        settings = self._plan.chain_settings
        self.machine = ChainSequencer(LOG, self._node, config, self._write_settings, rng, settings)
        self._questions.clear()

    def question(self, question: Next | Settle | Locate, reply: _Answer) -> None:
        self._asked += 1
        self._questions[self._asked] = reply
        if isinstance(question, Next):
            self._chain_witness.position_asked(question)
            self.feed(NextReceived(self._asked, question))
        elif isinstance(question, Locate):
            self.feed(LocateReceived(self._asked, question))
        else:
            self.feed(SettleReceived(self._asked, question))

    def feed(self, event: Event | ChainEvent) -> None:
        super().feed(event)  # type: ignore[arg-type]

    def _perform(self, effect: Effect) -> None:
        match effect:
            case AnswerNext():
                if effect.issued.position is not None:
                    self._chain_witness.position_given(effect.issued.position.lsn)
                self._questions.pop(effect.request_id)(effect.issued)
            case AnswerSettle():
                self._questions.pop(effect.request_id)(effect.settled)
            case AnswerLocate():
                self._questions.pop(effect.request_id)(effect.located)
            case SendChain():
                self._chain_witness.position_given(effect.request.lsn)
                self._send_chain(effect)
            case AnswerAppend() if effect.appended.status is AppendStatus.TOO_FEW_NODES:
                _, reply = self._appends.pop(effect.request_id)
                reply(effect.appended)
            case _:
                super()._perform(effect)

    def _send_chain(self, effect: SendChain) -> None:
        node, lsn = effect.node, effect.request.lsn

        def done(answer: object) -> None:
            assert isinstance(answer, ChainStored | ChainCopy)
            self.feed(ChainAnswered(node, answer))

        self._links.ask(
            self._process, node, effect.request, done, lambda was_sent: self.feed(ChainUnanswered(node, lsn))
        )


class ChainStorage(Storage):
    """The storage half: the tail of a chain reports to the sequencer."""

    def _perform(self, effect: StorageEffect) -> None:
        if isinstance(effect, ReportCompleted):
            self._links.ask(self._process, effect.sequencer, effect.completed)
        else:
            super()._perform(effect)


class ChainNode(Node):
    def __init__(
        self,
        node: NodeId,
        plan: ChainPlan,
        *,
        world: World,
        network: Network,
        links: Links,
        metadata: Metadata,
        witness: ChainWitness,
    ) -> None:
        super().__init__(
            node, plan, world=world, network=network, links=links, metadata=metadata, witness=witness
        )
        self.storage = ChainStorage(
            node,
            self.process,
            self.store,
            plan.recovery_settings,
            streams=self.streams,
            links=links,
            metadata=metadata,
            witness=witness,
            crash=self.crash,
        )
        self.sequencing: ChainSequencing = ChainSequencing(
            node, plan, self, links=links, metadata=metadata, witness=witness
        )

    def receive(self, question: Question, reply: Reply) -> None:
        match question:
            case Next() | Settle() | Locate():
                self.sequencing.question(question, reply)
            case ChainCompleted():
                self.sequencing.feed(CompletedReceived(question))
            case _:
                super().receive(question, reply)
