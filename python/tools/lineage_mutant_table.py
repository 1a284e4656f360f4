"""The rules of lineage.md that `mutants.py` breaks, one at a time."""

from __future__ import annotations

from tools.mutant_table import PROTOCOL, Mutant, Part


def _mutant(rule: str, why: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(rule, why, PROTOCOL + file, old, new, Part.LINEAGE)


LINEAGE_MUTANTS = [
    _mutant(
        "L22",
        "the version counts only the branches that are kept",
        "lineage.py",
        "return self.dropped + len(self.branches)",
        "return len(self.branches)",
    ),
    _mutant(
        "L23",
        "only the next newer branch counts, not a later one that goes further back",
        "lineage.py",
        "for newer in self.branches[index + 1 :])])",
        "for newer in self.branches[index + 1 : index + 2])])",
    ),
    _mutant(
        "L26",
        "an id that is not known is accepted",
        "lineage.py",
        "    if upper is None:  # L26\n        return LSN_OLDEST",
        "    if upper is None:  # L26\n        return None",
    ),
    _mutant(
        "L27",
        "a rollback ends inside of a snapshot",
        "lineage.py",
        "return min(upper, snapshot_start)  # L27",
        "return upper  # L27",
    ),
    _mutant(
        "L29",
        "a recovery without authority keeps the lineage",
        "log_recovery.py",
        "if recovering.doubtful_from is None:",
        "if True:",
    ),
    _mutant(
        "L29",
        "a branch begins where the recovery ended",
        "epoch_recovery.py",
        ">= self._epoch_end else self._start\n",
        ">= self._epoch_end else self._epoch_end\n",
    ),
    _mutant(
        "L30",
        "nodes are given up without a branch",
        "lost_history.py",
        "        if quorum.answer() is Answer.NON_AUTHORITATIVE:\n",
        "        if quorum.answer() is Answer.NONE:\n",
    ),
    _mutant(
        "L30",
        "only the newest nodeset is looked at when nodes are given up",
        "lost_history.py",
        "    for entry in history:\n",
        "    for entry in list(history)[-1:]:\n",
    ),
    _mutant(
        "L31",
        "every recovery branches the history",
        "log_recovery.py",
        "            return lineage  # L31\n",
        "            recovering.doubtful_from = Lsn.of(recovering.epoch, 1)\n",
    ),
]
