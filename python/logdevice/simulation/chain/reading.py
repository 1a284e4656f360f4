"""Reading single positions, with the read stream that all readers have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from logdevice.protocol.chain.point_read import PointStatus
from logdevice.simulation.process import Process
from logdevice.simulation.reader import SimulatedReader
from logdevice.simulation.whole.cluster import Cluster
from logdevice.types import GapType, Lsn

_LOOK_MS = 25
_NOTHING = (GapType.HOLE, GapType.BRIDGE)


class PositionReads:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def read(self, process: Process, lsn: Lsn, done: Callable[[PointStatus], None]) -> None:
        plan = replace(self._cluster.reading.readers[0], start=lsn, end=lsn.next)
        reader = SimulatedReader(f"{process.name}-at-{lsn}", plan, self._cluster)
        reader.start()
        self._look(process, reader, lsn, done)

    def _look(
        self, process: Process, reader: SimulatedReader, lsn: Lsn, done: Callable[[PointStatus], None]
    ) -> None:
        view = reader.view
        if view.next is None or view.next <= lsn:
            process.later(_LOOK_MS, partial(self._look, process, reader, lsn, done))
        elif lsn in view.records:
            done(PointStatus.WRITTEN)
        else:
            is_nothing = all(gap.type in _NOTHING for gap in view.gaps)
            done(PointStatus.HOLE if is_nothing else PointStatus.LOST)
