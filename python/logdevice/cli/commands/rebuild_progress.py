"""Computes how far a rebuilding or draining is, and how long it will still take.

The event log says which nodes are rebuilt and how many donors are done. Each donor says how much of its own
part is done, and how long that took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from logdevice.cli.output import counted
from logdevice.cli.progress import bar
from logdevice.protocol.messages.service import NodeState, NodeStatus
from logdevice.protocol.rebuilding.node_status import CaseMode

_SHARE: Final = "logdevice_rebuild_share"
_ELAPSED: Final = "logdevice_rebuild_elapsed_seconds"
_SHARE_TOLD_MIN: Final = 0.02  # with less than this done, the time for the rest cannot be estimated
_WORDS: Final = {
    CaseMode.RESTORE: "restoring",
    CaseMode.DRAIN: "draining",
    CaseMode.CHECK: "final check after restoring",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildProgress:
    """The progress of all rebuildings and drainings together."""

    what: str  # the kind of work, and for which nodes
    share: float  # of the work that is done: 0 to 1, averaged over the donors that answer
    left_s: float | None  # until the last donor is done; None while it is too early to tell
    donors: int
    donors_done: int

    @property
    def plain(self) -> dict[str, object]:
        return {
            "what": self.what,
            "share": round(self.share, 4),
            "seconds_left": None if self.left_s is None else round(self.left_s, 1),
            "donors": self.donors,
            "donors_done": self.donors_done,
        }

    @property
    def line(self) -> str:
        donors = f"{self.donors_done} of {counted(self.donors, 'node', 'nodes')} done"
        return f"{self.what}: {bar(self.share, self.left_s)}; {donors}"


def progress_of(states: Sequence[NodeState], statuses: Iterable[NodeStatus | None]) -> RebuildProgress | None:
    """The progress; None if there is nothing to copy. `statuses` are those of the storage nodes."""
    open_states = [state for state in states if not state.is_settled]
    if not open_states:
        return None
    metrics = [json.loads(status.metrics) for status in statuses if status is not None]
    parts = [(float(each.get(_SHARE, 1.0)), float(each.get(_ELAPSED, 0.0))) for each in metrics]
    lefts = [_left_s(share, elapsed_s) for share, elapsed_s in parts if share < 1]
    known = [left_s for left_s in lefts if left_s is not None]
    return RebuildProgress(
        what=", ".join(f"{_WORDS[state.mode]} {state.node}" for state in open_states),
        share=sum(share for share, _ in parts) / len(parts) if parts else 0.0,
        left_s=max(known) if known and len(known) == len(lefts) else None,
        donors=open_states[0].donors,
        donors_done=open_states[0].donors_done,
    )


def _left_s(share: float, elapsed_s: float) -> float | None:
    """The seconds left at the present speed; None while it is too early to tell."""
    return elapsed_s * (1 - share) / share if share > _SHARE_TOLD_MIN else None
