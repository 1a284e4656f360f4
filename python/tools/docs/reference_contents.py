"""What is in the API reference: its pages, and the names on each in the order of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Chapter:
    """`names` are functions and classes of `module`; of a class with `()` the constructor is shown, too."""

    title: str
    module: str
    names: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    text: str
    chapters: tuple[Chapter, ...]


CALLS: Final = "calls"  # the chapter with all calls of a client, by the part that does them
PARTS: Final = {  # the class that does a group of calls -> the title of the group
    "Appending": "Appending",
    "Writers": "Batching writers",
    "Reading": "Reading",
    "Queries": "Questions about a log, and trimming",
    "Points": "Single positions of chain logs",
    "Directory": "Logs and directories",
    "NodeAdministration": "Nodes and copies",
    "Lineages": "Positions that are kept",
    "Cuts": "Cuts",
    "KeyedLogs": "Keyed logs",
    "Backups": "Backups",
}
# How signatures name a type -> what programs import, or what it stands for.
ALIASES: Final = {
    "LogRef": ("`str | int`", "the path of a log, or its number"),
    "Where": ("`Lsn | int | str`", "an LSN, its text form, `oldest`, `tail` or `max`"),
    "Attributes": ("`Mapping[str, str]`", "the attributes of one entry"),
    "NewAttributes": ("`Mapping[str, Value | None]`", "attributes of a log by name; `None` removes one"),
    "Value": ("`bool | int | float | str`", "the value of a setting or attribute"),
    "Item": ("`RecordsBatch | Gap`", "what a reader of one log hands out"),
    "Marks": (
        "`tuple[Lsn, Lsn]`",
        "the LSN below which dropped records are replaced, and the purged end",
    ),
}
RENAMED: Final = {"WriterIs": "TagStatus"}  # the name in the code -> the name that programs import
# Public in the code because other modules of ours call them; programs have no use for them.
INTERNAL: Final = {
    "AsyncClient": "part perform",
    "BatchingWriter": "accept open submit",
    "Client": "engine perform",
    "Etl": "parsed write_batch",
    "Lineage": "branched common_end",
    "LogPoint": "after at joined",
    "LogsReader": "open",
    "Reader": "assemble doubt open take",
    "Target": "append beside",
}

PAGES: Final = {
    "client.md": Page(
        "API reference: the client",
        "The calls of a client, its readers and its writers. [The client](../client.md) shows their use.",
        (
            Chapter("Connecting", "logdevice.client", "connect Client AsyncClient ClientConfig()"),
            Chapter(
                "Calls",
                CALLS,
                "",
                "Both clients have all these calls. Those of `Client` return when they are done; those of\n"
                "`AsyncClient` are coroutines. Calls that open a reader or a writer are the exception: of\n"
                "`AsyncClient` they return the class named here at once, and of `Client` its counterpart\n"
                "`BlockingReader`, `BlockingLogsReader` or `BlockingWriter`.",
            ),
            Chapter("Readers", "logdevice.client", "BlockingReader Reader BlockingLogsReader LogsReader"),
            Chapter("Writers", "logdevice.client", "BlockingWriter BatchingWriter BlockingReceipt Receipt"),
            Chapter("Undo ring", "logdevice.client", "UndoRing() Change"),
        ),
    ),
    "values.md": Page(
        "API reference: values",
        "What calls take and return. All of these are plain, frozen values.",
        (
            Chapter(
                "Positions",
                "logdevice",
                "Lsn LsnRange Epoch LogId NodeId",
                "`LSN_OLDEST` is the first LSN of a log, `LSN_MAX` the end of a range that never ends.\n"
                "`EPOCH_MAX` and `ESN_MAX` are the largest epoch and the largest number in an epoch.",
            ),
            Chapter("What a reader hands out", "logdevice.client", "RecordsBatch Entry LogItem Passed"),
            Chapter("", "logdevice", "Gap GapType Record RecordFlags"),
            Chapter("How to read", "logdevice", "ReadLevel TimeRange"),
            Chapter(
                "What becomes of an append",
                "logdevice.client",
                "Position TaggedAppend TagStatus writer_number",
            ),
            Chapter("", "logdevice.protocol.messages.write", "AppendStatus"),
            Chapter("", "logdevice.types", "WriterTag"),
            Chapter("Where a log is", "logdevice.client", "LogTail"),
            Chapter("", "logdevice.types", "LogPoint CountedRecord"),
            Chapter("Positions that are kept", "logdevice.client", "Checkpoint Checked"),
            Chapter("", "logdevice.protocol.lineage", "Lineage Branch"),
            Chapter("Cuts", "logdevice", "Cut CutEnd CutKind"),
            Chapter("Chain logs", "logdevice.client", "Point PointStatus Filled"),
            Chapter("Logs and nodes", "logdevice.protocol.messages.service", "LogView NodeView ClusterView"),
            Chapter("", "logdevice.protocol.messages.service", "NodeStatus NodeStates NodeState"),
            Chapter("", "logdevice.protocol.rebuilding.node_status", "CaseMode"),
            Chapter("", "logdevice.protocol.messages.rebuilding", "CopiesAre"),
            Chapter("", "logdevice.protocol.messages.read", "EpochMetadataIs"),
            Chapter("", "logdevice.types", "MetadataSource"),
            Chapter("", "logdevice", "AuthoritativeStatus EpochMetadata Replication Location Scope"),
            Chapter("Health of a reader", "logdevice.protocol.read_stream.health", "StreamHealth Waiting"),
            Chapter("", "logdevice.protocol.messages.read", "ReadMode"),
            Chapter("Backups", "logdevice.client.admin.backup_files", "Backup"),
        ),
    ),
    "spark.md": Page(
        "API reference: Spark",
        'The Python functions beside `spark.readStream.format("logdevice")`. [Spark](../spark.md) has the\n'
        "options of the source and the sink, and the columns of their rows.",
        (
            Chapter(
                "The source and the jar",
                "pyspark_logdevice",
                "configure jar_path DefaultSource",
                "`LOAD_ERROR` is `None`, or says why the source could not be loaded.",
            ),
            Chapter(
                "LSNs in queries",
                "pyspark_logdevice.functions",
                "register lsn_epoch lsn_offset lsn_text lsn_parse",
            ),
            Chapter(
                "Lag and losses",
                "pyspark_logdevice.listener",
                "LagListener() SourceProgress LogLag observe_gaps of_progress",
            ),
            Chapter("Logs into Delta tables", "pyspark_logdevice.etl", "EtlOptions() Target() Etl() Written"),
            Chapter("Sessions and queries", "pyspark_logdevice.sessions", "session"),
            Chapter("", "pyspark_logdevice.start_query", "start_patiently"),
        ),
    ),
}
