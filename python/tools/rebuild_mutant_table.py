"""The rules of rebuilding.md that `mutants.py` breaks, one at a time."""

from __future__ import annotations

from tools.mutant_table import PROTOCOL, Mutant, Part


def _mutant(rule: str, why: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(rule, why, PROTOCOL + file, old, new, Part.REBUILDING)


REBUILD_MUTANTS = [
    _mutant(
        "P66",
        "a node that serves readers does not rest",
        "copy_budget.py",
        "        if self.is_serving:\n",
        "        if not self.is_serving:\n",
    ),
    _mutant(
        "P66",
        "every log has a budget of its own",
        "copy_budget.py",
        "self.next_ms = max(self.next_ms, now_ms) + duration_ms",
        "self.next_ms = now_ms + duration_ms",
    ),
    _mutant(
        "P51",
        "a node is called empty before all donors are done",
        "node_status.py",
        "if not set(donors) <= set(done):",
        "if not set(donors) & set(done):",
    ),
    _mutant(
        "P52",
        "a node that takes copies is called empty",
        "node_status.py",
        "if case.is_settled and not case.is_ready:",
        "if case.is_settled:",
    ),
    _mutant(
        "P53",
        "nodes that are drained are not asked for their copies",
        "node_status.py",
        "return tuple(sorted(set(storage) - set(self.lost)))",
        "return tuple(sorted(set(storage) - set(self.lost) - self.gone))",
    ),
    _mutant(
        "P54",
        "a node that was wiped counts again when it restarts",
        "node_status.py",
        "if lost is None or lost.is_wiped:",
        "if lost is None:",
    ),
    _mutant(
        "P55",
        "nodes that are drained are not given up by new epochs",
        "node_status.py",
        "return frozenset(case.node for case in self.cases) - staying",
        "return frozenset(self.lost) - staying",
    ),
    _mutant(
        "P57",
        "what a donor did before a second loss counts",
        "node_status.py",
        "    return replace(_put(events, case), rebuilding=events.version + 1, done=())",
        "    return replace(_put(events, case), rebuilding=events.version + 1)",
    ),
    _mutant(
        "P58",
        "what may be on lost disks alone is settled though they may come back",
        "node_status.py",
        "is_restored = is_authoritative or not may_recover",
        "is_restored = True",
    ),
    _mutant(
        "P59",
        "nodes that could hold a whole copyset are taken for harmless",
        "rebuilding_plan.py",
        "return can_replicate(lost, metadata.replication)",
        "return False and can_replicate(lost, metadata.replication)",
    ),
    _mutant(
        "P60",
        "a member that lost its copy is taken for the donor",
        "rebuilding_plan.py",
        "return next((node for node in copyset if node not in losses.lost), None) == self._me",
        "return copyset[0] == self._me",
    ),
    _mutant(
        "P61",
        "a lost copy is not replaced",
        "rebuilding_plan.py",
        "return [node for node in chosen if node not in kept]",
        "return []",
    ),
    _mutant(
        "P62",
        "holders do not hear of a new copyset",
        "rebuilding_plan.py",
        "amends=(*amends, self._me) if new != copyset else (),",
        "amends=(),",
    ),
    _mutant(
        "P62",
        "holders hear of a copyset before the copies are safe",
        "rebuilding.py",
        "                self._puts(moves),\n"
        "                [(node, self._amend(node, moves)) for node in others],\n",
        "                [(node, self._amend(node, moves)) for node in others],\n"
        "                self._puts(moves),\n",
    ),
    _mutant(
        "P60",
        "a node that is drained gives away only what it is the first holder of",
        "rebuilding_plan.py",
        "        if leaving & members and not losses.lost & members:\n            return False\n",
        "        if leaving & members and not losses.lost & members:\n            pass\n",
    ),
    _mutant(
        "P63",
        "with extras only the first member copies",
        "rebuilding_plan.py",
        "if self._me in leaving or len(copyset) > self._metadata.replication.copies:",
        "if self._me in leaving:",
    ),
    _mutant(
        "P64",
        "a copy on a node that leaves looks like any other",
        "rebuilding.py",
        "mark = _DRAINED if node in self._task.losses.gone else 0",
        "mark = 0",
    ),
    _mutant(
        "P65",
        "what was not stored is not sent again",
        "rebuilding.py",
        "sending.retry_ms = self._now_ms + back_off_ms(sending.attempts - 1, shortest_ms, longest_ms)",
        "sending.retry_ms = None",
    ),
    _mutant(
        "P66",
        "a donor copies as fast as it can",
        "rebuilding.py",
        "self._budget.copied(size, self._now_ms)",
        "self._budget.copied(0, self._now_ms)",
    ),
    _mutant(
        "P67",
        "copies are taken before their epoch is released",
        "log_rebuilds.py",
        "if self._drops.is_busy or any(record.lsn >= stored.released_end for record in put.records):",
        "if self._drops.is_busy:",
    ),
    _mutant(
        "P69",
        "many nodes are taken for lost when the network fails",
        "rebuilding_watch.py",
        "return [] if too_many else late",
        "return late",
    ),
    _mutant(
        "P70",
        "data is given up although nobody asked for that",
        "rebuilding_watch.py",
        "0 < settings.auto_unrecoverable_ms <= lost_ms",
        "settings.auto_unrecoverable_ms <= lost_ms",
    ),
    _mutant(
        "P72",
        "copysets that are too small stay so",
        "rebuilding_plan.py",
        "if not is_touched and new == copyset:",
        "if not is_touched:",
    ),
    _mutant(
        "P73",
        "nobody looks at what was stored without a node that counts again",
        "node_status.py",
        "    return _with(events, NodeCase(node=node, mode=CaseMode.CHECK))\n",
        "    return _without(events, node)\n",
    ),
    _mutant(
        "P74",
        "a node is called drained before it has looked itself",
        "node_status.py",
        "        replace(case, is_ready=True)\n",
        "        replace(case, is_ready=True, is_settled=True)\n",
    ),
    _mutant(
        "J9",
        "the silence of a node that lost its data counts in a recovery",
        "log_state.py",
        "under_replicated=self._rebuilding or (",
        "under_replicated=bool(",
    ),
    _mutant(
        "V21",
        "the seal of a node that lost its data counts like any other",
        "epoch_recovery.py",
        "            self._lossy.add(node)  # V21\n",
        "            pass\n",
    ),
    _mutant(
        "V22",
        "recovery stores too few copies although a node may come back",
        "epoch_recovery.py",
        "return answer is not Answer.NONE and self._may_store(done)",
        "return answer is not Answer.NONE",
    ),
]
