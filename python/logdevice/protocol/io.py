"""The six kinds of events and effects that carry messages between machines.

A request comes in as `Asked` and is answered by `Reply` with the same id. A machine sends a request with
`Ask`; that ends in `Answered`, in `Lost`, or in silence that a deadline of the machine covers. `Tell` is a
message without an answer. The messages are those of `messages/`. A machine has events and effects of its own
only for what is not a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from logdevice.types import NodeId

Message = TypeVar("Message", covariant=True)
Answer = TypeVar("Answer", covariant=True)


class Machine(Protocol):
    """A state machine, as its host calls it."""

    def handle(self, event: Any, now_ms: int) -> list[Any]: ...


class Request(Generic[Answer]):
    """A message that is answered by messages of one kind, which its class names."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Asked(Generic[Message]):
    """Event: a request has come in. The shell chose the id, and finds the asking process by it again."""

    id: int
    request: Message


@dataclass(frozen=True, slots=True)
class Reply(Generic[Message]):
    """Effect: the answer to the request with this id."""

    id: int
    answer: Message


@dataclass(frozen=True, slots=True)
class Ask(Generic[Message]):
    """Effect: send a request. Ends in Answered, Lost or silence.

    `id` comes back in Answered or Lost, for machines whose answers do not name their request.
    """

    node: NodeId
    request: Message
    id: int = 0


@dataclass(frozen=True, slots=True)
class Answered(Generic[Message]):
    """Event: a node has answered."""

    node: NodeId
    answer: Message
    id: int = 0


@dataclass(frozen=True, slots=True)
class Lost(Generic[Message]):
    """Event: the node will not answer this request. It may have done what it was asked, if it `was_sent`."""

    node: NodeId
    request: Message
    was_sent: bool = True
    id: int = 0


@dataclass(frozen=True, slots=True)
class Tell(Generic[Message]):
    """Effect: send a message that has no answer. It is dropped if it cannot be sent soon."""

    node: NodeId
    message: Message
