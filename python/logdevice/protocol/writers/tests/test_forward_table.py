"""A writer's forward table: what it sends, in which order, and what it does after every answer."""

from __future__ import annotations

import pytest

from logdevice.protocol.cluster.routing import SequencerFound
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.writers.forward_table import (
    Effect,
    Event,
    FindAnotherSequencer,
    ForwardTable,
    GiveUp,
    IncarnationRenewed,
    Numbered,
    RenewIncarnation,
    Resumed,
    WriterIdentity,
)
from logdevice.settings import ClientSettings
from logdevice.types import Epoch, LogId, Lsn, NodeId

LOG = LogId(7)
N1, N2 = NodeId(1), NodeId(2)
SETTINGS = ClientSettings(
    writer_window=4,
    resend_timeout_ms=100,
    attempt_timeout_ms=400,
    retry_pause_ms_min=10,
    writer_pause_ms_max=40,
)


def number_of(ask: Ask[Append]) -> int:
    assert ask.request.tag is not None
    return ask.request.tag.first_seq


def answer_of(seq: int, status: AppendStatus = AppendStatus.OK, **fields: object) -> Appended:
    if status is AppendStatus.OK:
        fields.setdefault("lsn", Lsn.of(3, seq))
    return Appended(status=status, **fields)  # type: ignore[arg-type]


class Writing:
    def __init__(
        self, *, ordered: bool = True, incarnation: int = 2, since: Lsn = Lsn(0), first_seq: int = 1
    ) -> None:
        identity = WriterIdentity(log=LOG, writer=5, incarnation=incarnation, is_ordered=ordered, since=since)
        self.table = ForwardTable(identity, SETTINGS, first_seq)
        self.now_ms = 0
        self.requests = 0
        self.effects: list[Effect] = []
        self.sent: dict[int, Ask[Append]] = {}  # the newest ask of each number

    def feed(self, event: Event) -> list[Effect]:
        self.effects = self.table.handle(event, self.now_ms)
        for ask in self.asks():
            self.sent[number_of(ask)] = ask
        return [effect for effect in self.effects if not isinstance(effect, WakeAt)]

    def asks(self) -> list[Ask[Append]]:
        return [effect for effect in self.effects if isinstance(effect, Ask)]

    def wait(self, duration_ms: int) -> list[Effect]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    def submit(self, count: int = 1, *, seq: int | None = None) -> list[Effect]:
        effects: list[Effect] = []
        for _ in range(count):
            self.requests += 1
            append = Append(log=LOG, body=b"%d" % self.requests, entries=1)
            effects += self.feed(
                Asked(self.requests, append) if seq is None else Resumed(self.requests, append, seq)
            )
        return effects

    def answer(self, seq: int, status: AppendStatus = AppendStatus.OK, **fields: object) -> list[Effect]:
        return self.answer_to(self.sent[seq], answer_of(seq, status, **fields))

    def answer_to(self, ask: Ask[Append], answer: Appended) -> list[Effect]:
        return self.feed(Answered(ask.node, answer, ask.id))

    def lose(self, ask: Ask[Append]) -> list[Effect]:
        return self.feed(Lost(ask.node, ask.request, id=ask.id))

    def sends(self) -> list[int]:
        return [number_of(ask) for ask in self.asks()]

    def run_in(self) -> None:
        """Goes on until the sequencer is found and the window is open."""
        self.submit(3)
        self.feed(SequencerFound(N1))
        for seq in (1, 2, 3):
            self.answer(seq)


def test_the_first_append_goes_alone_to_the_node_that_numbers_the_log() -> None:
    """O14, O15: it says below which number everything is acknowledged."""
    writing = Writing(since=Lsn.of(2, 9))
    assert writing.submit() == [Numbered(1, 1), FindAnotherSequencer(None)]
    assert writing.submit() == [Numbered(2, 2)]
    (sent,) = writing.feed(SequencerFound(N1))
    assert isinstance(sent, Ask)
    assert sent.node == N1
    tag = sent.request.tag
    assert sent.request == Append(log=LOG, body=b"1", entries=1, tag=tag, since=Lsn.of(2, 9))
    assert tag is not None
    assert (tag.writer, tag.incarnation, tag.first_seq, tag.stable_upto, tag.is_ordered) == (5, 2, 1, 1, True)


def test_every_answer_doubles_the_window_up_to_its_limit() -> None:
    """O15."""
    writing = Writing()
    writing.submit(20)
    writing.feed(SequencerFound(N1))
    assert writing.sends() == [1]
    assert writing.answer(1)[0] == Reply(1, answer_of(1))
    assert writing.sends() == [2, 3]
    writing.answer(2)
    assert writing.sends() == [4, 5, 6]
    writing.answer(3)
    assert writing.sends() == [7]
    assert writing.table.unsettled == 17
    assert writing.sent[7].request.seen_epoch == Epoch(3)


def test_after_a_failure_everything_is_sent_again_in_order_the_first_alone() -> None:
    """O15: an answer to an older attempt counts only if it says that the append is in the log."""
    writing = Writing()
    writing.run_in()
    writing.submit(4)
    asks = [writing.sent[4]]
    writing.answer(5, AppendStatus.OUT_OF_ORDER, expected=4)
    assert writing.sends() == [4]
    asks.append(writing.sent[4])
    for pause_ms in (10, 20):
        writing.wait(100)
        assert writing.wait(pause_ms) == [FindAnotherSequencer(N1)]
        writing.feed(SequencerFound(N1))
        assert writing.sends() == [4]
        asks.append(writing.sent[4])
    assert writing.answer_to(asks[0], answer_of(4, AppendStatus.FENCED)) == []
    assert writing.lose(asks[1]) == []
    assert writing.answer_to(asks[2], answer_of(4))[0] == Reply(4, answer_of(4))
    assert writing.sends() == [5, 6]
    assert writing.answer_to(asks[3], answer_of(4)) == []


def test_without_an_answer_the_writer_looks_for_another_sequencer() -> None:
    """O16: soon at first; if it does not find one, it waits longer."""
    writing = Writing()
    writing.run_in()
    writing.submit(2)
    assert writing.wait(99) == []
    assert writing.wait(1) == []
    assert writing.table.trouble is AppendStatus.UNKNOWN
    assert writing.wait(10) == [FindAnotherSequencer(N1)]
    assert writing.feed(SequencerFound(None)) == []
    assert writing.wait(19) == []
    assert writing.wait(1) == [FindAnotherSequencer(N1)]
    writing.feed(SequencerFound(N2))
    assert writing.sends() == [4]
    assert writing.sent[4].node == N2
    writing.answer(4, AppendStatus.DUPLICATE, lsn=Lsn.of(3, 4), incarnation=2)
    assert writing.table.trouble is None
    for _ in range(6):
        writing.wait(400)
        writing.wait(40)
        writing.feed(SequencerFound(N2))
    assert WakeAt(writing.now_ms + 400) in writing.effects


def test_a_broken_connection_is_noticed_at_once() -> None:
    """O16."""
    writing = Writing()
    writing.run_in()
    writing.submit()
    writing.lose(writing.sent[4])
    assert writing.wait(10) == [FindAnotherSequencer(N1)]


@pytest.mark.parametrize("status", [AppendStatus.REDIRECTED, AppendStatus.PREEMPTED])
def test_a_redirect_is_followed_without_a_pause_the_first_time(status: AppendStatus) -> None:
    """O16."""
    writing = Writing()
    writing.run_in()
    writing.submit()
    writing.answer(4, status, node=N2)
    assert writing.sends() == [4]
    assert writing.sent[4].node == N2
    assert writing.answer(4, status, node=N1) == []
    writing.wait(20)
    assert writing.sends() == [4]


@pytest.mark.parametrize("status", [AppendStatus.NO_SEQUENCER, AppendStatus.UNKNOWN, AppendStatus.PREEMPTED])
def test_a_refusal_that_names_no_node_makes_the_writer_look_for_the_sequencer(status: AppendStatus) -> None:
    """O16."""
    writing = Writing()
    writing.run_in()
    writing.submit()
    assert writing.answer(4, status) == []
    assert writing.wait(10) == [FindAnotherSequencer(N1)]


@pytest.mark.parametrize("status", [AppendStatus.OVERLOADED, AppendStatus.NO_SPACE])
def test_a_sequencer_that_cannot_take_more_is_given_time(status: AppendStatus) -> None:
    """O16."""
    writing = Writing()
    writing.run_in()
    writing.submit()
    assert writing.answer(4, status) == []
    assert writing.table.trouble is status
    assert writing.submit() == [Numbered(5, 5)]
    writing.wait(10)
    assert writing.sends() == [4]


def test_an_answer_that_comes_while_the_writer_pauses_counts() -> None:
    """O15."""
    writing = Writing()
    writing.run_in()
    writing.submit(2)
    writing.answer(5, AppendStatus.OVERLOADED)
    assert writing.answer(4)[0] == Reply(4, answer_of(4))
    writing.wait(10)
    assert writing.sends() == [5]


def test_an_append_under_a_number_that_an_earlier_process_has_used_is_not_acknowledged() -> None:
    """O17: until the log has an append of this process, only one is on its way."""
    writing = Writing()
    writing.submit(2)
    writing.feed(SequencerFound(N1))
    effects = writing.answer(1, AppendStatus.DUPLICATE, lsn=Lsn.of(2, 5), incarnation=1, expected=9)
    assert effects[:2] == [Numbered(1, 9), Numbered(2, 10)]
    assert writing.sends() == [9]
    assert writing.answer(9)[0] == Reply(1, answer_of(9))
    assert writing.sends() == [10]
    forgotten = answer_of(10, AppendStatus.DUPLICATE, expected=11)
    assert writing.answer_to(writing.sent[10], forgotten)[0] == Reply(2, forgotten)
    assert writing.submit()[0] == Numbered(3, 11)


def test_appends_of_an_earlier_process_are_sent_first_and_may_be_in_the_log_already() -> None:
    """O17."""
    writing = Writing(first_seq=6)
    assert writing.submit(seq=4)[0] == Numbered(1, 4)
    writing.submit(seq=5)
    writing.submit()
    writing.feed(SequencerFound(N1))
    there = answer_of(4, AppendStatus.DUPLICATE, lsn=Lsn.of(2, 5), incarnation=1, expected=5)
    assert writing.answer_to(writing.sent[4], there)[0] == Reply(1, there)
    assert writing.sends() == [5]
    assert writing.answer(5)[0] == Reply(2, answer_of(5))
    assert writing.sends() == [6]


def test_a_taken_number_of_an_unordered_writer_moves_that_append_only() -> None:
    """O17: the others may get in under the numbers with which they were sent."""
    writing = Writing(ordered=False)
    writing.run_in()
    writing.submit(2)
    effects = writing.answer(4, AppendStatus.DUPLICATE, lsn=Lsn.of(2, 5), incarnation=1, expected=4)
    assert effects[0] == Numbered(4, 6)
    assert writing.sends() == [5]
    assert writing.sent[5].request.tag is not None
    assert not writing.sent[5].request.tag.is_ordered


def test_an_unordered_writer_stays_within_the_window_of_unsettled_appends() -> None:
    """O14."""
    writing = Writing(ordered=False)
    writing.run_in()
    writing.submit(8)
    for seq in (5, 6, 7):
        writing.answer(seq)
    assert writing.sends() == []
    writing.answer(4)
    assert writing.sends() == [8, 9, 10, 11]


def test_a_record_that_is_too_big_does_not_delay_those_after_it() -> None:
    """O18."""
    writing = Writing()
    writing.run_in()
    writing.submit(2)
    refused = Appended(status=AppendStatus.TOO_BIG)
    assert writing.answer(4, AppendStatus.TOO_BIG)[0] == Reply(4, refused)
    assert writing.sends() == [5]
    assert writing.sent[5].request.tag is not None
    assert writing.sent[5].request.tag.stable_upto == 5


def test_a_writer_that_was_forgotten_goes_on_under_a_new_incarnation() -> None:
    """O19: if none of its appends can be in the log. After a long pause it tries with one append."""
    writing = Writing()
    writing.run_in()
    writing.now_ms += 10_000
    writing.submit(3)
    assert writing.sends() == []
    assert list(writing.sent) == [1, 2, 3, 4]
    unknown = {"horizon": Lsn.of(8, 8)}
    assert writing.answer(4, AppendStatus.UNKNOWN_WRITER, **unknown) == [RenewIncarnation()]
    assert writing.submit() == [Numbered(7, 7)]
    effects = writing.feed(IncarnationRenewed(9))
    assert effects[:4] == [Numbered(4, 8), Numbered(5, 9), Numbered(6, 10), Numbered(7, 11)]
    sent = writing.sent[8]
    assert sent.request.since == Lsn.of(8, 8)
    assert sent.request.tag is not None
    assert sent.request.tag.incarnation == writing.table.incarnation == 9


def test_a_writer_that_was_forgotten_with_appends_on_their_way_gives_up() -> None:
    """O19."""
    writing = Writing()
    writing.run_in()
    writing.submit(2)
    appended = Appended(status=AppendStatus.UNKNOWN_WRITER)
    assert writing.answer(4, AppendStatus.UNKNOWN_WRITER) == [GiveUp(appended)]
    assert writing.table.is_over
    assert writing.submit() == []


def test_a_writer_that_is_fenced_off_gives_up() -> None:
    """O4."""
    writing = Writing()
    writing.run_in()
    writing.submit()
    appended = Appended(status=AppendStatus.FENCED, incarnation=3)
    assert writing.answer(4, AppendStatus.FENCED, incarnation=3) == [GiveUp(appended)]
