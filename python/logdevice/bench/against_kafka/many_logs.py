"""The same data in 1, 10 and 100 logs, scanned by one query; compared with a topic of as many partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from logdevice.bench.against_kafka import loading
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn

ENTRY_BYTES: Final = 1_024


class ManyLogs:
    name = "many_logs"

    def __init__(self) -> None:
        self._rows = 0

    def prepare(self, stand: Stand) -> None:
        for logs in stand.sizes.many_logs:
            self._rows = loading.load_events(
                stand, f"many-{logs}", ENTRY_BYTES, stand.sizes.many_bytes, logs=logs
            )
        for _ in self.repeat(stand, 0):  # warms up
            pass

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for logs in stand.sizes.many_logs:
            case = f"{logs} log" + "s" * (logs > 1)
            for system in in_turn((LOGDEVICE, KAFKA), repetition):
                frame = loading.batch(stand, system, f"many-{logs}", logs=logs)
                started = time.monotonic()
                frame.write.format("noop").mode("overwrite").save()
                seconds = time.monotonic() - started
                yield Value(self.name, case, system, repetition, "rows_per_s", "rows/s", self._rows / seconds)

    def finish(self, stand: Stand) -> None:
        """Does nothing: the data that stays costs the other workloads nothing."""


WORKLOAD: Final = ManyLogs()
