"""A server read stream over a memory store, with events in any order: no LSN is left out or sent twice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.log_state.events import ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.messages.read import GapNotice, GapReason, ReadMode, Records, Started, Window
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.protocol.server_stream.stream import EndServerStream, Event, MessageSent, ServerReadStream
from logdevice.protocol.server_stream.tests.served_stream import LOG, N1, START
from logdevice.settings import NodeReadSettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.types import Lsn, Record, nodes

END = 40


class Reader:
    """Drives the machine and checks each message against all earlier ones."""

    def __init__(self, copysets: dict[int, list[int]], settings: NodeReadSettings, examined: int) -> None:
        self.store = MemoryLogStore(entries_examined_max=examined)
        for lsn, copyset in copysets.items():
            self.store.put(LOG, Record(Lsn(lsn), 0, nodes(copyset), b"x" * lsn))
        self.stream = ServerReadStream(N1, settings, {}, released_end=Lsn(0), trim_end=Lsn(0))
        self.copysets = copysets
        self.start = replace(START, start=Lsn(1), end=Lsn(END), window_end=Lsn(1), window_bytes=0)
        self.released = self.window = self.trimmed = 0
        self.told = 1  # everything below has been sent or covered
        self.is_started = self.has_ended = False
        self.queued = 0
        self.read: StoreRead | None = None

    def rewind(self, mode: ReadMode) -> None:
        self.start = replace(self.start, filter_version=self.start.filter_version + 1, mode=mode)
        self.is_started = self.has_ended = False
        self.told, self.window = 1, 1
        self.feed(self.start)

    def slide(self, end: int, size: int) -> None:
        self.window = max(self.window, end)
        self.feed(Window(LOG, self.start.filter_version, Lsn(end), size))

    def release(self, end: int) -> None:
        self.released = max(self.released, end)
        self.feed(ReleaseAdvanced(Lsn(end)))

    def trim(self, end: int) -> None:
        self.trimmed = max(self.trimmed, end)
        self.feed(TrimAdvanced(Lsn(end)))
        self.store.trim(LOG, Lsn(end))

    def answer(self) -> None:
        read, self.read = self.read, None
        if read is not None:
            self.feed(self.store.scan(read))

    def flush(self) -> None:
        size, self.queued = self.queued, 0
        self.feed(MessageSent(size))

    def feed(self, event: Event) -> None:
        for effect in self.stream.handle(event, 0):
            assert not self.has_ended
            match effect:
                case Started(filter_version=version):
                    assert version == self.start.filter_version
                    assert not self.is_started
                    self.is_started = True
                case Records() as message:
                    self._on_records(message)
                case GapNotice() as notice:
                    self._on_gap(notice)
                case StoreRead() as read:
                    assert self.read is None, "two reads in flight"
                    self.read = read
                case EndServerStream():
                    assert self.told == END
                    self.has_ended = True

    def _on_records(self, message: Records) -> None:
        assert self.is_started
        assert message.filter_version == self.start.filter_version
        for record in message.records:
            assert self.told <= record.lsn < min(END, self.released, self.window)
            self._assert_nothing_of_ours(self.told, record.lsn)
            self.told = record.lsn + 1
            self.queued += record.size

    def _on_gap(self, notice: GapNotice) -> None:
        assert self.is_started
        assert notice.filter_version == self.start.filter_version
        assert self.told <= notice.start < notice.end
        if notice.reason is GapReason.TRIM:
            assert notice.end <= self.trimmed
        else:
            assert notice.reason is GapReason.NO_RECORDS
            assert notice.end <= min(END, self.released)
            self._assert_nothing_of_ours(self.told, notice.end)
        self.told = notice.end

    def _assert_nothing_of_ours(self, start: int, end: int) -> None:
        copies = CopyFilter(N1, self.start, {})
        for lsn in range(max(start, self.trimmed), end):
            assert lsn not in self.copysets or not copies.ships(nodes(self.copysets[lsn]), 0)


LSNS = st.integers(1, END + 5)
STEPS = st.one_of(
    st.tuples(st.just("slide"), LSNS, st.integers(0, 2000)),
    st.tuples(st.just("release"), LSNS),
    st.tuples(st.just("trim"), st.integers(1, END // 2)),
    st.tuples(st.just("rewind"), st.sampled_from(list(ReadMode))),
    st.just(("answer",)),
    st.just(("flush",)),
)


@given(
    st.dictionaries(st.integers(1, END - 1), st.sampled_from([[1, 2], [2, 1], [3, 1]]), max_size=30),
    st.builds(NodeReadSettings, read_bytes_max=st.integers(1, 500), send_queue_bytes_max=st.integers(1, 500)),
    st.integers(1, 10),
    st.lists(STEPS, max_size=30),
)
def test_whatever_happens_the_reader_hears_of_every_lsn_once_and_in_order(
    copysets: dict[int, list[int]],
    settings: NodeReadSettings,
    examined: int,
    steps: list[tuple[str, *tuple[object, ...]]],
) -> None:
    reader = Reader(copysets, settings, examined)
    reader.rewind(ReadMode.SCD)
    for name, *arguments in steps:
        getattr(reader, name)(*arguments)
    # With nothing in its way, the stream comes to its end.
    reader.release(END + 5)
    reader.slide(END, 1_000_000)
    for _ in range(3 * END):
        reader.answer()
        reader.flush()
    assert reader.has_ended
