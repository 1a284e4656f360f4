"""The witness of a chain log: it checks the promises about single positions."""

from __future__ import annotations

from logdevice.protocol.chain.point_read import PointIs, PointStatus
from logdevice.protocol.log_state.store_write import PutRecord, StoreWrite
from logdevice.protocol.messages.chain import ChainRead, Fate, Settled
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, Store
from logdevice.simulation.cluster import checkers
from logdevice.simulation.cluster.ledger import Ledger
from logdevice.simulation.cluster.witness import ClusterWitness, content_of
from logdevice.simulation.reading.oracle import LOG
from logdevice.simulation.world import World
from logdevice.types import Epoch, Lsn, NodeId, Record, RecordFlags

_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)


class ChainWitness(ClusterWitness):
    def __init__(self, ledger: Ledger, world: World) -> None:
        super().__init__(ledger, world)
        self.issued: dict[Epoch, Lsn] = {}  # the highest position that was given out
        self._first: dict[Lsn, bytes | None] = {}  # the first content of each position, on any node
        self._claimed_ms: dict[Lsn, int] = {}  # when a position was first given to a client
        self._late: set[Lsn] = set()  # records acknowledged after their epoch was sealed

    def arrived(self, append: Append) -> None:
        if append.claim is None:
            super().arrived(append)

    def sending(self, request: Store | ChainRead) -> None:
        self._given(request.lsn)

    def _given(self, lsn: Lsn) -> None:
        self.issued[lsn.epoch] = max(lsn, self.issued.get(lsn.epoch, lsn))

    def wrote(self, node: NodeId, write: StoreWrite) -> None:
        super().wrote(node, write)
        if isinstance(write, PutRecord) and not write.record.flags & _BY_RECOVERY:
            self.complain(str(node), self.decided_twice(write.record))
            self.complain(str(node), self.filled_too_far(write.record))

    def decided_twice(self, record: Record) -> str | None:
        """P5: within its epoch a position has one content, on every node and for ever."""
        content = content_of(record)
        first = self._first.setdefault(record.lsn, content)
        return None if first == content else f"{record.lsn} becomes {content!r}, and was {first!r}"

    def filled_too_far(self, record: Record) -> str | None:
        """P11: only positions that were given out are filled or written."""
        if record.lsn <= self.issued.get(record.lsn.epoch, Lsn(0)):
            return None
        return f"{record.lsn} is written, and was never given out"

    def acknowledging(self, append: Append, appended: Appended) -> None:
        if appended.status is not AppendStatus.OK:
            return
        if append.claim is not None:
            self._given(appended.lsn)
            self._claimed_ms.setdefault(appended.lsn, self._world.now_ms)
            return
        ledger, lsn = self.ledger, appended.lsn
        self._world.say("client", f"hears that {bytes(append.body).decode()} is at {lsn}")
        holders = self.holders(lsn, bytes(append.body))
        if lsn >= ledger.trim_end:
            replication = ledger.epochs[lsn.epoch].replication
            self.complain("client", checkers.too_few_copies(lsn, holders, replication, ledger.locations))
        sealed_ms = ledger.sealed_ms.get(lsn.epoch)
        if sealed_ms is not None:
            self._late.add(lsn)
        # P6: no chain is completed in a sealed epoch. A record that recovery found may be acknowledged late.
        if not any(self._is_recovered(node, lsn) for node in holders):
            attempt = ledger.attempts[bytes(append.body)]
            # The same claim may reach a node that hung long after another node has answered it.
            attempt.arrived_ms = self._claimed_ms.get(lsn, attempt.arrived_ms)
            self.complain("client", checkers.late_acknowledgement(attempt, lsn, sealed_ms))
        ledger.acknowledged(bytes(append.body), lsn)
        if lsn in ledger.contents:
            self.complain("client", checkers.broken_acknowledgement(ledger, lsn, ledger.contents[lsn]))

    def point_read(self, lsn: Lsn, point: PointIs, *, was_promised: bool) -> None:
        """P27: what was found stays. While the epoch is open, an acknowledged record is found."""
        if point.status in (PointStatus.WRITTEN, PointStatus.HOLE):
            content = None if point.record is None else content_of(point.record)
            self.complain("point read", checkers.changed_content(self.ledger, lsn, content))
            self.ledger.note(lsn, content)
        elif was_promised and lsn.epoch not in self.ledger.sealed_ms:
            self.complain("point read", f"{lsn} is {point.status.value}, and was acknowledged")

    def settled(self, answer: Settled) -> None:
        """P11: a settled position never changes."""
        if answer.fate is Fate.HOLE:
            self.point_read(answer.lsn, PointIs(PointStatus.HOLE), was_promised=False)
        elif answer.fate is Fate.DATA and answer.lsn >= self.ledger.trim_end:
            copies = (watched.store.get(LOG, answer.lsn) for watched in self.nodes.values())
            records = [copy for copy in copies if copy is not None and content_of(copy) is not None]
            if records:
                point = PointIs(PointStatus.WRITTEN, records[0])
                self.point_read(answer.lsn, point, was_promised=False)
            else:
                self.complain("settle", f"{answer.lsn} is called a record, and no node has one")

    def _is_recovered(self, node: NodeId, lsn: Lsn) -> bool:
        copy = self.nodes[node].store.get(LOG, lsn)
        return copy is not None and bool(copy.flags & _BY_RECOVERY)

    def _check_order(self, name: str, record: Record) -> None:
        """Records that were acknowledged only after recovery may have lower times; they are not compared."""
        if record.lsn in self._late:
            self._before[name] = record
        else:
            super()._check_order(name, record)
