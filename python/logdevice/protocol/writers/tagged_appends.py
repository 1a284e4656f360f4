"""Tagged appends: what a log's sequencer knows about writers, and what it tells storage nodes about them.

A part of the sequencer. From the beginning of an epoch until all earlier ones are recovered it knows
nothing: tagged appends wait until then. From time to time it sends the received table up to the good end
to the nodes, so that the next recovery need not read far. Rules O10 and O12 are in docs/protocol/writers.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, GetWriter, KeepWriters, WriterIs
from logdevice.protocol.sequencer.events import Effect, SequencerContext
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import Lsn, NodeId, WriterTag


class TaggedAppends:
    def __init__(self, context: SequencerContext, effects: Effects[Effect]) -> None:
        self._log = context.log
        self._settings = context.settings
        self._effects = effects
        self._nodes: tuple[NodeId, ...] = ()
        self._table: ReceivedTable | None = None
        self._good = ReceivedTable()  # the table without records that are not good yet
        self._news: deque[tuple[Lsn, WriterTag]] = deque()  # the appends that `_good` lacks
        self._sent: KeepWriters | None = None
        self._due_ms: int | None = None

    def begin(self, start: Lsn, table: bytes, nodes: Iterable[NodeId]) -> None:
        """Everything before `start`, the beginning of the epoch, is recovered; `table` is the result."""
        settings = self._settings
        self.end()
        self._nodes = tuple(sorted(set(nodes)))
        self._table = ReceivedTable.decode(
            table, writers_max=settings.writers_max, window=settings.writer_window_max
        )
        self._good = self._table.copy()
        if table:
            self._sent = KeepWriters(self._log, start, table)
            self._due_ms = self._effects.now_ms  # O12: the bridge that holds it may be trimmed

    def end(self) -> None:
        """Forgets the table: the next epoch's is not known yet."""
        self._table = None
        self._news.clear()
        self._sent = self._due_ms = None

    def must_wait(self, append: Append) -> bool:
        """O10: until the earlier epochs are recovered, new appends cannot be told from duplicates."""
        return append.tag is not None and self._table is None

    def room(self, append: Append) -> int:
        """How many appends may wait (U8). Those that wait for a recovery leave half the room to others."""
        records_max = self._settings.window_records_max
        return max(1, records_max // 2) if self.must_wait(append) else records_max

    def refusal(self, append: Append) -> Appended | None:
        """Why a tagged append cannot be taken; None if it can, or has no tag."""
        if append.tag is None:
            return None
        assert self._table is not None, "tagged appends wait until the table is known"
        answer = self._table.judge(append.tag, append.since)
        return None if answer.status is AppendStatus.OK else answer

    def note(self, tag: WriterTag | None, lsn: Lsn) -> None:
        if tag is not None:
            assert self._table is not None, "tagged appends wait until the table is known"
            self._table.note(tag, lsn)
            self._news.append((lsn, tag))
            if self._due_ms is None:
                self._due_ms = self._effects.now_ms + self._settings.writers_keep_ms

    def state_of(self, ask: GetWriter) -> WriterIs:
        assert self._table is not None, "all earlier epochs are recovered"
        return self._table.state_of(ask.writer, ask.seq)

    def deadline_ms(self) -> int | None:
        return self._due_ms

    def send_due(self, good_end: Lsn) -> None:
        """O12: sends the table of all records below `good_end` to the nodes, if it is time."""
        now_ms = self._effects.now_ms
        if self._due_ms is None:
            return
        is_much = len(self._news) >= self._settings.writers_keep_records and self._news[0][0] < good_end
        if now_ms < self._due_ms and not is_much:
            return
        if self._news:
            while self._news and self._news[0][0] < good_end:
                lsn, tag = self._news.popleft()
                self._good.note(tag, lsn)
            self._sent = KeepWriters(self._log, good_end, self._good.encode())
        self._due_ms = now_ms + max(1, self._settings.writers_keep_ms) if self._news else None
        for node in self._nodes:
            self.tell(node)

    def tell(self, node: NodeId) -> None:
        """Sends the last table to a node: to every node when due, and to one that has just connected."""
        if self._sent is not None and node in self._nodes:
            self._effects.tell(node, self._sent)
