"""The metrics of a node. Prometheus and `logdevice status` show the same ones.

Each node has its own registry, so that several nodes fit into one process. If a metrics port is set, the
page is served there. Numbers that are counted elsewhere (the store, read streams) are fetched on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric

from logdevice.errors import InvalidArgumentError
from logdevice.storage.log_store import StoreStats


class _Family:
    """Declares the metrics of one registry, with the prefix that all their names have."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, namespace="logdevice", registry=self._registry)

    def gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, namespace="logdevice", registry=self._registry)


class SequencerMetrics:
    def __init__(self, of: _Family) -> None:
        self.appends = of.counter("appends", "Appends answered by this node's sequencers.", ("status",))
        self.positions = of.counter("positions", "Positions of chain logs asked for, by answer.", ("status",))
        self.short_chains = of.gauge("short_chains", "Chain logs numbered here with fewer nodes than copies.")
        self.append_bytes = of.counter("append_bytes", "Bytes of bodies in appends received.")
        self.extra_waves = of.counter("extra_waves", "Copies sent again, in a second or later wave.")
        self.releases = of.counter("releases", "RELEASE messages sent.")
        self.recoveries = of.counter("recoveries", "Recoveries of earlier epochs begun.")
        self.logs_sequenced = of.gauge("logs_sequenced", "Logs this node numbers now.")


class StorageMetrics:
    def __init__(self, of: _Family) -> None:
        self.stores = of.counter("stores", "Copies this storage node was asked to keep.")
        self.store_bytes = of.counter("store_bytes", "Bytes of bodies this node was asked to keep.")
        self.stores_refused = of.counter(
            "stores_refused", "Copies that were not kept, by reason.", ("status",)
        )
        self.commit_groups = of.gauge("commit_groups", "Syncs of the disk, each of one or more stores.")


class ReadMetrics:
    def __init__(self, of: _Family) -> None:
        self.streams = of.gauge("read_streams", "Read streams now open, by mode.", ("mode",))
        self.starts = of.counter("read_starts", "START messages received, by mode.", ("mode",))
        self.rewinds = of.counter("rewinds", "START messages with which a reader began again.")
        self.bytes_sent = of.counter("bytes_sent", "Bytes of records sent to readers.")
        self.records_sent = of.counter("records_sent", "Records sent to readers.")
        self.gaps_sent = of.counter("gaps_sent", "Gap notices sent to readers, by reason.", ("reason",))

    def total_bytes(self) -> int:
        """Bytes of records sent to readers since the process began."""
        (family,) = self.bytes_sent.collect()
        return int(family.samples[0].value)


class RebuildMetrics:
    def __init__(self, of: _Family) -> None:
        self.share = of.gauge("rebuild_share", "How much of its part in a rebuilding is done, 0 to 1.")
        self.elapsed = of.gauge(
            "rebuild_elapsed_seconds",
            "How long this node has worked on its part in a rebuilding; 0: it is done.",
        )
        self.bytes = of.gauge("rebuild_bytes", "Bytes of records copied to other nodes by rebuilding.")
        self.seconds = of.counter("rebuild_seconds", "Time spent copying for rebuilding, summed over logs.")


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        family = _Family(self.registry)
        self.sequencer = SequencerMetrics(family)
        self.storage = StorageMetrics(family)
        self.read = ReadMetrics(family)
        self.rebuild = RebuildMetrics(family)
        self.nodes_alive = family.gauge("nodes_alive", "Nodes this node believes alive, itself included.")
        self.requests_failed = family.counter("requests_failed", "Requests answered by an error.", ("error",))
        self._server: Any = None

    def watch_store(self, stats: Callable[[], StoreStats]) -> None:
        self.registry.register(_StoreCollector(stats))

    def serve(self, host: str, port: int) -> None:
        """Serves the metrics page on this host and port; does nothing if the port is 0."""
        if port:
            try:
                self._server, _ = start_http_server(port, host, self.registry)
            except OSError as problem:
                raise InvalidArgumentError(
                    f"the metrics page cannot listen on {host}:{port}: {problem}"
                ) from None

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def values(self) -> dict[str, float]:
        """Every sample, by its name with its labels."""
        return {
            _sample_name(sample.name, sample.labels): sample.value
            for metric in self.registry.collect()
            for sample in metric.samples
            if not sample.name.endswith("_created")
        }


class _StoreCollector:
    def __init__(self, stats: Callable[[], StoreStats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        for field in fields(stats):
            words = field.name.replace("_", " ")
            yield GaugeMetricFamily(
                f"logdevice_store_{field.name}", f"Of the store: {words}.", value=getattr(stats, field.name)
            )


def _sample_name(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name
