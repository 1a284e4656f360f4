"""One node of three is slow: it answers, but every message comes 50 ms late.

LogDevice is measured with and without its detector of slow nodes. Kafka has no detector; one of its brokers
is behind a proxy that delays its answers by the same time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from logdevice.bench.against_kafka import ours
from logdevice.bench.against_kafka.failure import sent
from logdevice.bench.against_kafka.kafka import KafkaCluster
from logdevice.bench.against_kafka.kafka_clients import WorkDone, write_payloads
from logdevice.bench.against_kafka.slow_process import FLAG
from logdevice.bench.against_kafka.slow_proxy import SlowProxy
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, NODES, Stand, Value, in_turn
from logdevice.bench.parts.spark import payloads
from logdevice.cli.commands import clusters
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.local.ports import choose_ports
from logdevice.client import AsyncClient
from logdevice.client.loop_thread import shared

ENTRY_BYTES: Final = 1024
LOG, TOPIC = "/slow", "slow"
HEALTHY, ON, OFF = "healthy", "slow, detector on", "slow, detector off"
COMMAND: Final = (sys.executable, "-m", "logdevice.bench.against_kafka.slow_process")
SLOW_BROKER: Final = 1
_DETECTION: Final = {HEALTHY: "enabled", ON: "enabled", OFF: "disabled"}


class SlowNode:
    name = "slow_node"

    def __init__(self) -> None:
        self._entries = 0
        self._ours: LocalCluster | None = None
        self._theirs: KafkaCluster | None = None
        self._proxy: SlowProxy | None = None

    @property
    def ours(self) -> LocalCluster:
        assert self._ours is not None, "prepare comes first"
        return self._ours

    @property
    def theirs(self) -> KafkaCluster:
        assert self._theirs is not None, "prepare comes first"
        return self._theirs

    def prepare(self, stand: Stand) -> None:
        content = payloads(ENTRY_BYTES, 2_000)
        self._entries = stand.sizes.scan_bytes // ENTRY_BYTES
        self._ours = LocalCluster.create(stand.directory / "slow-nodes", nodes=NODES)
        self._ours.command = COMMAND
        clusters.bring_up(self.ours)
        (port,) = choose_ports(1)
        self._proxy = SlowProxy(port)
        self._theirs = KafkaCluster.create(
            stand.directory / "slow-brokers", brokers=NODES, advertised={SLOW_BROKER: port}
        )
        self._proxy.start(self.theirs.brokers[SLOW_BROKER].port)
        self.theirs.bring_up()
        # Not compressed, so that even this little data has several sticky blocks for every node.
        shared().run(_create(self.ours.endpoint))
        shared().run(ours.append(self.ours.endpoint, [LOG], content, self._entries, 1, codec="none"))
        self.theirs.create_topic(TOPIC, partitions=NODES)  # every broker leads one
        file = write_payloads(stand.directory / "slow.txt", content)
        self.theirs.peer.append(TOPIC, file, self._entries, 1, {"compression.type": "none"})
        for system in (LOGDEVICE, KAFKA):
            self._consume(system, HEALTHY)

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for system in in_turn((LOGDEVICE, KAFKA), repetition):
            before = sent(self.ours)
            healthy = self._consume(system, HEALTHY).seconds
            yield Value(self.name, HEALTHY, system, repetition, "seconds", "seconds", healthy)
            shares = {node: total - before[node] for node, total in sent(self.ours).items()}
            self._set_slow(system, max(shares, key=lambda node: shares[node]), is_slow=True)
            try:
                for case in (ON, OFF) if system == LOGDEVICE else (OFF,):
                    taken = self._consume(system, case).seconds
                    yield Value(self.name, case, system, repetition, "seconds", "seconds", taken)
                    yield Value(self.name, case, system, repetition, "slow_down", "times", taken / healthy)
            finally:
                self._set_slow(system, is_slow=False)

    def finish(self, stand: Stand) -> None:
        if self._theirs is not None:
            self._theirs.kill_all()
        if self._proxy is not None:
            self._proxy.stop()
        if self._ours is not None:
            self._ours.kill_all()

    def _set_slow(self, system: str, node: int = 0, *, is_slow: bool) -> None:
        if system == KAFKA:
            assert self._proxy is not None
            self._proxy.is_slow = is_slow
            return
        for number, entry in self.ours.nodes.items():
            flag = entry.directory / FLAG
            if is_slow and int(number) == node:
                flag.touch()
            else:
                flag.unlink(missing_ok=True)

    def _consume(self, system: str, case: str) -> WorkDone:
        if system == KAFKA:
            return self.theirs.peer.consume(TOPIC).checked(self._entries)
        detection = _DETECTION[case]
        # The same ship order every time; otherwise the slow node would have another share.
        work = ours.consume(self.ours.endpoint, [LOG], slow_node_detection=detection, shuffle_seed=1)
        return shared().run(work).checked(self._entries)


async def _create(endpoint: str) -> None:
    async with AsyncClient(endpoint) as client:
        await client.create_log(LOG)


WORKLOAD: Final = SlowNode()
