"""Watches all readers during a run and notes every broken promise.

It lives as long as the run. It calls the checks of checkers.py at the moment when something happens, because
the truth changes later.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import Records, Start, Window
from logdevice.simulation.reading import checkers
from logdevice.simulation.reading.truth import Truth
from logdevice.simulation.reading.view import ReaderView
from logdevice.simulation.world import World
from logdevice.types import Gap, Lsn, NodeId, Record

Item = Record | Gap


class ReaderWitness:
    """Collects violations, each with its time and the affected process; knows what every reader got."""

    def __init__(self, world: World) -> None:
        self.violations: list[str] = []
        self.views: dict[str, ReaderView] = {}  # by the names of the readers
        self._world = world

    def complain(self, who: str, complaint: str | None) -> None:
        if complaint is not None:
            self._world.say("VIOLATION", f"{who}: {complaint}")
            self.violations.append(f"{self._world.now_ms} ms {who}: {complaint}")

    def asked(self, view: ReaderView, message: Start | Window) -> None:
        self.complain(view.name, checkers.window_too_wide(view, message))

    def sent(self, view: ReaderView, node: NodeId, message: Records) -> None:
        """A node sends records to this reader."""

    def delivered(self, view: ReaderView, item: Item) -> None:
        raise NotImplementedError

    def accepted(self, view: ReaderView, item: Item) -> None:
        self.complain(view.name, checkers.out_of_order(view, item))
        if isinstance(item, Record):
            view.records[item.lsn] = item
            view.next = item.lsn.next
        else:
            view.gaps.append(item)
            view.next = item.end


class ReadWitness(ReaderWitness):
    """Compares what readers of an oracle's log get with the truth."""

    def __init__(self, truth: Truth, world: World) -> None:
        super().__init__(world)
        self.wire: dict[str, dict[Lsn, int]] = {}  # by reader: how often each record was sent to it
        self._senders: dict[str, tuple[int, dict[Lsn, NodeId]]] = {}  # by reader, of one version
        self._truth = truth

    def delivered(self, view: ReaderView, item: Item) -> None:
        self.complain(view.name, checkers.unreleased(self._truth, item))
        if isinstance(item, Record):
            self.complain(view.name, checkers.wrong_content(self._truth, view, item))
            return
        self.complain(view.name, checkers.untrue_gap(self._truth, view, item))
        self.complain(view.name, checkers.mistaken_trim(self._truth, view, item))
        self.complain(view.name, checkers.invented_loss(self._truth, view, item))
        self.complain(view.name, checkers.gap_by_silence_in_scd(self._truth, view, item))

    def sent(self, view: ReaderView, node: NodeId, message: Records) -> None:
        """A node sends records to this reader."""
        wire = self.wire.setdefault(view.name, {})
        version, senders = self._senders.get(view.name, (0, {}))
        if version != message.filter_version:
            if message.filter_version < version:
                return  # a late message of an older version, which was checked while it was current
            senders = {}
            self._senders[view.name] = (message.filter_version, senders)
        for record in message.records:
            lsn = record.lsn
            wire[lsn] = wire.get(lsn, 0) + 1
            earlier = senders.setdefault(lsn, node)
            if earlier != node and view.reading.filter_version == message.filter_version:
                slot = self._truth.slots[lsn]
                self.complain(view.name, checkers.second_copy(slot, view, earlier=earlier, sender=node))

    def compare(self, views: list[ReaderView]) -> None:
        for index, first in enumerate(views):
            for second in views[index + 1 :]:
                name = f"{first.name} and {second.name}"
                self.complain(name, checkers.disagreement(self._truth, first, second))
