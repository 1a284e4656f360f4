"""Bridge search: finding the received table that the last clean epoch ended with.

The table is in the epoch's bridge record, on R nodes. So an f-majority of the epoch's nodes is asked for
what they have after the last record. The search is a part of the log's recovery. It runs while later epochs
are being sealed and lives until the table is found or cannot be on any node. Rules O8 and O11 are in
docs/protocol/writers.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdevice.protocol.effects import Effects
from logdevice.protocol.log_state.copies import precedence
from logdevice.protocol.messages.write import DigestRecords, DigestRequest
from logdevice.protocol.quorum import Answer
from logdevice.protocol.recovery.context import Effect, RecoveryContext, recovery_quorum
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, Lsn, NodeId, Record, RecordFlags
from logdevice.types import epoch_start as start_of

_BRIDGE = int(RecordFlags.BRIDGE)
_NO_ATTEMPT = 0  # below every attempt of a recovery, so that this digest fences out nothing


class BridgeSearch:
    """Searches one epoch for its bridge. `tail_end` is at most one after the epoch's last record."""

    def __init__(
        self,
        context: RecoveryContext,
        epoch: Epoch,
        metadata: EpochMetadata,
        tail_end: Lsn,
        effects: Effects[Effect],
    ) -> None:
        self.epoch = epoch
        # Before the first epoch there was nothing.
        self.table: ReceivedTable | None = None if epoch else ReceivedTable()
        self._context = context
        self._effects = effects
        self._metadata = metadata
        self._start = max(start_of(epoch), tail_end)
        self._read_from = dict.fromkeys(metadata.nodeset, self._start)
        self._bridge: Record | None = None

    def ask(self) -> None:
        """Asks every node that has not sent everything; called again until the table is known."""
        if self.table is None:
            for node in sorted(self._read_from):
                self._read_on(node)

    def answered(self, node: NodeId, answer: DigestRecords) -> None:
        is_awaited = self.table is None and node in self._read_from and self._is_reading(node)
        if not is_awaited or answer.start != self._read_from[node] or answer.has_failed:
            return
        for record in answer.records:
            if record.flags & _BRIDGE and (
                self._bridge is None or precedence(record) > precedence(self._bridge)
            ):
                self._bridge = record
        if answer.under_replicated:
            return  # V21: this node may have lost the bridge
        self._read_from[node] = answer.next
        self._read_on(node)

    def poll(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        """Ends the search if enough nodes have answered."""
        if self.table is not None:
            return
        done = [node for node in self._read_from if not self._is_reading(node)]
        quorum = recovery_quorum(self._metadata, self._context.locations, statuses, done, done)
        if quorum.answer() is not Answer.NONE:
            self.give_up()

    def give_up(self) -> None:
        """Ends the search: takes the bridge that was found, or a table that has forgotten everything (O8)."""
        if self.table is not None:
            return
        if self._bridge is not None:
            self.table = ReceivedTable.decode(self._bridge.body)
        else:
            self.table = ReceivedTable()
            self.table.forget_all(self._end)

    @property
    def _end(self) -> Lsn:
        return Lsn.of(self.epoch + 1, 0)

    def _is_reading(self, node: NodeId) -> bool:
        return self._read_from[node] < self._end

    def _read_on(self, node: NodeId) -> None:
        if not self._is_reading(node):
            return
        request = DigestRequest(
            log=self._context.log,
            epoch=self.epoch,
            start=self._read_from[node],
            seal_epoch=self._context.seal_epoch,
            attempt=_NO_ATTEMPT,
        )
        self._effects.ask(node, request)
