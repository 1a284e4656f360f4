"""The words of the report: what each workload does, how it is kept fair, and what costs the time where a
target is missed. Numbers are never written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INTRO: Final = """\
Every number comes from one run of `make bench` on one machine: three nodes of ours, three brokers of
Apache Kafka, Spark and the programs that write share its processors and its disk. Repetitions of the two
systems take turns. A ratio is the median over pairs of neighbouring repetitions; beside it stand the
lowest and the highest. Absolute numbers say more about this machine than about either system."""

FAIRNESS: Final = """\
- **Copies.** Both keep three copies of each record, one on each node or broker. Kafka: `acks=all`,
  `min.insync.replicas=2`. Ours: acknowledged when all three nodes have it.
- **Disk.** Ours syncs a record to the disk of every node (`fdatasync`, several records at a time) before
  it is acknowledged. Kafka by default acknowledges from memory and leaves writing to the operating
  system; a power cut of all machines at once can lose what was acknowledged. Appends are therefore also
  measured with a Kafka that syncs (`flush.messages=1`), marked *synced*.
- **Compression.** zstd for both, done by the writer; where it says so, none.
- **Batches.** Kafka's producer: `batch.size` 1 MB, `linger.ms` 20. Ours: records of up to 1 MB, a delay
  of at most 20 ms. Where the latency of single appends is measured, neither waits.
- **Spark.** The same session, the same settings, the same number of tasks; `noop` takes the rows. Kafka
  is read by `spark-sql-kafka-0-10` of the same release.
- **Memory.** Each broker has a Java heap of 512 MB and the page cache. Nodes of ours have no fixed size."""

WORKLOADS: Final[Mapping[str, str]] = {
    "scan": "A batch read of a whole log or topic by Spark. *full rows* hands every column to a sink "
    "that drops them, *one column* sums positions, *filter* keeps the newest tenth by its time, in SQL: ours "
    "turns it into a range of the log, Kafka's source reads everything.",
    "scan_tcp": "Full rows once more, with nodes that leave local sockets alone (`data_local = false`): what "
    "is left of the difference where readers are on other machines.",
    "catch_up": "A streaming query with `Trigger.AvailableNow` that starts at the oldest record and drops "
    "the rows.",
    "trickle": "One record at a time; from the append to its arrival in `foreachBatch`, with "
    "micro-batches as fast as they go.",
    "etl": "JSON records are parsed and written to a Delta table by a streaming query with "
    "`Trigger.AvailableNow`.",
    "appends": "Records of 1 KB that look like JSON. *writers* are connections that write at the same "
    "time, to two logs or partitions. Latency is of single appends, each sent when the one "
    "before is acknowledged. Kafka is written by its Java producer, ours by the asyncio client "
    "in one Python process.",
    "many_logs": "The same amount of data spread over so many logs, or topics, read by one batch query.",
    "failure": "`kill -9` of one node or broker when a third of the work is done. *stall_ms* is the "
    "longest time without progress after it, *slow_down* the time of the whole against the "
    "same without a failure. The scan is that of a plain consumer of each system (the node or "
    "broker that is killed serves it); appends come from one writer.",
    "slow_node": "One of three nodes answers every message 50 ms late, by a proxy in front of it; one "
    "consumer reads a whole log.",
    "growth": "A plain consumer reads 1, 10 and 100 times the data: seconds per GB, and the most memory "
    "its process had.",
    "idle": "Processor time of all nodes or brokers together while nobody asks anything, after "
    "everything above.",
    "limits": "What this machine does with nothing of either system in the way: Spark with batches that "
    "are ready made, gRPC messages between processes on loopback, one file written in order "
    "and synced (a third of it, for three copies). *share* in the tables above is against the "
    "nearest of them.",
}

SYSTEMS: Final[Mapping[str, str]] = {
    "logdevice": "LogDevice",
    "kafka": "Kafka",
    "logdevice-python": "LogDevice, Python surface",
    "logdevice-chain": "LogDevice, chain log",
    "kafka-synced": "Kafka, synced",
    "limit": "limit",
}

# What costs the time, by the key of the target; shown only where it is missed.
WHY: Final[Mapping[str, str]] = {
    "etl": "By Spark's progress reports a batch takes about as long with either source. A Flight Recorder "
    "profile of ours (one run, Spark's warm-up included, on a busy machine) has tasks parse JSON, write "
    "Parquet and do Delta's part; few samples are in the source. Besides, a stream of ours starts a Python "
    "process that plans its batches, and imports pyspark and our client first; Kafka's source needs none.",
    "trickle": "By Spark's progress reports most of a batch is Spark's own: the files of the checkpoint, "
    "planning, a job. Ours takes longer where it asks a Python process for the end of the log, and in the "
    "task, which gets its rows from a Python worker.",
    "scan-pruned": "Not profiled. The time of ours hardly depends on the number of rows, so what is left is "
    "the fixed cost of a query, planning in a Python process included. Kafka's time grows with the data: "
    "the ratio says as much about the amount of data as about the systems.",
}
