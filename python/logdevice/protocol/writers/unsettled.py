"""Unsettled appends: those that a writer has numbered and that are not yet acknowledged, in order.

A part of the forward table. Appends on their way come first; the others wait after them. It also remembers
the asks of earlier attempts and their appends, because one of those may have got through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from logdevice.protocol.messages.write import Append


@dataclass(slots=True, eq=False)
class UnsettledAppend:
    id: int  # of the request
    append: Append  # without a tag
    seq: int
    is_inherited: bool  # numbered by an earlier process
    sends: int = 0
    ask_id: int = 0  # of the ask on its way; 0: none


class Unsettled:
    def __init__(self, first_seq: int) -> None:
        self._next_seq = first_seq
        self._on_way: dict[int, UnsettledAppend] = {}  # both by number and in its order
        self._waiting: dict[int, UnsettledAppend] = {}
        self._asks: dict[int, int] = {}  # the number that was sent with each ask that has not ended
        self._last_ask = 0

    def __len__(self) -> int:
        return len(self._on_way) + len(self._waiting)

    def first(self) -> UnsettledAppend:
        return next(iter((self._on_way or self._waiting).values()))

    def add(self, id: int, append: Append, seq: int | None) -> int:
        """Adds an append; returns `seq`, its number from an earlier process, or else the next number."""
        entry = UnsettledAppend(id, append, self._next_seq if seq is None else seq, seq is not None)
        self._waiting[entry.seq] = entry
        self._next_seq = max(self._next_seq, entry.seq + 1)
        return entry.seq

    def send(self, window: int, window_max: int) -> Iterator[UnsettledAppend]:
        """The appends to send now, until `window` are on their way."""
        stable_upto = self.first().seq
        while self._waiting and len(self._on_way) < window:
            entry = next(iter(self._waiting.values()))
            if entry.seq - stable_upto >= window_max:
                return
            self._on_way[entry.seq] = self._waiting.pop(entry.seq)
            self._last_ask += 1
            self._asks[self._last_ask] = entry.seq
            entry.ask_id = self._last_ask
            entry.sends += 1
            yield entry

    def end_ask(self, ask_id: int) -> UnsettledAppend | None:
        """The append that was asked for; None if it is settled or has another number by now."""
        seq = self._asks.pop(ask_id, 0)
        return self._on_way.get(seq) or self._waiting.get(seq)

    def remove(self, entry: UnsettledAppend) -> None:
        (self._on_way if entry.ask_id else self._waiting).pop(entry.seq)

    def rewind(self) -> None:
        """Makes all appends wait again: none counts as on its way."""
        for entry in self._on_way.values():
            entry.ask_id = 0
        self._waiting = self._on_way | self._waiting
        self._on_way = {}

    def renumber(self, refused: UnsettledAppend, first_seq: int) -> list[UnsettledAppend]:
        """Gives new numbers to the refused append and to those never sent. The others may still get in."""
        moved = [entry for entry in self._waiting.values() if entry is refused or not entry.sends]
        self._next_seq = max(first_seq, self._next_seq)
        for entry in moved:
            del self._waiting[entry.seq]
            entry.seq, entry.sends = self._next_seq, 0
            self._waiting[entry.seq] = entry
            self._next_seq += 1
        return moved

    def is_first_try(self, tried: UnsettledAppend) -> bool:
        """Whether this is the only unsettled append that was sent, and it was sent only once."""
        others = (entry for entry in self._waiting.values() if entry is not tried)
        return tried.sends == 1 and not tried.is_inherited and not any(entry.sends for entry in others)
