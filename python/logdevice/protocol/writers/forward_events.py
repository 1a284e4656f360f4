"""What a writer's forward table is told and what it orders: its whole interface on one screen."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended
from logdevice.types import LogId, Lsn, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterIdentity:
    log: LogId
    writer: int
    incarnation: int
    is_ordered: bool = True
    since: Lsn = Lsn(0)  # a position of the log that is not younger than the writer's first append here


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardLimits:
    window_max: int  # appends on their way
    resend_ms_min: int  # without an answer, before they are sent again; it doubles
    resend_ms_max: int
    pause_ms_min: int  # after a refusal; it doubles
    pause_ms_max: int


@dataclass(frozen=True, slots=True)
class Submitted:
    """A new append. `seq`: an earlier process of the writer has numbered it and may have sent it."""

    ticket: int  # the shell's
    body: bytes
    entries: int
    seq: int | None = None
    written_ms: int = 0  # of a record that is restored (L37)


@dataclass(frozen=True, slots=True)
class AnswerReceived:
    seq: int
    send_id: int
    appended: Appended


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """The connection broke, or could not be made."""

    seq: int
    send_id: int


@dataclass(frozen=True, slots=True)
class SequencerFound:
    """None: nobody can be asked now."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class IncarnationRenewed:
    """Nobody got this number before."""

    incarnation: int


Event = Submitted | AnswerReceived | AnswerLost | SequencerFound | IncarnationRenewed | Woken


@dataclass(frozen=True, slots=True)
class Numbered:
    """The append has this number (now). Whoever keeps the table on a disk does so before anything is sent."""

    ticket: int
    seq: int


@dataclass(frozen=True, slots=True)
class SendAppend:
    """Ends in AnswerReceived, AnswerLost or silence."""

    seq: int
    send_id: int
    node: NodeId
    append: Append


@dataclass(frozen=True, slots=True)
class FindSequencer:
    """Ends in SequencerFound. `doubted` did not answer, or not as a sequencer."""

    doubted: NodeId | None


@dataclass(frozen=True, slots=True)
class RenewIncarnation:
    """The log has forgotten the writer, and who was fenced off. Ends in IncarnationRenewed."""


@dataclass(frozen=True, slots=True)
class Settle:
    """The append is in the log; `lsn` is 0 if it got there so long ago that the log forgot where."""

    ticket: int
    lsn: Lsn


@dataclass(frozen=True, slots=True)
class Refuse:
    """The append is not in the log and cannot be."""

    ticket: int
    appended: Appended


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The writer may not go on; what was not settled is up to somebody else."""

    appended: Appended


Effect = Numbered | SendAppend | FindSequencer | RenewIncarnation | Settle | Refuse | GiveUp | WakeAt
