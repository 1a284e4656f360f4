"""Slow-node detector: finds nodes that make the reader wait much longer than their peers do.

In single-copy delivery the slowest node sets the pace. For every window the detector adds up how
long the head of the stream was missing while a node still owed an answer, and divides this time by the
number of answers: the reader always waits for a node that sends a whole block at full speed, but never
for long. Time spent waiting for the application, for a release or for credit counts against no node. A
node whose wait stands out against its peers (mean, spread and a margin that grows with every verdict) is
put on probation: it is filtered out like a node that is down. After its probation it is measured anew.
Each further probation lasts twice as long; a healthy time shortens the next one (read_path.md L1 to L6).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from logdevice.settings import ReadStreamSettings
from logdevice.types import NodeId

_BUCKETS = 10
_DEVIATIONS = 5


class MovingAverage:
    """Mean of the samples of the last `span_ms`, kept in ten buckets."""

    def __init__(self, span_ms: int) -> None:
        self._bucket_ms = max(1, span_ms // _BUCKETS)
        self._buckets: deque[tuple[int, float, int]] = deque()

    def add(self, value: float, now_ms: int) -> None:
        current = now_ms // self._bucket_ms
        while self._buckets and self._buckets[0][0] <= current - _BUCKETS:
            self._buckets.popleft()
        total, count = 0.0, 0
        if self._buckets and self._buckets[-1][0] == current:
            _, total, count = self._buckets.pop()
        self._buckets.append((current, total + value, count + 1))

    @property
    def mean(self) -> float:
        count = sum(bucket[2] for bucket in self._buckets)
        return sum(bucket[1] for bucket in self._buckets) / count if count else 0.0


class _Node:
    """What is known about one node."""

    __slots__ = ("answers", "average", "healthy_since_ms", "probation_ms", "waited_ms")

    def __init__(self, settings: ReadStreamSettings, now_ms: int) -> None:
        self.average = MovingAverage(settings.slow_node_average_ms)
        self.waited_ms = 0  # in the current window
        self.answers = 0  # in the current window
        self.probation_ms = float(settings.slow_node_probation_ms_min)
        self.healthy_since_ms = now_ms

    @property
    def wait_ms(self) -> float:
        """How long one answer took in the current window. The answer that is owed counts, too."""
        return self.waited_ms / (self.answers + 1)

    def begin_window(self) -> None:
        self.waited_ms = self.answers = 0


class SlowNodeDetector:
    """Told by the stream for which nodes it waits, it decides which nodes are on probation."""

    def __init__(self, settings: ReadStreamSettings) -> None:
        self._settings = settings
        self._nodes: dict[NodeId, _Node] = {}
        self._probation_end_ms: dict[NodeId, int] = {}
        self._margin = settings.slow_node_margin
        self._margin_ms = 0
        self._waiting_for: tuple[NodeId, ...] = ()
        self._since_ms = 0

    @property
    def is_off(self) -> bool:
        return self._settings.slow_node_detection == "disabled"

    @property
    def on_probation(self) -> tuple[NodeId, ...]:
        return tuple(sorted(self._probation_end_ms))

    @property
    def probation_end_ms(self) -> int | None:
        """When the first node's probation ends."""
        return min(self._probation_end_ms.values(), default=None)

    def waits_for(self, nodes: tuple[NodeId, ...], now_ms: int) -> None:
        """From now on the head is missing and these nodes owe an answer. Empty: no node does."""
        waited_ms = now_ms - self._since_ms
        if waited_ms > 0:
            for node in self._waiting_for:
                self._node(node, now_ms).waited_ms += waited_ms
        self._waiting_for, self._since_ms = nodes, now_ms

    def answered(self, node: NodeId, now_ms: int) -> None:
        """A message came from this node."""
        self._node(node, now_ms).answers += 1

    def window_done(self, nodes: Iterable[NodeId], now_ms: int) -> None:
        """The window slid: the wait for each node in it becomes a sample."""
        self.waits_for((), now_ms)
        for node in nodes:
            state = self._node(node, now_ms)
            state.average.add(state.wait_ms, now_ms)
            state.begin_window()

    def restart_window(self, now_ms: int) -> None:
        """A rewind: the window is read again and measured again."""
        self._waiting_for, self._since_ms = (), now_ms
        for state in self._nodes.values():
            state.begin_window()

    def check(self, candidates: Sequence[NodeId], outliers_max: int, now_ms: int) -> bool:
        """End probations and find slow nodes among `candidates`; True if the list of slow nodes changed."""
        self.waits_for(self._waiting_for, now_ms)
        before = self.on_probation
        for node in before:
            if self._probation_end_ms[node] <= now_ms:
                del self._probation_end_ms[node]
                state = self._node(node, now_ms)
                state.average = MovingAverage(self._settings.slow_node_average_ms)
                state.healthy_since_ms = now_ms
        outliers = self._outliers(
            [node for node in candidates if node not in self._probation_end_ms],
            outliers_max - len(self._probation_end_ms),
            now_ms,
        )
        for node in outliers:
            self._put_on_probation(node, now_ms)
        return self.on_probation != before

    def _outliers(self, nodes: list[NodeId], count_max: int, now_ms: int) -> list[NodeId]:
        """The largest group of at most `count_max` nodes that is much slower than all others."""
        cost = {node: self._cost(node, now_ms) for node in nodes}
        ranked = sorted(nodes, key=lambda node: (-cost[node], node))
        for count in range(min(count_max, len(ranked) - 2), 0, -1):
            rest = [cost[node] for node in ranked[count:]]
            threshold = self._threshold(rest, now_ms)
            if cost[ranked[count - 1]] >= threshold:
                return ranked[:count]
        return []

    def _cost(self, node: NodeId, now_ms: int) -> float:
        state = self._node(node, now_ms)
        return max(state.average.mean, state.wait_ms)

    def _threshold(self, rest: Sequence[float], now_ms: int) -> float:
        mean = sum(rest) / len(rest)
        spread = math.sqrt(sum((value - mean) ** 2 for value in rest) / len(rest))
        decay = self._settings.slow_node_margin_decay_per_s * (now_ms - self._margin_ms) / 1000
        margin = max(self._settings.slow_node_margin, self._margin - decay)
        return max(self._settings.slow_node_floor_ms, mean + _DEVIATIONS * spread + mean * margin)

    def _put_on_probation(self, node: NodeId, now_ms: int) -> None:
        settings, state = self._settings, self._node(node, now_ms)
        healthy_ms = now_ms - state.healthy_since_ms
        probation_ms = max(
            settings.slow_node_probation_ms_min,
            state.probation_ms - settings.slow_node_probation_decay * healthy_ms,
        )
        self._probation_end_ms[node] = now_ms + int(probation_ms)
        state.probation_ms = min(settings.slow_node_probation_ms_max, probation_ms * 2)
        decay = settings.slow_node_margin_decay_per_s * (now_ms - self._margin_ms) / 1000
        self._margin = 2 * max(settings.slow_node_margin, self._margin - decay)
        self._margin_ms = now_ms

    def forget(self, node: NodeId) -> None:
        """Drop everything about a node that left the read set."""
        self._nodes.pop(node, None)
        self._probation_end_ms.pop(node, None)
        self._waiting_for = tuple(other for other in self._waiting_for if other != node)

    def _node(self, node: NodeId, now_ms: int) -> _Node:
        if node not in self._nodes:
            self._nodes[node] = _Node(self._settings, now_ms)
        return self._nodes[node]
