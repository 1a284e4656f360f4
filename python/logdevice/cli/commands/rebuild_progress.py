"""How far the nodes are with copying what lost or leaving nodes hold, and how long that will take.

Put together from the event log, which says for whom and how many donors are done, and from what each
donor says of its own part: how much of it is done, and for how long it has been at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from logdevice.cli.progress import bar
from logdevice.protocol.messages.service import NodeState, NodeStatus
from logdevice.protocol.rebuilding.node_status import CaseMode

_SHARE: Final = "logdevice_rebuild_share"
_ELAPSED: Final = "logdevice_rebuild_elapsed_seconds"
_SHARE_TOLD_MIN: Final = 0.02  # with less behind it, nobody can tell how long the rest will take
_WORDS: Final = {
    CaseMode.RESTORE: "restoring",
    CaseMode.DRAIN: "draining",
    CaseMode.CHECK: "a last look after restoring",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildProgress:
    what: str  # is done, for which nodes
    share: float  # 0 to 1, on average over the donors that answer
    left_s: float | None  # until the last of them is through; None: it is too early to tell
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
        donors = f"{self.donors_done} of {self.donors} nodes are through"
        return f"{self.what}: {bar(self.share, self.left_s)}; {donors}"


def progress_of(states: Sequence[NodeState], statuses: Iterable[NodeStatus | None]) -> RebuildProgress | None:
    """None if there is nothing to copy. `statuses` are those of the storage nodes."""
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
    """If it goes on like this."""
    return elapsed_s * (1 - share) / share if share > _SHARE_TOLD_MIN else None
