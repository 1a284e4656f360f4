"""Looks over the shoulders of all who write along chains: what is promised about single positions."""

from __future__ import annotations

from logdevice.protocol.chain.messages import Next
from logdevice.protocol.chain.point_read import PointIs, PointStatus
from logdevice.protocol.store_write import PutRecord, StoreWrite
from logdevice.protocol.write_messages import Append, Appended, AppendStatus
from logdevice.simulation.whole import checkers
from logdevice.simulation.whole.ledger import Ledger
from logdevice.simulation.whole.witness import Witness, content_of
from logdevice.simulation.workload import LOG
from logdevice.simulation.world import World
from logdevice.types import Epoch, Lsn, NodeId, Record, RecordFlags

_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)


class ChainWitness(Witness):
    def __init__(self, ledger: Ledger, world: World) -> None:
        super().__init__(ledger, world)
        self.ledger = ledger
        self.issued: dict[Epoch, Lsn] = {}  # the highest position that was given out
        self._first: dict[Lsn, bytes | None] = {}  # what came first to a position, anywhere
        self._asking: dict[int, Append] = {}
        self._late: set[Lsn] = set()  # acknowledged after their epoch was sealed

    def asking(self, token: int, append: Append) -> None:
        self._asking[token] = append

    def position_asked(self, next_: Next) -> None:
        self.arrived(self._asking[next_.token >> 8])

    def position_given(self, lsn: Lsn) -> None:
        self.issued[lsn.epoch] = max(lsn, self.issued.get(lsn.epoch, lsn))

    def wrote(self, node: NodeId, write: StoreWrite) -> None:
        super().wrote(node, write)
        if isinstance(write, PutRecord) and not write.record.flags & _BY_RECOVERY:
            self.complain(str(node), self.decided_twice(write.record))
            self.complain(str(node), self.filled_too_far(write.record))

    def decided_twice(self, record: Record) -> str | None:
        """I5: in an epoch a position has one content, on every node and for ever."""
        content = content_of(record)
        first = self._first.setdefault(record.lsn, content)
        return None if first == content else f"{record.lsn} becomes {content!r}, and was {first!r}"

    def filled_too_far(self, record: Record) -> str | None:
        """I7: nothing is filled, and nothing written, that nobody was given."""
        if record.lsn <= self.issued.get(record.lsn.epoch, Lsn(0)):
            return None
        return f"{record.lsn} is written, and nobody was given it"

    def acknowledging(self, append: Append, appended: Appended) -> None:
        if appended.status is not AppendStatus.OK:
            return
        ledger, lsn = self.ledger, appended.lsn
        self._world.say("client", f"hears that {append.body.decode()} is at {lsn}")
        holders = self.holders(lsn, append.body)
        if lsn >= ledger.trim_end:
            replication = ledger.epochs[lsn.epoch].replication
            self.complain("client", checkers.too_few_copies(lsn, holders, replication, ledger.locations))
        sealed_ms = ledger.sealed_ms.get(lsn.epoch)
        if sealed_ms is not None:
            self._late.add(lsn)
        # I6: no chain is written to its end in a sealed epoch; what recovery found in it may be told late.
        if not any(self._is_recovered(node, lsn) for node in holders):
            attempt = ledger.attempts[append.body]
            self.complain("client", checkers.late_acknowledgement(attempt, lsn, sealed_ms))
        ledger.acknowledged(append.body, lsn)
        if lsn in ledger.contents:
            self.complain("client", checkers.broken_acknowledgement(ledger, lsn, ledger.contents[lsn]))

    def point_read(self, lsn: Lsn, point: PointIs, *, was_promised: bool) -> None:
        """P27: what is found stays; what was acknowledged before is found, as long as the epoch is open."""
        if point.status in (PointStatus.WRITTEN, PointStatus.HOLE):
            content = None if point.record is None else content_of(point.record)
            self.complain("point read", checkers.changed_content(self.ledger, lsn, content))
            self.ledger.note(lsn, content)
        elif was_promised and lsn.epoch not in self.ledger.sealed_ms:
            self.complain("point read", f"{lsn} is {point.status.value}, and was acknowledged")

    def _is_recovered(self, node: NodeId, lsn: Lsn) -> bool:
        copy = self.nodes[node].store.get(LOG, lsn)
        return copy is not None and bool(copy.flags & _BY_RECOVERY)

    def _check_order(self, name: str, record: Record) -> None:
        """What recovery found and a client heard of only then was nobody's to go on from."""
        if record.lsn in self._late:
            self._before[name] = record
        else:
            super()._check_order(name, record)
