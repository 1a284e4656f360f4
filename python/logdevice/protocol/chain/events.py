"""What the sequencer of a chain log is told and orders, beyond what every sequencer does."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.chain.messages import (
    ChainAnswer,
    ChainCompleted,
    ChainRequest,
    Issued,
    Locate,
    Located,
    Next,
    Settle,
    Settled,
)
from logdevice.types import Lsn, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainConfig:
    """That a log is written along chains, and how."""

    chains: int = 1  # at a time; positions go round
    min_copies: int = 1  # no chain is shorter


@dataclass(frozen=True, slots=True)
class NextReceived:
    request_id: int
    next: Next


@dataclass(frozen=True, slots=True)
class SettleReceived:
    request_id: int
    settle: Settle


@dataclass(frozen=True, slots=True)
class LocateReceived:
    request_id: int
    locate: Locate


@dataclass(frozen=True, slots=True)
class ChainAnswered:
    node: NodeId
    answer: ChainAnswer


@dataclass(frozen=True, slots=True)
class ChainUnanswered:
    """The connection broke, or could not be made: the node will not answer about this position."""

    node: NodeId
    lsn: Lsn


@dataclass(frozen=True, slots=True)
class CompletedReceived:
    completed: ChainCompleted


ChainEvent = (
    NextReceived | SettleReceived | LocateReceived | ChainAnswered | ChainUnanswered | CompletedReceived
)


@dataclass(frozen=True, slots=True)
class AnswerNext:
    request_id: int
    issued: Issued


@dataclass(frozen=True, slots=True)
class AnswerSettle:
    request_id: int
    settled: Settled


@dataclass(frozen=True, slots=True)
class AnswerLocate:
    request_id: int
    located: Located


@dataclass(frozen=True, slots=True)
class SendChain:
    """Ends in ChainAnswered, ChainUnanswered or silence."""

    node: NodeId
    request: ChainRequest


ChainEffect = AnswerNext | AnswerSettle | AnswerLocate | SendChain
