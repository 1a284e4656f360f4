"""The sliding window: flow control, reordering and de-duplication of one read stream.

    consumed            head                      window_end            end
       |--- delivered ---|------ reorder buffer -------|                  |

Below `consumed` the application is done. From `consumed` to `head` items are delivered and not consumed
yet: their bytes count. From `head` to `window_end` records are collected in any order and handed out in
LSN order. Nodes send nothing at or above `window_end`, and not more bytes than they were granted
(read_path.md W1 to W6).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from logdevice.protocol.dropped_record import NO_MARKS, Marks
from logdevice.protocol.read_stream.senders import Credit, Sender
from logdevice.settings import ReadStreamSettings
from logdevice.types import Gap, GapType, Lsn, Record


class Delivered(NamedTuple):
    """One item that was delivered and is not consumed yet."""

    end: int
    credit: Credit | None  # the byte window that the item occupies; a gap occupies none
    size: int


class SlidingWindow:
    """Order and flow control of one stream. Positions are plain integers: this code runs once per LSN."""

    def __init__(self, start: Lsn, end: Lsn, settings: ReadStreamSettings) -> None:
        self._settings = settings
        self.head: int = start
        self.consumed: int = start
        self.end: int = end
        self.window_end: int = 0
        self._slide_after: int = 0
        self._senders = 1
        self._share = settings.window_bytes  # of one sender, in bytes
        self._update_after = 0  # a sender gets a WINDOW only when its grant grew by this many bytes
        self.has_news = False  # the window or a grant has changed: senders may need a WINDOW
        # None instead of a record: the reader asked not to see it.
        self._slots: dict[int, tuple[Record | None, Credit]] = {}
        self._delivered: deque[Delivered] = deque()
        self._held = 0  # bytes delivered under older STARTs and not consumed yet
        self.duplicates = 0
        self._place(start)

    # ---- positions ------------------------------------------------------------------------------

    def _place(self, low: int) -> None:
        self.window_end = min(self.end, low + self._settings.window_lsns)
        size = self.window_end - low
        self._slide_after = low + int(self._settings.window_slide_share * (size - 1))

    def slide(self) -> bool:
        """Move the window up once the application has consumed enough of it (W2)."""
        if self.consumed <= self._slide_after or self.window_end >= self.end:
            return False
        self._place(self.consumed)
        self.has_news = True
        return True

    # ---- collecting -----------------------------------------------------------------------------

    def accept(self, records: tuple[Record, ...], credit: Credit) -> None:
        """Keep the new records inside the window; a second copy gives its bytes back at once (W4)."""
        head, window_end, slots = self.head, self.window_end, self._slots
        for record in records:
            lsn = record.lsn
            if head <= lsn < window_end and lsn not in slots:
                slots[lsn] = (record, credit)
            else:
                self.duplicates += 1
                self._give_back(credit, record.size)

    def accept_filtered(self, start: int, end: int, credit: Credit) -> None:
        """Note that the records of [start, end) are filtered out, except those that have arrived."""
        for lsn in range(max(start, self.head), min(end, self.window_end)):
            self._slots.setdefault(lsn, (None, credit))

    def first_buffered(self) -> int | None:
        return min(self._slots, default=None)

    @property
    def has_head(self) -> bool:
        return self.head in self._slots

    def drop_buffered(self) -> None:
        """A rewind: forget what is not delivered; it will be sent again, under new credits."""
        self._slots.clear()
        self._held = sum(delivered.size for delivered in self._delivered)

    # ---- handing out ----------------------------------------------------------------------------

    def take_run(self, stop: int) -> list[Record | Gap]:
        """Hand out the records without flags that follow each other from the head on, below `stop`."""
        slots, delivered, head = self._slots, self._delivered, self.head
        run: list[Record | Gap] = []
        while head < stop:
            slot = slots.get(head)
            if slot is None:
                break
            record, credit = slot
            if record is None or record.flags:
                break
            del slots[head]
            head += 1
            run.append(record)
            delivered.append(Delivered(head, credit, record.size))
        self.head = head
        return run

    def take_one(self) -> list[Record | Gap]:
        """Hand out the record at the head, whatever flags it carries."""
        record, credit = self._slots.pop(self.head)
        assert record is not None, f"{Lsn(self.head)} was filtered out"
        self.head += 1
        self._delivered.append(Delivered(self.head, credit, record.size))
        return [record]

    def waiting(self, lsn: int) -> Record | None:
        """The record that waits at `lsn`; None if there is none, or if it was filtered out."""
        slot = self._slots.get(lsn)
        return None if slot is None else slot[0]

    def peek(self) -> Record | None:
        """The record at the head, whatever flags it has; None stands for one that was filtered out."""
        return self._slots[self.head][0]

    def hand_out_gap(
        self, gap_type: GapType, end: int, batch: list[Record | Gap], marks: Marks = NO_MARKS
    ) -> None:
        """Append a gap from the head to `end` to `batch`.

        Adjacent gaps of one type become one, unless their purged ends differ (K26).
        """
        start, end = self.head, min(end, self.end)
        assert end > start, f"empty gap {gap_type} at {Lsn(start)}"
        last = batch[-1] if batch else None
        if isinstance(last, Gap) and last.type is gap_type and last.purged_end == marks.purged_end:
            start = last.start
            marks = marks._replace(superseded_end=max(marks.superseded_end, last.superseded_end))
            batch.pop()
            self._delivered.pop()
        batch.append(Gap(gap_type, Lsn(start), Lsn(end), *marks))
        self._delivered.append(Delivered(end, None, 0))
        self._pass_over(end)

    def _pass_over(self, end: int) -> None:
        """Move the head to `end`, and drop what is buffered below."""
        passed = end - self.head
        if passed < len(self._slots):
            stale = [lsn for lsn in range(self.head, end) if lsn in self._slots]
        else:
            stale = [lsn for lsn in self._slots if lsn < end]
        for lsn in stale:
            record, credit = self._slots.pop(lsn)
            if record is not None:
                self._give_back(credit, record.size)
        self.head = end

    def _give_back(self, credit: Credit, size: int) -> None:
        self.has_news = True
        if credit.is_retired:
            self._held -= size
        else:
            credit.returned += size

    # ---- the application's answers --------------------------------------------------------------

    def consume(self, end: int) -> None:
        """The application is done with every item that ends at or below `end`."""
        delivered = self._delivered
        while delivered and delivered[0].end <= end:
            done = delivered.popleft()
            self.consumed = done.end
            if done.credit is not None:
                self._give_back(done.credit, done.size)

    def drop(self, record: Record, credit: Credit) -> None:
        """Give back the bytes of a record that cannot be read."""
        self._give_back(credit, record.size)

    @property
    def has_unconsumed(self) -> bool:
        return bool(self._delivered)

    # ---- bytes ----------------------------------------------------------------------------------

    def share_bytes(self, senders: int) -> None:
        """Split the byte window evenly, so that a sender that has the head always has room for it (W5)."""
        self._senders = max(1, senders)
        self._share = max(1, self._settings.window_bytes // self._senders)
        self._update_after = max(1, int(self._settings.window_slide_share * self._share))
        self.has_news = True

    def grant(self, credit: Credit) -> int:
        """How many bytes a sender may send in all under its START."""
        return self.first_grant + credit.returned

    @property
    def first_grant(self) -> int:
        """How many bytes a START grants now."""
        return max(1, self._share - self._held // self._senders)

    def retire(self, credit: Credit) -> None:
        """One sender starts anew or leaves, the others continue: its bytes count until they are consumed."""
        self._held += credit.outstanding
        credit.is_retired = True

    def wants_update(self, sender: Sender) -> bool:
        """Whether a sender should get a WINDOW now (W3)."""
        grown = self.first_grant + sender.credit.returned - sender.credit.granted
        return grown >= self._update_after or sender.told_window_end != self.window_end
