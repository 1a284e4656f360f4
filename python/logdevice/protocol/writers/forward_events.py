"""What a writer's forward table is told and what it orders: its whole interface on one screen.

An append comes in as `Asked`, without a tag. Its `Reply` says that it is in the log (STORED), at LSN 0 if it
got there so long ago that the log forgot where; or that it is not and cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus
from logdevice.types import LogId, Lsn, NodeId

STORED: Final = (AppendStatus.OK, AppendStatus.DUPLICATE)


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
class Resumed:
    """An earlier process of the writer has given this append its number and may have sent it."""

    id: int  # as of Asked
    append: Append
    seq: int


@dataclass(frozen=True, slots=True)
class SequencerFound:
    """None: nobody can be asked now."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class IncarnationRenewed:
    """Nobody got this number before."""

    incarnation: int


Event = (
    Asked[Append] | Resumed | Answered[Appended] | Lost[Append] | SequencerFound | IncarnationRenewed | Woken
)


@dataclass(frozen=True, slots=True)
class Numbered:
    """The append has this number (now). Whoever keeps the table on a disk does so before anything is sent."""

    id: int
    seq: int


@dataclass(frozen=True, slots=True)
class FindSequencer:
    """Ends in SequencerFound. `doubted` did not answer, or not as a sequencer."""

    doubted: NodeId | None


@dataclass(frozen=True, slots=True)
class RenewIncarnation:
    """The log has forgotten the writer, and who was fenced off. Ends in IncarnationRenewed."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The writer may not go on; what is not answered is for the writer's next process."""

    appended: Appended


Effect = Numbered | Ask[Append] | FindSequencer | RenewIncarnation | Reply[Appended] | GiveUp | WakeAt
