"""The texts of the report: what each workload does, how the comparison is fair, and why targets are missed.

Measured numbers of a run are never written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INTRO: Final = """\
LogDevice and Apache Kafka do the same work on one machine, in one run of `make bench`. Compare the ratios:
the absolute numbers depend on the machine."""

METHOD: Final = """\
Three LogDevice nodes, three Kafka brokers, Spark and the writing programs share the processors and the disk
of one machine. So no network is measured, and three copies go to one disk. Repetitions of the two systems
take turns. A ratio is the median over pairs of neighbouring repetitions."""

FAIRNESS: Final = """\
- **Copies.** Both systems keep three copies of each record, each on a different node or broker. Kafka
  acknowledges with `acks=all` and `min.insync.replicas=2`, LogDevice when three nodes have stored the
  record.
- **Disk.** This is the largest difference in what is promised. A LogDevice node syncs a record to its disk
  (`fdatasync`, one for all records that wait) before it is acknowledged. Kafka by default acknowledges from
  memory and lets the operating system write later: if all machines lose power at once, it can lose
  acknowledged records. Appends are therefore also measured with a Kafka that syncs every batch
  (`flush.messages=1`).
- **Compression.** The writers of both systems compress with zstd, level 1, unless a case says otherwise.
- **Batches.** The data that is read was written in batches of 256 KB of payload. Appends use what suits
  each system best: Kafka's producer has a `batch.size` of 1 MB and a `linger.ms` of 20, found by trying;
  LogDevice has its defaults, 1 MB and 20 ms. Where the latency of single appends is measured, neither waits
  for more records.
- **Order and exactly once.** Kafka's producer is idempotent, which is its default. LogDevice's writers have
  names, which is the same promise.
- **Spark.** Both systems use the same session, settings and number of tasks; the `noop` sink takes the
  rows. Spark's own `spark-sql-kafka-0-10` reads Kafka.
- **Local sockets.** A LogDevice reader on the machine of a node gets records over a local socket, straight
  from the node's files. Readers on other machines do not, so full scans are also measured over TCP.
- **Memory.** Each broker has a Java heap of 1 GB, and the page cache. The memory of LogDevice nodes is not
  fixed."""

TITLES: Final[Mapping[str, str]] = {"scan_tcp": "Scan over TCP", "etl": "ETL"}

WORKLOADS: Final[Mapping[str, str]] = {
    "scan": "Spark reads a whole log or topic as a batch. *full rows* passes every column to a sink that "
    "drops them; *count* and *one column* (the sum of positions) need no payload; *filter* asks for the "
    "newest tenth by time in SQL. Rates count all rows in the log.",
    "scan_tcp": "Full rows once more, without local sockets (`data_local = false`): the difference that "
    "remains when readers are on other machines.",
    "catch_up": "A streaming query with `Trigger.AvailableNow` reads from the oldest record on, in five "
    "batches, into a sink that drops the rows.",
    "trickle": "One record at a time: the time from its append to its arrival in `foreachBatch`. "
    "Micro-batches follow each other without a pause. LogDevice's source has no Real-Time Mode.",
    "etl": "A streaming query with `Trigger.AvailableNow` parses JSON records of about 200 bytes and "
    "writes them to a Delta table.",
    "appends": "Records of 1 KB that look like JSON, to two logs or partitions. *p50* and *p99* are "
    "latencies of single appends: each is sent when the one before is acknowledged. Kafka is written by "
    "its Java producer, LogDevice by the asyncio client. All writers of a system are in one process.",
    "many_logs": "One batch query reads the same amount of data, spread over the given number of logs, or "
    "of partitions of a topic.",
    "failure": "One node or broker is killed with `kill -9` when a third of the work is done: in a scan "
    "the node that sends most, or the leader of the partition; in appends the sequencer, or the leader. "
    "*stall* is the longest time without progress after that; *slow down* is the total time divided by "
    "that of a run without a failure just before. Plain clients scan and append, with one log or "
    "partition. Both systems have four processes here, because three copies do not fit on two nodes. Both "
    "have default settings. Kafka's number is mostly its `broker.session.timeout.ms` of 9 s; a lower "
    "value causes false alarms.",
    "slow_node": "One of three nodes sends every message 50 ms late, one after the other, while a plain "
    "client reads an uncompressed log. LogDevice reads with and without its detector of slow nodes. Kafka "
    "has no such detector: its broker is behind a proxy that delays every answer by the same time. Kafka "
    "waits less often, because its answers are larger.",
    "growth": "A plain client in a process of its own reads 1, 10 and 100 times the data: seconds for "
    "each GB, and the peak memory of the process. Kafka's is a Java process with a heap of at most 512 "
    "MB.",
    "idle": "Processor time and memory of all three nodes, and of all three brokers, without any requests.",
    "limits": "What this machine can do without either system: Spark with prepared batches, messages over "
    "bare gRPC between processes, sequential writes to one file with a sync every 4 MB (three copies on "
    "this disk get a third of that), and one small synced write. *Share of limit* in the other tables "
    "refers to the limit that is nearest; for a time it is the limit divided by the time.",
}

SYSTEMS: Final[Mapping[str, str]] = {
    "logdevice": "LogDevice",
    "kafka": "Kafka",
    "logdevice-python": "LogDevice, Python surface",
    "kafka-synced": "Kafka, synced",
    "limit": "limit",
}

# What costs the time, by the key of the target; shown only if the target is missed.
WHY: Final[Mapping[str, str]] = {
    "appends": "According to py-spy (one run on a busy machine) the time is spent in the writing program, "
    "not in the nodes. Of its one event loop about 60 % takes entries from the application one at a time "
    "(`BatchingWriter.put`), and a quarter makes Arrow batches of them; other threads compress. All nodes "
    "together used less processor time for a MB than the writer alone, and less than the brokers. Kafka's "
    "eight producers are eight threads. Appending ready-made batches (`append_batch`) avoids these costs, "
    "and so do several processes.",
    "etl": "According to Spark's progress reports a batch takes about as long with either source. In a "
    "Flight Recorder profile of LogDevice's run (one run, Spark's warm-up included, on a busy machine) "
    "tasks parse JSON, write Parquet and do Delta's part; few samples are in the source. The section Scan "
    "shows how fast rows pass through either source alone: even a source that took no time would leave "
    "most of this job as it is. Only a parser other than Spark's would help.",
    "trickle": "According to Spark's progress reports most of a batch is Spark's own work: the files of "
    "the checkpoint, planning, a job. LogDevice's source takes longer where it asks a Python process for "
    "the end of the log, and in the task, which gets its rows from a Python worker.",
    "slow-node": "The detector finds the node by how long one of its answers takes. In the run of commit "
    "5b05c11 `slow_node_floor_ms`, the delay from which an answer counts as slow, had been raised to "
    "nearly the delay of this test, so the reader waited for several late answers; it has been lowered "
    "since. The time also depends on how many records happen to have their first copy on the slow node.",
    "scan-pruned": "LogDevice's time hardly depends on the number of rows. According to time stamps of "
    "its steps about half of a query is Spark's own work: analysis before the source is asked, and a "
    "second stage for the sum. The rest is planning, starting tasks, and the first answers of nodes, in "
    "about equal parts. Kafka's time grows with the data, so the ratio says as much about the amount of "
    "data as about the systems.",
}

PROFILES: Final = """\
Profiles (perf over all processes, py-spy, time stamps of a query's steps) led to these changes:

- **Scan.** Most processor time went into Python code for every message of a node and every batch for Spark;
  moving bytes took less. Nodes now read and send more at a time, and Spark gets larger batches. On busy
  processors answers of that size sometimes make a node look slow, and some records are sent twice. A higher
  `slow_node_floor_ms` avoided this, but found slow nodes too late.
- **Catch up.** A stream waited for a new Python process to import modules and to connect before its first
  batch. A worker that stays warm now plans the streams of the JVM surface; only the first stream of a
  session waits.
- **Count, one column.** A query had a third, tiny task, and the planning processes ran the garbage
  collector over all imported modules each time. Both are fixed.
- **Idle.** The work is mostly messages by which nodes check whether other nodes are alive. Now only one of
  two nodes asks the other.
- **JSON into Delta.** Nearly all of the time is Spark's: parsing, Parquet, the commits of Delta. A faster
  source changes little there.
"""
