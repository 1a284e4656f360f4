"""Reading single positions, with an ordinary read stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from logdevice.protocol.chain.point_read import PointStatus
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.read_cluster import ReadCluster
from logdevice.simulation.reading.reader import SimulatedReader
from logdevice.types import GapType, Lsn

_LOOK_MS = 25
_NOTHING = (GapType.HOLE, GapType.BRIDGE)


def read_position(
    cluster: ReadCluster, process: SimProcess, lsn: Lsn, done: Callable[[PointStatus], None]
) -> None:
    plan = replace(cluster.reading.readers[0], start=lsn, end=lsn.next)
    reader = SimulatedReader(f"{process.name}-at-{lsn}", plan, cluster)
    view = reader.view

    def look() -> None:
        if view.next is None or view.next <= lsn:
            process.later(_LOOK_MS, look)
        elif lsn in view.records:
            done(PointStatus.WRITTEN)
        else:
            is_nothing = all(gap.type in _NOTHING for gap in view.gaps)
            done(PointStatus.HOLE if is_nothing else PointStatus.LOST)

    reader.start()
    look()
