"""The sliding window against naive models, in any order of arrivals, with any number of second copies."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.read_stream.senders import Credit
from logdevice.protocol.read_stream.tests.reading import lsn, record
from logdevice.protocol.read_stream.window import SlidingWindow
from logdevice.settings import ReadStreamSettings
from logdevice.types import Lsn, Record

START, END = 42, 80
BODY_MAX = 100
RECORD_MAX = record(1, body=b"x" * BODY_MAX).size


def new_window(**settings: float) -> SlidingWindow:
    return SlidingWindow(lsn(START), lsn(END), ReadStreamSettings(**settings))  # type: ignore[arg-type]


def take(window: SlidingWindow) -> list[int]:
    return [item.lsn.esn for item in window.take_run(window.window_end) if isinstance(item, Record)]


@dataclass
class NaiveWindow:
    """A set of all records that ever arrived inside the window, and three positions."""

    lsns: int
    share: float
    head: int = START
    low: int = START
    seen: set[int] = field(default_factory=set)

    @property
    def window_end(self) -> int:
        return min(END, self.low + self.lsns)

    def accept(self, position: int) -> None:
        if self.head <= position < self.window_end:
            self.seen.add(position)

    def take(self) -> list[int]:
        run = []
        while self.head in self.seen:
            run.append(self.head)
            self.head += 1
        return run

    def consume_all(self) -> None:
        size = self.window_end - self.low
        if self.head - self.low > int(self.share * (size - 1)) and self.window_end < END:
            self.low = self.head


@given(
    st.lists(st.one_of(st.integers(START - 3, END + 3), st.none()), max_size=200),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
def test_each_lsn_is_handed_out_once_and_in_order_whatever_comes(
    arrivals: list[int | None], lsns: int, share: float
) -> None:
    """W1, W2, W4. A number is a record that arrives. None: the application consumes all it has."""
    window = new_window(window_lsns=lsns, window_slide_share=share)
    naive = NaiveWindow(lsns, share)
    handed_out: list[int] = []
    for arrival in arrivals:
        if arrival is None:
            window.consume(window.head)
            window.slide()
            naive.consume_all()
        else:
            window.accept((record(arrival),), Credit())
            naive.accept(arrival)
        run = take(window)
        assert run == naive.take()
        assert window.window_end == lsn(naive.window_end)
        handed_out += run
    assert handed_out == list(range(START, START + len(handed_out)))


class Node:
    """Sends LSN after LSN, as long as its bytes and the window allow it."""

    def __init__(self, window: SlidingWindow) -> None:
        self.window = window
        self.restart()

    def restart(self) -> None:
        self.next = self.window.head
        self.credit = Credit(granted=self.window.first_grant)

    def send(self, skip: int, body: int) -> None:
        self.next += skip
        if self.next < self.window.window_end and self.credit.received < self.credit.granted:
            sent = record(Lsn(self.next), body=b"x" * body)
            self.credit.received += sent.size
            self.window.accept((sent,), self.credit)
            self.next += 1

    def hear(self) -> None:
        self.credit.granted = max(self.credit.granted, self.window.grant(self.credit))


def bytes_kept(window: SlidingWindow) -> int:
    """The bytes that the reader has in memory: delivered and not consumed, or waiting for delivery."""
    delivered = sum(item.size for item in window._delivered)
    return delivered + sum(slot[0].size for slot in window._slots.values() if slot[0] is not None)


SENDS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, BODY_MAX))
STEPS = st.lists(st.one_of(SENDS, st.sampled_from(["consume one", "consume all", "rewind"])), max_size=120)


@given(STEPS, st.integers(1, 2_000), st.integers(1, 4))
def test_the_reader_never_keeps_more_than_its_byte_window_and_a_record_of_each_sender(
    steps: list[tuple[int, int, int] | str], window_bytes: int, senders: int
) -> None:
    """W5. Only what was delivered and not consumed before a rewind may have been more than that."""
    window = new_window(window_lsns=20, window_bytes=window_bytes)
    window.share_bytes(senders)
    nodes = [Node(window) for _ in range(senders)]
    allowed = window_bytes
    for step in steps:
        if step == "rewind":
            window.drop_buffered()
            allowed = max(window_bytes, bytes_kept(window))
            for node in nodes:
                node.credit.is_retired = True
                node.restart()
        elif isinstance(step, str):
            window.consume(window.consumed + 1 if step == "consume one" else window.head)
            window.slide()
            for node in nodes:
                node.hear()
        else:
            which, skip, body = step
            nodes[which % senders].send(skip, body)
            take(window)
        assert bytes_kept(window) <= allowed + senders * RECORD_MAX
