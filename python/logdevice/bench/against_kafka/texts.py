"""The words of the report: what each workload does, how it is kept fair, and what costs the time where a
target is missed. Numbers that were measured are never written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INTRO: Final = """\
Every number comes from one run of `make bench` on one machine: three nodes of ours, three brokers of
Apache Kafka, Spark and the programs that write share its processors and its disk. Repetitions of the two
systems take turns. A ratio is the median over pairs of neighbouring repetitions; beside it stand the
lowest and the highest. Absolute numbers say more about this machine than about either system. One machine
also means that no network is measured, and that three copies go to one disk."""

FAIRNESS: Final = """\
- **Copies.** Both keep three copies of each record, one on each node or broker. Kafka: `acks=all`,
  `min.insync.replicas=2`. Ours: acknowledged when three nodes have it.
- **Disk.** The largest difference in what is promised. Ours syncs a record to the disk of every node
  (`fdatasync`, all that waits at a time) before it is acknowledged. Kafka by default acknowledges from
  memory and lets the operating system write later: if all machines lose power at once, it can lose what
  it acknowledged. Appends are therefore also measured with a Kafka that syncs every batch
  (`flush.messages=1`).
- **Compression.** zstd, level 1, for both, done by the writer; where it says so, none.
- **Batches.** What is read was written in batches of 256 KB of payload on both sides. Appends are
  measured with what suits each best: Kafka's producer with `batch.size` 1 MB and `linger.ms` 20, found by
  trying; ours with its defaults, 1 MB and 20 ms. Where the latency of single appends is measured, neither
  waits for more.
- **Order and once.** Kafka's producer is idempotent, as it is by default; our writers have names, which
  is the same promise.
- **Spark.** The same session, the same settings, as many tasks for both; `noop` takes the rows. Kafka is
  read by Spark's own `spark-sql-kafka-0-10`.
- **One machine.** Readers of ours that run where a node runs get records by a local socket, straight from
  the node's files. Where readers and nodes are on different machines they do not; full scans are
  therefore shown over TCP, too.
- **Memory.** Each broker has a Java heap of 1 GB, and the page cache. Nodes of ours have no fixed size."""

WORKLOADS: Final[Mapping[str, str]] = {
    "scan": "A batch read of a whole log or topic by Spark. *full rows* hands every column to a sink "
    "that drops them, *count* and *one column* (the sum of positions) need no payload, "
    "*filter* asks for the newest tenth by time in SQL. Rates count all rows that are there.",
    "scan_tcp": "Full rows once more, with nodes that leave local sockets alone (`data_local = false`): "
    "what is left of the difference where readers are on other machines.",
    "catch_up": "A streaming query with `Trigger.AvailableNow` that starts at the oldest record, in five "
    "batches, to a sink that drops them.",
    "trickle": "One record at a time; from the append to its arrival in `foreachBatch`, with "
    "micro-batches as fast as they go. Real-Time Mode is not built.",
    "etl": "JSON records of about 200 bytes are parsed and written to a Delta table by a streaming "
    "query with `Trigger.AvailableNow`.",
    "appends": "Records of 1 KB that look like JSON, to two logs or partitions. *p50* and *p99* are of "
    "single appends, each sent when the one before is acknowledged. Kafka is written by its "
    "Java producer, ours by the asyncio client; all writers of a system are in one process.",
    "many_logs": "The same amount of data spread over so many logs, or partitions of a topic, read by one "
    "batch query.",
    "failure": "`kill -9` of one node or broker when a third of the work is done: in a scan the node that "
    "sends most, or the leader of the partition; in appends the sequencer, or the leader. "
    "*stall* is the longest time without progress after it, *slow down* the time of the whole "
    "against the same without a failure, just before. Scan and appends are those of plain "
    "clients, with one log or partition. Both systems have four processes here, because three "
    "copies do not fit on two nodes. Both keep their defaults; Kafka's number is mostly its "
    "`broker.session.timeout.ms` of 9 s, which can be set lower at the price of false alarms.",
    "slow_node": "One of three nodes sends every message 50 ms late, one after the other; a plain client "
    "reads a log that is not compressed. Ours with the detector of slow nodes and without it. "
    "Kafka has none: its broker is behind a proxy that holds every answer back for as long, "
    "and as it sends larger answers, it waits less often.",
    "growth": "A plain client reads 1, 10 and 100 times the data in a process of its own: seconds for "
    "each GB, and the most memory that process had. Kafka's is a Java process with a heap of "
    "at most 512 MB.",
    "idle": "Processor time and memory of all three nodes, and of all three brokers, while nobody asks "
    "anything.",
    "limits": "What this machine does with nothing of either system in the way: Spark with batches that "
    "are ready made, messages over bare gRPC between processes, one file written in order and "
    "synced every 4 MB (three copies on this disk get a third of that), one small write until "
    "it is on the disk. *Share of limit* in the other tables is against the nearest of them; a "
    "time has its share the other way round.",
}

SYSTEMS: Final[Mapping[str, str]] = {
    "logdevice": "LogDevice",
    "kafka": "Kafka",
    "logdevice-python": "LogDevice, Python surface",
    "kafka-synced": "Kafka, synced",
    "limit": "limit",
}

# What costs the time, by the key of the target; shown only where it is missed.
WHY: Final[Mapping[str, str]] = {
    "appends": "By py-spy (one run on a busy machine) the program that writes is where the time goes, not "
    "the nodes: of its one event loop about 60 % takes entries from the application one at a "
    "time (`BatchingWriter.put`) and a quarter makes Arrow batches of them; compression is in "
    "other threads. All nodes together used less processor time for a MB than the writer "
    "alone, and less than the brokers. Kafka's eight producers are eight threads. Appending "
    "ready-made batches (`append_batch`) leaves these costs out, and so would several "
    "processes.",
    "etl": "By Spark's progress reports a batch takes about as long with either source. A Flight "
    "Recorder profile of ours (one run, Spark's warm-up included, on a busy machine) has tasks "
    "parse JSON, write Parquet and do Delta's part; few samples are in the source. How fast rows "
    "pass through either source alone is shown under Scan: even a source that took no time at all "
    "would leave most of this job as it is. It would take a parser other than Spark's.",
    "trickle": "By Spark's progress reports most of a batch is Spark's own: the files of the checkpoint, "
    "planning, a job. Ours takes longer where it asks a Python process for the end of the log, "
    "and in the task, which gets its rows from a Python worker.",
    "slow-node": "The node is found by how long one of its answers takes. The run of commit 5b05c11 had "
    "raised what counts as slow (`slow_node_floor_ms`) to nearly the delay of this test, so that "
    "several answers were waited for; it is lower again. How long it takes also depends on how "
    "many records happen to have their first copy on the slow node.",
    "scan-pruned": "The time of ours hardly depends on the number of rows. By time stamps of its steps "
    "about half of a query is Spark's own: analysis before the source is asked, and a second "
    "stage for the sum; the rest is planning, starting tasks, and the first answers of nodes, in "
    "about equal parts. Kafka's time grows with the data: the ratio says as much about the amount "
    "of data as about the systems.",
}

PROFILES: Final = """\
What profiles showed (perf over all processes, py-spy, time stamps of a query's steps), and what was made
of it:

- **Scan.** Moving bytes was the smaller part; most processor time went into Python around every message of
  a node and every batch for Spark. Nodes read and send more at a time now (`read_bytes_max`), and Spark gets
  larger batches. Answers of that size sometimes make a node look slow on busy processors, and some records
  are sent twice then; to be slower to judge (`slow_node_floor_ms`) was tried, and found slow nodes too late.
- **Catch up.** A stream waited for a new Python process to import and to connect before its first batch.
  Streams of the JVM surface are planned by a worker that stays warm; the first of a session still waits.
- **Count, one column.** A query had a third, tiny task, and the processes that plan collected garbage over
  everything that they had imported, each time. Both are gone.
- **Idle.** Mostly messages by which nodes ask each other whether they are there; of two nodes only one asks
  now.
- **JSON into Delta.** Nearly all of it is Spark's: parsing, Parquet, the commits of Delta. A faster source
  changes little there.
"""
