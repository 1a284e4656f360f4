"""The rules of chain.md that `mutants.py` breaks, one at a time.

The first ones are those of the small model that the design was tried out with: any order, no epoch check,
nothing adopted, no purge, no recovery.
"""

from __future__ import annotations

from tools.mutant_table import PROTOCOL, Mutant, Part

_CHAIN = PROTOCOL + "chain/"
_PURGE = "deletes = [DeleteRecords(self._log, start, Lsn.of(epoch + 1, 0))] if recovered.is_known else []"


def _mutant(rule: str, why: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(rule, why, file, old, new, Part.CHAIN)


CHAIN_MUTANTS = [
    _mutant(
        "P1",
        "holes walk a chain in the other order than records",
        _CHAIN + "walk.py",
        "return self.chain[self._index]",
        "return self.chain[-1 - self._index if self.record.flags & HOLE else self._index]",
    ),
    _mutant(
        "P6",
        "a node takes stores of sealed epochs",
        _CHAIN + "copies.py",
        "return epoch <= max(stored.seal.epoch, stored.soft_seal.epoch, stored.last_clean)",
        "return False",
    ),
    _mutant(
        "P9",
        "what is at a position is not adopted: a hole goes on over a record",
        _CHAIN + "walk.py",
        "        if status is carried:\n",
        "        if status in (carried, ChainStatus.DATA):\n",
    ),
    _mutant(
        "Y3",
        "a node that missed a recovery keeps its old content",
        PROTOCOL + "log_state.py",
        _PURGE,
        "deletes: list[DeleteRecords] = []",
    ),
    _mutant(
        "U13",
        "an epoch is released though nobody has recovered the one before",
        PROTOCOL + "activation.py",
        "return self._is_metadata_written and self.is_recovered",
        "return self._is_metadata_written",
    ),
    _mutant(
        "P2",
        "the head is the first choice of readers",
        _CHAIN + "walk.py",
        "copyset=tuple(reversed(chain))[:copies]",
        "copyset=chain[:copies]",
    ),
    _mutant(
        "P5",
        "whoever comes later overwrites",
        _CHAIN + "copies.py",
        "        if lsn in self._known:\n",
        "        if lsn in self._known and self._known[lsn]:\n",
    ),
    _mutant(
        "P5",
        "a node that was restarted forgets what it has",
        _CHAIN + "copies.py",
        "epoch_start(lsn.epoch) if stored is None else stored.tail.end",
        "epoch_start(lsn.epoch)",
    ),
    _mutant(
        "P7",
        "two stores of one position are dealt with at a time",
        _CHAIN + "copies.py",
        "        if len(turns) == 1:\n",
        "        if len(turns) >= 1:\n",
    ),
    _mutant(
        "P8",
        "a token gets a new position every time",
        _CHAIN + "epoch.py",
        "        lsn = self._tokens.get(next_.token)\n",
        "        lsn = self._tokens.get(-1)\n",
    ),
    _mutant(
        "P10",
        "a position is filled while its client has time",
        _CHAIN + "flight.py",
        "        elif self._now_ms >= self._fill_ms:\n",
        "        elif self._now_ms >= 0:\n",
    ),
    _mutant(
        "P11",
        "positions that nobody has are settled",
        _CHAIN + "epoch.py",
        "        if lsn >= self.next_lsn:\n",
        "        if lsn > self.next_lsn:\n",
    ),
    _mutant(
        "P12",
        "a node that does not answer stays in the chain",
        _CHAIN + "flight.py",
        "        if self._attempts >= self._settings.chain_attempts_max:\n",
        "        if self._attempts > self._settings.chain_attempts_max + 9:\n",
    ),
    _mutant(
        "P13",
        "positions of an epoch that was left stay open",
        _CHAIN + "sequencer.py",
        "            self._effects += previous.abort(self._me)  # P13\n",
        "            pass\n",
    ),
    _mutant(
        "P15",
        "an epoch counts on more copies than its chains have",
        _CHAIN + "placing.py",
        "    copies = min(wanted.copies, nodes // 2 + 1)\n",
        "    copies = wanted.copies\n",
    ),
    _mutant(
        "P16",
        "chains may get too short",
        _CHAIN + "sequencer.py",
        "or reduced.copies < config.chain.min_copies:",
        "or reduced.copies < 1:",
    ),
    _mutant(
        "P17",
        "a chain never grows again",
        _CHAIN + "sequencer.py",
        "return is_due and len(chains[0]) > len(current.chains[0])",
        "return is_due and len(chains[0]) > 99",
    ),
    _mutant(
        "P19",
        "a bridge is put where readers were told of a hole",
        PROTOCOL + "digest.py",
        "if winner.flags & (_HOLE | _FILLED) != _HOLE]",
        "if not winner.flags & _HOLE]",
    ),
    _mutant(
        "P21",
        "a client asks for another position wherever it was refused",
        _CHAIN + "append.py",
        "            case Step.TAKEN | Step.SEALED if was_at_head:\n",
        "            case Step.TAKEN | Step.SEALED:\n",
    ),
    _mutant(
        "P22",
        "a client that heard nothing asks for another position",
        _CHAIN + "append.py",
        "event.lsn):\n                    self._settle()\n",
        "event.lsn):\n                    self._ask_position()\n",
    ),
    _mutant(
        "P25",
        "an append whose outcome is unknown is called refused",
        _CHAIN + "append.py",
        "        if self._position is None:\n            self._end(Fail(AppendStatus.NO_SEQUENCER))\n",
        "        if self._position is not None:\n            self._end(Fail(AppendStatus.NO_SEQUENCER))\n",
    ),
    _mutant(
        "P26",
        "the head is asked what is at a position",
        _CHAIN + "sequencer.py",
        "return Place.TAIL, current.chain_of(lsn)[-1]",
        "return Place.TAIL, current.chain_of(lsn)[0]",
    ),
    _mutant(
        "P27",
        "a tail that is sealed is believed",
        _CHAIN + "point_read.py",
        "copy.has_failed or copy.is_sealed:",
        "copy.has_failed:",
    ),
    _mutant(
        "P27",
        "a tail does not say that it is sealed",
        _CHAIN + "copies.py",
        "is_sealed=self._is_sealed(request.lsn.epoch),",
        "is_sealed=False,",
    ),
]
