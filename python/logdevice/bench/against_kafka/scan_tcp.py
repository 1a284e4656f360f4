"""Full rows once more, with LogDevice's local sockets turned off.

A reader on the machine of a node gets records over a local socket, straight from the node's files. Kafka has
no such way, and readers on other machines cannot use it: over TCP both systems do the same. So the nodes are
restarted with `data_local = false`, and restarted with the old setting afterwards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Final

from logdevice.bench.against_kafka import loading
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn
from logdevice.cli.commands import clusters
from logdevice.cli.local.local_cluster import LocalCluster, write_json

SHAPES: Final = {"100 B": 100, "1 KB": 1_024}


class ScanTcp:
    name = "scan_tcp"

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def prepare(self, stand: Stand) -> None:
        restart(stand.logdevice, is_local=False)
        for shape, size in SHAPES.items():
            self._rows[shape] = loading.load_events(stand, f"tcp-{size}", size, stand.sizes.scan_bytes)
        for _ in range(stand.sizes.warm_ups):
            for _ in self.repeat(stand, 0):
                pass

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for shape, size in SHAPES.items():
            rows = self._rows[shape]
            for system in in_turn((LOGDEVICE, KAFKA), repetition):
                frame = loading.batch(stand, system, f"tcp-{size}")
                started = time.monotonic()
                frame.write.format("noop").mode("overwrite").save()
                rate = rows / (time.monotonic() - started)
                case = f"{shape} / full rows"
                yield Value(self.name, case, system, repetition, "rows_per_s", "rows/s", rate)

    def finish(self, stand: Stand) -> None:
        restart(stand.logdevice, is_local=True)


def restart(cluster: LocalCluster, *, is_local: bool) -> None:
    cluster.stop_all(clusters.STOP_TIMEOUT_MS)
    for entry in cluster.nodes.values():
        plain = json.loads(entry.config.read_text())
        wire = {**plain["settings"].get("wire", {}), "data_local": is_local}
        plain["settings"]["wire"] = wire
        write_json(entry.config, plain)
    clusters.start(cluster)


WORKLOAD: Final = ScanTcp()
