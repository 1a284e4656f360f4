"""The failure cases of JGroups' SEQUENCER tests: forward tables, a received table, coordinators that die.

A group has one log, that of the coordinator; the test says how much of it survives. Messages between a
sender and a coordinator wait until they are delivered, one by one or all at once. The log shows what every
member would have received: there is one order.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from logdevice.protocol.cluster.routing import SequencerFound
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.writers.forward_table import (
    Event,
    FindAnotherSequencer,
    ForwardTable,
    GiveUp,
    WriterIdentity,
)
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.settings import ClientSettings
from logdevice.types import Epoch, LogId, Lsn, NodeId

LOG = LogId(1)
A, B, C = NodeId(0), NodeId(1), NodeId(2)


@dataclass
class Group:
    """The log, and the coordinator that numbers it; None if there is none yet."""

    coordinator: NodeId | None = A
    epoch: int = 1
    log: list[tuple[Lsn, Append]] = field(default_factory=list)
    table: ReceivedTable = field(default_factory=lambda: ReceivedTable(writers_max=10, window=8))
    mail: deque[tuple[Sender, Ask[Append]]] = field(default_factory=deque)

    def fail_over(self, to: NodeId | None, *, lose: int = 0) -> None:
        """The coordinator dies, and its last `lose` messages are lost; the next one knows the others."""
        self.coordinator = to
        self.epoch += 1
        self.log = self.log[: len(self.log) - lose]
        self.table = ReceivedTable(writers_max=10, window=8)
        for lsn, append in self.log:
            assert append.tag is not None
            assert self.table.replay(append.tag, lsn)

    def take(self, node: NodeId, append: Append) -> Appended:
        assert append.tag is not None
        if node != self.coordinator:
            status = AppendStatus.NO_SEQUENCER if self.coordinator is None else AppendStatus.REDIRECTED
            return Appended(status=status, node=self.coordinator)
        judged = self.table.judge(append.tag)
        lsn = judged.lsn
        if judged.status is AppendStatus.OK:
            lsn = Lsn.of(self.epoch, len(self.log) + 1)
            self.log.append((lsn, append))
            self.table.note(append.tag, lsn)
        return Appended(
            status=judged.status, lsn=lsn, incarnation=judged.incarnation, expected=judged.expected
        )

    def deliver(self, count: int = 1_000, *, answers_arrive: bool = True, late: bool = False) -> None:
        """Messages reach their nodes; with `late`, the newest first."""
        for _ in range(min(count, len(self.mail))):
            sender, sent = self.mail.pop() if late else self.mail.popleft()
            appended = self.take(sent.node, sent.request)
            if answers_arrive:
                sender.feed(Answered(sent.node, appended, sent.id))

    def lose_mail(self) -> None:
        mail, self.mail = self.mail, deque()
        for sender, sent in mail:
            sender.feed(Lost(sent.node, sent.request, id=sent.id))

    def settle(self, *senders: Sender) -> None:
        """Goes on until every append of the senders is in the log."""
        for _ in range(200):
            self.deliver()
            if not any(sender.table.unsettled for sender in senders):
                return
            for sender in senders:
                sender.wait(50)
        raise AssertionError("an append never got through")

    def received(self) -> list[str]:
        return [bytes(append.body).decode() for _, append in self.log]


class Sender:
    def __init__(self, group: Group, writer: int, *, incarnation: int = 1, first_seq: int = 1) -> None:
        settings = ClientSettings(
            writer_window=4,
            resend_timeout_ms=100,
            attempt_timeout_ms=200,
            retry_pause_ms_min=5,
            writer_pause_ms_max=20,
        )
        identity = WriterIdentity(log=LOG, writer=writer, incarnation=incarnation)
        self.table = ForwardTable(identity, settings, first_seq)
        self.settled = 0
        self.is_fenced = False
        self._group = group
        self._now_ms = 0
        self._requests = 0

    def send(self, *texts: str) -> None:
        for text in texts:
            self._requests += 1
            self.feed(Asked(self._requests, Append(log=LOG, body=text.encode(), entries=1)))

    def wait(self, duration_ms: int) -> None:
        self._now_ms += duration_ms
        self.feed(Woken())

    def feed(self, event: Event) -> None:
        for effect in self.table.handle(event, self._now_ms):
            match effect:
                case Ask():
                    self._group.mail.append((self, effect))
                case FindAnotherSequencer():
                    self.feed(SequencerFound(self._group.coordinator))
                case Reply():
                    self.settled += 1
                case GiveUp():
                    self.is_fenced = True
                case WakeAt():
                    pass


def texts(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


@pytest.mark.parametrize("lost", [0, 3])
@pytest.mark.parametrize("answers_arrive", [False, True])
def test_a_coordinator_that_dies_in_the_middle(answers_arrive: bool, lost: int) -> None:
    """O15, O1: broadcastSequence. 50 messages, the same order for all members."""
    group = Group()
    sender = Sender(group, 1)
    sender.send(*texts("m", 50))
    for _ in range(9):
        group.deliver(1)
    group.deliver(3, answers_arrive=answers_arrive)
    group.fail_over(B, lose=0 if answers_arrive else min(lost, 3))
    sender.wait(200)
    group.settle(sender)
    assert group.received() == texts("m", 50)
    assert sender.settled == 50


def test_new_messages_do_not_overtake_those_that_are_sent_again() -> None:
    """O14, O15: resendingVersusNewMessages."""
    group = Group()
    sender = Sender(group, 1)
    sender.send("1")
    group.coordinator = None
    group.lose_mail()
    sender.send("2", "3", "4", "5")
    group.fail_over(B)
    group.settle(sender)
    assert group.received() == ["1", "2", "3", "4", "5"]


def test_the_second_messages_of_five_senders_follow_all_first_ones() -> None:
    """O15: failoverWithMultipleThreadsSendingMessages."""
    group = Group()
    senders = [Sender(group, writer) for writer in range(5)]
    for number, sender in enumerate(senders):
        sender.send(f"{'abcde'[number]}1")
    group.deliver(2)
    group.deliver(1, answers_arrive=False)
    group.lose_mail()
    group.fail_over(B)
    for sender in senders:
        sender.wait(200)
    group.settle(*senders)
    for number, sender in enumerate(senders):
        sender.send(f"{'abcde'[number]}2")
    group.settle(*senders)
    assert sorted(group.received()[:5]) == ["a1", "b1", "c1", "d1", "e1"]
    assert sorted(group.received()[5:]) == ["a2", "b2", "c2", "d2", "e2"]


@pytest.mark.parametrize("seed", range(5))
def test_ten_senders_keep_their_order_over_a_network_that_shuffles(seed: int) -> None:
    """O2, O15: SequencerOrderTest. Each sender's own order is kept, and no message is in the log twice."""
    chance = random.Random(seed)
    group = Group()
    senders = [Sender(group, writer) for writer in range(10)]
    for writer, sender in enumerate(senders):
        sender.send(*texts(f"{writer}-", 50))
    for _ in range(300):
        chance.shuffle(group.mail)
        group.deliver(chance.randint(1, 5), answers_arrive=chance.random() < 0.9)
        for sender in senders:
            sender.wait(chance.choice([1, 20, 120]))
    group.settle(*senders)
    for writer in range(10):
        own = [text for text in group.received() if text.startswith(f"{writer}-")]
        assert own == texts(f"{writer}-", 50)


def test_a_message_is_sent_again_until_a_node_is_the_coordinator() -> None:
    """O16: mergeAndSendOrdering, and NOT_COORD of FORWARD_TO_COORD."""
    group = Group()
    sender = Sender(group, 1)
    sender.send("1")
    group.coordinator = None
    for _ in range(5):
        group.deliver()
        sender.wait(20)
    assert group.received() == []
    group.fail_over(C)
    sender.send("2")
    group.settle(sender)
    assert group.received() == ["1", "2"]


def test_a_message_on_its_way_survives_the_loss_of_the_coordinator() -> None:
    """O16: FORWARD_TO_COORD, leave and crash."""
    group = Group()
    sender = Sender(group, 1)
    sender.send("1")
    group.lose_mail()
    group.fail_over(B)
    sender.wait(20)
    group.deliver(answers_arrive=False)
    group.fail_over(C)
    sender.wait(200)
    group.settle(sender)
    assert group.received() == ["1"]


def test_failovers_in_the_middle_of_a_failover_lose_nothing() -> None:
    """O15: each flush is interrupted by another view."""
    group = Group()
    sender = Sender(group, 1)
    sender.send(*texts("m", 20))
    for node in (B, C, A, B, C, A):
        group.deliver(3)
        group.deliver(2, answers_arrive=False)
        group.fail_over(node, lose=1)
        sender.wait(200)
    group.settle(sender)
    assert group.received() == texts("m", 20)


def test_duplicates_are_recognised_beyond_the_remembered_positions() -> None:
    """O1, O6: in JGroups this overflowed the delivery table."""
    group = Group()
    sender = Sender(group, 1)
    sender.send(*texts("m", 60))
    group.settle(sender)
    for _, append in list(group.log):
        assert group.take(A, append).status is AppendStatus.DUPLICATE
    assert group.received() == texts("m", 60)


def test_a_member_that_comes_back_under_its_old_name_fences_its_old_process_out() -> None:
    """O4, O17: a new incarnation begins where the old one ended; the old one's later messages are refused."""
    group = Group()
    old = Sender(group, 1)
    old.send("1", "2")
    group.settle(old)
    new = Sender(group, 1, incarnation=2, first_seq=2)  # it asked for its first number too early
    new.send("3")
    group.settle(new)
    old.send("zombie")
    group.deliver()
    assert old.is_fenced
    assert group.received() == ["1", "2", "3"]


def test_after_a_failover_messages_go_one_by_one_until_they_get_through() -> None:
    """O15: the window grows, and after the failover it begins with one message again."""
    group = Group()
    sender = Sender(group, 1)
    sender.send(*texts("m", 30))
    assert len(group.mail) == 1
    for expected in (2, 4, 4, 4):
        group.deliver(1)
        assert len(group.mail) == expected
    group.fail_over(B)
    group.deliver(1)
    tag = group.mail[-1][1].request.tag
    assert tag is not None
    assert tag.first_seq == 5
    sender.wait(20)
    group.settle(sender)
    assert group.received() == texts("m", 30)


def test_a_message_that_is_delayed_across_epochs_changes_nothing() -> None:
    """O1: an old message reaches a new coordinator, on the same node, whose log has it already."""
    group = Group()
    sender = Sender(group, 1)
    sender.send("1")
    delayed = list(group.mail)
    group.mail.clear()
    group.fail_over(B)
    sender.wait(200)
    sender.wait(20)
    group.settle(sender)
    group.fail_over(A)
    group.mail.extend(delayed)
    group.deliver(late=True)
    assert group.received() == ["1"]
    assert Epoch(group.epoch) == 3
