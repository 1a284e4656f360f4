"""The rules of keyed_logs.md and of the read level that `mutants.py` breaks, one at a time."""

from __future__ import annotations

from tools.mutant_table import PROTOCOL, Mutant, Part

_DROPS = PROTOCOL + "log_drops.py"
_LEFT = PROTOCOL + "compaction.py"
_DELIVERY = PROTOCOL + "read_stream/delivery.py"

KEYED_MUTANTS = [
    Mutant(
        "K21",
        "holes and bridges are dropped",
        _LEFT,
        "if record.flags & _HOLE or record.flags & wanted == wanted:",
        "if record.flags & wanted == wanted:",
        Part.WRITE_PATH,
    ),
    Mutant(
        "K21",
        "more is dropped than was named",
        _DROPS,
        "return index >= 0 and lsn < ranges[index][1]",
        "return index >= 0",
        Part.WRITE_PATH,
    ),
    Mutant(
        "K22",
        "what is not released is dropped",
        _DROPS,
        "is_too_early = drop.ranges[-1][1] > self._stored.released_end  # K22",
        "is_too_early = False",
        Part.WRITE_PATH,
    ),
    Mutant(
        "K22",
        "a drop is confirmed before it is durable",
        _DROPS,
        "            self._turn.persist(writes, self._go_on, self._failed)\n",
        "            self._turn.persist(writes)\n            self._go_on()\n",
        Part.WRITE_PATH,
    ),
    Mutant(
        "K24",
        "copies are put while headers are written back",
        _DROPS,
        "return bool(self._jobs)",
        "return False",
        Part.WRITE_PATH,
    ),
    Mutant(
        "K26",
        "purges of different times become one gap",
        PROTOCOL + "read_stream/window.py",
        "last.type is gap_type and last.purged_end == marks.purged_end",
        "last.type is gap_type",
    ),
    Mutant(
        "K40",
        "a durable reader does not look who lost copies",
        _DELIVERY,
        "return sure < self.epochs.metadata.replication.copies",
        "return sure < 1",
    ),
    Mutant(
        "K40",
        "records behind the head are handed out with it",
        _DELIVERY,
        "take_run(self._durable_end(min(window.window_end, self.epochs.known_end)))",
        "take_run(min(window.window_end, self.epochs.known_end))",
    ),
]
