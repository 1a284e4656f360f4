"""Single-copy delivery: the read mode, the known-down list, and when to rewind.

No change takes effect at once, because nodes learn mode and list only from a START. Wishes for another
mode or another list are collected here, and the next rewind carries them out together (read_path.md R1).
Rewinds are spaced out by a delay that doubles with each and shrinks with time, so that a node that
fails again and again costs little.

A node is marked down for a bad checksum, a START that failed, a lost connection, silence past the timeout,
lost data, or a status that is not fully authoritative (read_path.md D1 to D6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from logdevice.protocol.messages.read import ReadMode
from logdevice.settings import ReadStreamSettings
from logdevice.types import NodeId


class RewindReason(Enum):
    CHECKSUM_FAIL = "CHECKSUM_FAIL"
    CONNECTION_LOST = "CONNECTION_LOST"
    STARTED_FAILED = "STARTED_FAILED"
    STARTED_TIMEOUT = "STARTED_TIMEOUT"
    REBUILDING = "REBUILDING"
    NOT_AUTHORITATIVE = "NOT_AUTHORITATIVE"
    BECAME_EMPTY = "BECAME_EMPTY"
    UNDER_REPLICATED = "UNDER_REPLICATED"
    SCD_TIMEOUT = "SCD_TIMEOUT"
    ALL_SEND_ALL_TIMEOUT = "ALL_SEND_ALL_TIMEOUT"
    NOBODY_HAS_IT = "NOBODY_HAS_IT"
    CONFIRM_LOSS = "CONFIRM_LOSS"
    NODE_BACK = "NODE_BACK"
    BACK_TO_SCD = "BACK_TO_SCD"
    SLOW_NODES_CHANGED = "SLOW_NODES_CHANGED"
    CONFIG_CHANGED = "CONFIG_CHANGED"


class Scd:
    """The mode and the lists in force, and those wanted from the next rewind on."""

    def __init__(self, preferred: ReadMode) -> None:
        self.preferred = preferred  # what the configuration and the reader ask for
        self.mode = preferred
        self.down: set[NodeId] = set()
        self.slow: set[NodeId] = set()
        self._wanted_mode: ReadMode | None = None
        self._wanted_down: set[NodeId] = set()
        self._wanted_up: set[NodeId] = set()
        self._wanted_slow: set[NodeId] = set()

    @property
    def is_active(self) -> bool:
        return self.mode is not ReadMode.ALL_SEND_ALL

    @property
    def filtered_out(self) -> set[NodeId]:
        return self.down | self.slow

    @property
    def known_down(self) -> tuple[NodeId, ...]:
        """The list START carries: down and slow nodes alike."""
        return tuple(sorted(self.filtered_out))

    def mark_down(self, node: NodeId) -> bool:
        """List the node. False if it is listed already, or if there is no list in all-send-all."""
        if not self.is_active or node in self._wanted_down:
            return False
        if node in self.down and node not in self._wanted_up:
            return False
        self._wanted_up.discard(node)
        self._wanted_down.add(node)
        return True

    def mark_up(self, node: NodeId) -> None:
        """Take the node off the list, unless it has failed again since the last rewind."""
        if node not in self._wanted_down:
            self._wanted_up.add(node)

    def want_slow(self, nodes: Iterable[NodeId]) -> bool:
        """List exactly these nodes as slow. True if this differs from the list in force."""
        self._wanted_slow = set(nodes)
        return self._wanted_slow - self.down != self.slow

    def want_mode(self, mode: ReadMode) -> None:
        self._wanted_mode = mode

    def apply(self, read_set: set[NodeId], unfit: Iterable[NodeId]) -> None:
        """Carry the wishes out. `unfit`: the nodes to list when single-copy delivery begins."""
        was_active = self.is_active
        self.mode = self._wanted_mode or self.mode
        if self.is_active and not was_active:
            self.down = set(unfit)
        self.down = ((self.down - self._wanted_up) | self._wanted_down) & read_set
        self.slow = (self._wanted_slow & read_set) - self.down
        if self.down == read_set:
            self.mode = ReadMode.ALL_SEND_ALL  # R6: no node is left to send a single copy
        if not self.is_active:
            self.down, self.slow = set(), set()
        self._wanted_mode = None
        self._wanted_down, self._wanted_up = set(), set()

    def forget(self, node: NodeId) -> bool:
        """The node left the read set; True if it was on the list in force."""
        was_listed = node in self.filtered_out
        for nodes in (self.down, self.slow, self._wanted_down, self._wanted_up, self._wanted_slow):
            nodes.discard(node)
        return was_listed


class Rewinds:
    """When the next rewind is due. Reasons that come before it share it (R3)."""

    def __init__(self, settings: ReadStreamSettings) -> None:
        self._settings = settings
        self._delay_ms = float(settings.rewind_delay_ms_min)
        self._last_ms: int | None = None
        self._pending: list[RewindReason] = []
        self.done = 0
        self.reasons: Counter[RewindReason] = Counter()

    @property
    def is_pending(self) -> bool:
        return bool(self._pending)

    @property
    def pending(self) -> tuple[RewindReason, ...]:
        return tuple(self._pending)

    def schedule(self, reason: RewindReason, now_ms: int) -> int | None:
        """The time of the rewind if this is the first reason for it; None if a rewind is pending already."""
        self._pending.append(reason)
        if len(self._pending) > 1:
            return None
        settings = self._settings
        if self._last_ms is not None:
            calm_ms = now_ms - self._last_ms
            self._delay_ms = max(
                settings.rewind_delay_ms_min, self._delay_ms - settings.rewind_delay_decay * calm_ms
            )
        self._last_ms = now_ms
        delay_ms = int(self._delay_ms)
        self._delay_ms = min(settings.rewind_delay_ms_max, self._delay_ms * 2)
        return now_ms + delay_ms

    def begin(self) -> None:
        """The pending rewind happens now."""
        self.done += 1
        self.reasons.update(self._pending)
        self._pending.clear()
