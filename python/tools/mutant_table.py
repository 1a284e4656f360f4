"""The rules that `mutants.py` breaks, one at a time: where, how, and which rule of read_path.md falls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PROTOCOL = "logdevice/protocol/"
STREAM = PROTOCOL + "read_stream/"


class Part(Enum):
    """Whose tests and whose simulation should notice."""

    READ_PATH = "READ_PATH"
    WRITE_PATH = "WRITE_PATH"
    REBUILDING = "REBUILDING"
    CHAIN = "CHAIN"
    LINEAGE = "LINEAGE"
    CUTS = "CUTS"


@dataclass(frozen=True, slots=True)
class Mutant:
    rule: str
    why: str
    file: str
    old: str
    new: str
    part: Part = Part.READ_PATH


MUTANTS = [
    Mutant(
        "C2",
        "a node in the known-down list sends nothing",
        PROTOCOL + "copy_selection.py",
        "frozenset(start.known_down) - {me}",
        "frozenset(start.known_down)",
    ),
    Mutant(
        "C1",
        "the known-down list is not looked at",
        PROTOCOL + "copy_selection.py",
        "alive = [node for node in order if node not in self._known_down]",
        "alive = list(order)",
    ),
    Mutant(
        "C3",
        "the shuffle depends on who computes it",
        PROTOCOL + "copy_selection.py",
        "shuffle_seed=self._seed, priority",
        "shuffle_seed=self._seed and self._seed + self._me, priority",
    ),
    Mutant(
        "C4",
        "extras are not sent by those who hold them",
        PROTOCOL + "copy_selection.py",
        "return alive[0] == self._me or self._me in alive[len(alive) - min(extras, len(alive)) :]",
        "return alive[0] == self._me",
    ),
    Mutant(
        "C5",
        "holes and bridges go through single-copy selection",
        PROTOCOL + "copy_selection.py",
        "_SPECIAL: Final = _HOLE | _DRAINED",
        "_SPECIAL: Final = _DRAINED",
    ),
    Mutant(
        "C6",
        "nobody alive, so nobody sends",
        PROTOCOL + "copy_selection.py",
        "return True  # C6: better twice than never",
        "return False",
    ),
    Mutant(
        "C8",
        "drained copies are sent in single-copy delivery",
        PROTOCOL + "copy_selection.py",
        "return not flags & _DRAINED",
        "return True",
    ),
    Mutant(
        "Q1",
        "an f-majority with one domain too few",
        PROTOCOL + "quorum.py",
        "needed = self._non_empty - self._factor + 1",
        "needed = self._non_empty - self._factor",
    ),
    Mutant(
        "Q2",
        "an empty node stays in the denominator",
        PROTOCOL + "quorum.py",
        "non_empty = int(was_empty) - int(status is AuthoritativeStatus.AUTHORITATIVE_EMPTY)",
        "non_empty = 0 * int(was_empty)",
    ),
    Mutant(
        "Q3",
        "a node that lost its data is awaited",
        PROTOCOL + "quorum.py",
        "_COUNTS: Final = (AuthoritativeStatus.FULLY_AUTHORITATIVE, AuthoritativeStatus.UNAVAILABLE)",
        "_COUNTS: Final = tuple(AuthoritativeStatus)",
    ),
    Mutant(
        "Q4",
        "a node that is away is not awaited",
        PROTOCOL + "quorum.py",
        "_COUNTS: Final = (AuthoritativeStatus.FULLY_AUTHORITATIVE, AuthoritativeStatus.UNAVAILABLE)",
        "_COUNTS: Final = (AuthoritativeStatus.FULLY_AUTHORITATIVE,)",
    ),
    Mutant(
        "G1",
        "silence counts in single-copy delivery, too",
        STREAM + "delivery.py",
        "if self._failover.rewinds.is_pending or is_filtered:",
        "if self._failover.rewinds.is_pending:",
    ),
    Mutant(
        "G5",
        "a node that may have lost the head counts as one that never had it",
        STREAM + "gaps.py",
        "is_past and not sender.is_thin_at(head)",
        "is_past",
    ),
    Mutant(
        "G4",
        "no grace period",
        STREAM + "delivery.py",
        "elif answer is Answer.INCOMPLETE and self._waits_for_grace(head):",
        "elif answer is Answer.INCOMPLETE and False:",
    ),
    Mutant(
        "G7",
        "a loss is believed at first sight",
        STREAM + "delivery.py",
        "if head in self._looked_twice:",
        "if head >= 0:",
    ),
    Mutant(
        "G3",
        "a gap reaches past the first node that may still differ",
        STREAM + "gaps.py",
        "return min((bound for bound in bounds if bound > head), default=None)",
        "return max((bound for bound in bounds if bound > head), default=None)",
    ),
    Mutant(
        "W4",
        "a second copy is kept and counted",
        STREAM + "window.py",
        "if head <= lsn < window_end and lsn not in slots:",
        "if head <= lsn < window_end:",
    ),
    Mutant(
        "W2",
        "the window slides with what was delivered, not consumed",
        STREAM + "window.py",
        "self._place(self.consumed)",
        "self._place(self.head)",
    ),
    Mutant(
        "W7",
        "what was rejected is not offered again",
        STREAM + "delivery.py",
        "items = tuple(self._window.unconsumed_from(self._rejected_at))",
        "items = tuple(self._window.unconsumed_from(self._rejected_at + 1))",
    ),
    Mutant(
        "R2",
        "a rewind keeps the filter version",
        STREAM + "connections.py",
        "self.filter_version += 1",
        "self.filter_version += 0",
    ),
    Mutant(
        "R2",
        "a rewind keeps what was collected",
        STREAM + "connections.py",
        "        self._window.drop_buffered()\n",
        "",
    ),
    Mutant(
        "R4",
        "nobody notices that everybody has passed the head",
        STREAM + "gaps.py",
        "return all(sender.is_past(head) or sender.node in filtered_out for sender in senders)",
        "return False",
    ),
    Mutant(
        "R7",
        "the stream never returns to single-copy delivery",
        STREAM + "failover.py",
        "            self.scd.want_mode(self.scd.preferred)\n",
        "",
    ),
    Mutant(
        "R8",
        "nodes keep an outdated replication factor",
        STREAM + "failover.py",
        "if self._connections.nodes and copies != before and self.scd.is_active:",
        "if False:",
    ),
    Mutant(
        "D7",
        "a node that is back stays on the list",
        STREAM + "failover.py",
        "                    self.scd.mark_up(sender.node)\n",
        "",
    ),
    Mutant(
        "D4",
        "silence past the timeout has no consequences",
        STREAM + "failover.py",
        "self.trouble(sender.node, RewindReason.SCD_TIMEOUT)",
        "pass",
    ),
    Mutant(
        "D1",
        "a record with a bad checksum is delivered",
        STREAM + "stream.py",
        "return tuple(record for record in records if not record.flags & _CORRUPT)",
        "return records",
    ),
    Mutant(
        "A3",
        "a node that was rebuilt elsewhere causes no second look",
        STREAM + "failover.py",
        "            self.schedule(RewindReason.BECAME_EMPTY)\n",
        "            pass\n",
    ),
    Mutant(
        "A1",
        "an older status notice replaces a newer one",
        STREAM + "connections.py",
        "if notice.version <= self._status_version:",
        "if notice.version < 0:",
    ),
    Mutant(
        "M2",
        "the newest metadata is believed for every epoch",
        STREAM + "epochs.py",
        "elif answer.source is MetadataSource.LAST and self._released_when_asked:",
        "elif self._know(answer.epoch) or self._released_when_asked:",
    ),
    Mutant(
        "M2",
        "metadata from a cache is believed",
        STREAM + "epochs.py",
        "elif answer.source is MetadataSource.LAST and self._released_when_asked:",
        "elif self._released_when_asked:",
    ),
    Mutant(
        "S3",
        "results of an outdated read are sent",
        PROTOCOL + "server_read_stream.py",
        "return None if self._read_is_outdated else read",
        "return read",
    ),
    Mutant(
        "S4",
        "records above the released LSN are sent",
        PROTOCOL + "server_read_stream.py",
        "limit = min(start.end, self._released_end, version.window_end)",
        "limit = min(start.end, version.window_end)",
    ),
    Mutant(
        "S7",
        "a trim point is passed in silence",
        PROTOCOL + "server_read_stream.py",
        "        delivery.trim(trim_end)\n",
        "",
    ),
    Mutant(
        "S9",
        "a node does not say where it may have lost records",
        PROTOCOL + "server_delivery.py",
        "        if under_replicated:\n            self._thin_end = next\n",
        "",
    ),
    Mutant(
        "S12",
        "a node that lost its data answers like any other",
        PROTOCOL + "server_read_stream.py",
        "StartedStatus.REBUILDING if self._rebuilding else StartedStatus.OK",
        "StartedStatus.OK",
    ),
]
