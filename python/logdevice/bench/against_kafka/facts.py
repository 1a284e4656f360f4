"""The facts without which the numbers mean nothing: the machine, the versions, the set-up of both systems."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from logdevice.bench.against_kafka import kafka, kafka_clients, loading, spark_session
from logdevice.bench.against_kafka.workload import NODES, REPLICATION, Sizes


def machine(directory: Path) -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": f"{memory / (1 << 30):.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "file system": _output("stat", "--file-system", "--format=%T", str(directory)),
    }


def versions(jars: kafka_clients.Jars) -> dict[str, str]:
    java = _output("java", "--version").splitlines()
    commit = _output("git", "describe", "--always", "--dirty")
    return {
        "logdevice-spark": f"{version('logdevice-spark')}, {commit}",
        "kafka": jars.version,
        "kafka source for Spark": _of(jars.source, "spark-sql-kafka-0-10_2.13-"),
        "kafka client in Spark": _of(jars.source, "kafka-clients-"),
        "spark": version("pyspark"),
        "delta": version("delta-spark"),
        "java": java[0] if java else "unknown",
        "python": platform.python_version(),
        "pyarrow": version("pyarrow"),
        "grpcio": version("grpcio"),
    }


def settings(sizes: Sizes) -> Mapping[str, object]:
    """How both systems and Spark are set up, for the report."""
    return {
        "logdevice": {
            "nodes": NODES,
            "copies of a record": REPLICATION,
            "acknowledged": "when all copies are on disk: each node calls fdatasync before it answers",
            "records": f"{loading.RECORD_BYTES >> 10} KiB of payload, {loading.CODEC}, level 1",
        },
        "kafka": {
            "brokers": f"{NODES}, each of them a controller as well (KRaft)",
            "copies of a record": f"{REPLICATION}, min.insync.replicas 2",
            "acknowledged": "when all brokers in sync have it in memory (acks=all); on disk later, "
            "as is Kafka's default",
            "heap of a broker": kafka.HEAP,
            "producer": dict(kafka_clients.PRODUCER),
            "consumer in Spark": dict(loading.CONSUMER),
        },
        "spark": {
            "master": f"local[{spark_session.CORES}]",
            "memory": spark_session.DRIVER_MEMORY,
            "session": "one for both systems; either is read in two tasks",
        },
        "repetitions": sizes.repetitions,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _of(jars: Path, start: str) -> str:
    return next((jar.stem.removeprefix(start) for jar in jars.glob(f"{start}*.jar")), "missing")


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"
