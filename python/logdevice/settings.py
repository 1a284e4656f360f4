"""The settings of reading, metadata, batches, connections and storage; other files have those of other parts.

One frozen class per component; a component is handed its own object and sees no other. What is made by
`setting(...)` is public: flags and docs/settings.md are derived from it, and wrong values are refused. The
plain fields are for tuning: tests and the simulator vary them, and there is one line on why each has its
value. How that works is in `knobs.py`. Times are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.knobs import Settings, choice, integer, number, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStreamSettings(Settings):
    """A reader's stream."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("scd_timeout_ms", "all_send_all_timeout_ms"),)

    window_lsns: int = setting(
        512,
        "How many LSNs nodes may send ahead of the head. Larger hides more latency, smaller needs less "
        "memory.",
        integer(1, 1_000_000),
    )
    window_bytes: int = setting(
        64 * MIB,
        "How many bytes of records may be on their way or waiting in the reader. Larger reads big records "
        "faster, smaller needs less memory; a single record may go over.",
    )
    gap_grace_ms: int = setting(
        100,
        "How long to wait for the remaining nodes when an f-majority has nothing at the head. Larger reports "
        "fewer records as lost that a slow node still has, smaller passes gaps sooner.",
        integer(0),
    )
    scd_timeout_ms: int = setting(
        10_000,
        "How long the head may stand still before the nodes that hold it up are put on the known-down list. "
        "Larger bears slow nodes, smaller passes dead ones sooner at the price of more rewinds.",
    )
    all_send_all_timeout_ms: int = setting(
        20_000,
        "How long the head may stand still before every node is asked for everything. Larger saves traffic, "
        "smaller ends a standstill sooner; not below the SCD timeout.",
    )
    slow_node_detection: str = setting(
        "enabled",
        "What to do about a node much slower than its peers: nothing, only say so in the stream's health, or "
        "have others send its records.",
        choice("disabled", "observe", "enabled"),
    )
    skip_partially_trimmed: bool = setting(
        True,
        "Pass over records as soon as one node says they are trimmed. When false, records that other nodes "
        "have not trimmed yet are still delivered.",
    )

    # So much of the window is consumed before it slides: nodes stay busy, and WINDOW messages are few.
    window_slide_share: float = 0.7
    # After so many waits in a row a silent node is no longer waited for at gaps; -1 always waits one period.
    gap_grace_limit: int = 2
    started_timeout_ms: int = 5_000  # without an answer, START is sent again: one that was lost
    stall_grace_ms: int = 30_000  # only a standstill longer than a failover makes a stream unhealthy
    # A restarted node is back within a moment; one that stays away is tried ever less often.
    reconnect_delay_ms_min: int = 10
    reconnect_delay_ms_max: int = 30_000
    # Epoch metadata that could not be read is asked for again after a pause that grows.
    metadata_retry_ms_min: int = 1_000
    metadata_retry_ms_max: int = 30_000
    # Reasons for a rewind that come together share one; a stream that rewinds again and again waits longer.
    rewind_delay_ms_min: int = 1
    rewind_delay_ms_max: int = 10_000
    rewind_delay_decay: float = 0.1  # of the time passed: every second takes 100 ms off a grown pause
    slow_node_floor_ms: int = 20  # shorter waits per answer are hiccups, never slowness
    slow_node_average_ms: int = 1_800_000  # over so much time speed is averaged: a bad minute is forgiven
    slow_node_margin: float = 10.0  # so many times its peers' average, on top of it, makes a node slow
    slow_node_margin_decay_per_s: float = 0.25  # the margin grows with each node found slow, and shrinks so
    # A node found slow is passed over for a minute, for longer when nodes are found slow again and again.
    slow_node_probation_ms_min: int = 60_000
    slow_node_probation_ms_max: int = 1_800_000
    slow_node_probation_decay: float = 0.25  # of the time in which no node was slow


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReadSettings(Settings):
    """What a storage node spends on one reader's stream."""

    read_bytes_max: int = setting(
        4 * (MIB + 64 * 1024),  # sixteen records of a quarter of a megabyte, with their headers
        "How many bytes one read of the store may return; a first record of any size is returned. Larger "
        "reads more at once, smaller shares the disk more evenly.",
    )
    send_queue_bytes_max: int = setting(
        8 * (MIB + 64 * 1024),  # one read is on its way while the next is made
        "How many bytes may wait to be sent before the node reads on. Less than two reads means that it "
        "reads and sends in turn. Larger keeps a fast connection full, smaller needs less memory per reader.",
    )
    read_time_ms_max: int = 1_000  # a scan past records that others send lets other readers in after this


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSettings(Settings):
    """How a process reaches the epoch store."""

    sqlite_busy_timeout_ms: int = setting(
        5_000,
        "How long to wait for another process that is writing the metadata file. Larger bears a slow disk, "
        "smaller reports trouble sooner.",
        integer(0),
    )
    zookeeper_timeout_ms: int = setting(
        10_000,
        "How long to wait for an answer of ZooKeeper, a lost connection and its return included; a change "
        "without one waits as long again to find out whether it was made. Larger bears the election of a "
        "new leader, smaller reports trouble sooner.",
    )
    zookeeper_session_timeout_ms: int = setting(
        10_000,
        "How long ZooKeeper may be silent before its connection counts as lost. Larger bears pauses, "
        "smaller turns to another server sooner; the servers have bounds of their own.",
        integer(100),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings(Settings):
    """How entries become the body of a record."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("batch_bytes_max", "batch_raw_bytes_max"),)

    batch_codec: str = setting(
        "zstd",
        "How bodies are compressed unless the log says otherwise: zstd makes them smallest, lz4 takes less "
        "time, none takes no time.",
        choice("none", "zstd", "lz4"),
    )
    batch_zstd_level: int = setting(
        1,
        "How hard zstd tries. Larger makes bodies a little smaller and takes much more time.",
        integer(1, 19),
    )
    batch_bytes_max: int = setting(
        32 * MIB,
        "How large a writer makes the body of one record at most. Larger takes larger payloads, smaller "
        "bounds memory and latency; sequencers refuse what is above their body_bytes_max.",
        integer(1, 1 << 31),
    )
    batch_raw_bytes_max: int = setting(
        256 * MIB,
        "How large a body may be when it is unpacked. Larger takes larger payloads, smaller protects readers "
        "from bodies made to fill their memory; what was written with more cannot be read.",
        integer(1, 1 << 31),
    )

    batch_entries_max: int = 1_000_000  # one body with more could not be read where this is smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings(Settings):
    """Connections between processes."""

    message_bytes_max: int = setting(
        64 * MIB,
        "How large one message may be; a larger one is refused. Must hold the largest record. Larger takes "
        "larger records, smaller bounds what a peer can make this process hold.",
        integer(1024, 1 << 31),
    )
    connect_timeout_ms: int = setting(
        5_000,
        "How long a peer may take to accept a connection and answer the hello. Larger bears slow networks, "
        "smaller turns to another node sooner.",
    )
    keepalive_interval_ms: int = setting(
        10_000,
        "How long a connection may be silent before the peer is asked whether it is still there. Larger "
        "sends less, smaller notices a vanished peer sooner.",
        integer(10),
    )
    keepalive_timeout_ms: int = setting(
        5_000,
        "How long the peer may take to answer that before the connection counts as lost. Larger bears "
        "pauses, smaller notices a vanished peer sooner.",
        integer(10),
    )
    data_local: bool = setting(
        True,
        "Whether a reader on the machine of a node gets records by a socket of that machine instead of TCP, "
        "straight from the node's files. On takes less processor time, off helps to tell what TCP does.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings(Settings):
    """What a storage node keeps on its disk, and how."""

    segment_bytes: int = setting(
        256 * MIB,
        "How large a segment file gets. Larger means fewer files, smaller gives the space of trimmed "
        "records back sooner.",
        integer(4096),
    )
    free_bytes_floor: int = setting(
        256 * MIB,
        "Records are refused when less than this would stay free on the disk. Larger leaves more room for "
        "the index and for trims, smaller uses more of the disk.",
        integer(0),
    )
    compact_live_share: float = setting(
        0.5,
        "A segment is rewritten when not more than this share of the space it takes is still needed. Larger "
        "gives space back sooner, smaller writes less twice; 0 never rewrites.",
        number(0, 0.95),
    )
    open_segments_max: int = setting(
        256,
        "How many segment files are kept open. Larger saves opening them again, smaller needs fewer file "
        "descriptors.",
    )
    index_memory_bytes: int = setting(
        16 * MIB,
        "How much of the index is collected in memory before it is written. Larger writes less, smaller "
        "reads less of the segments after a crash.",
        integer(65_536),
    )
    index_cache_bytes: int = setting(
        64 * MIB,
        "How much of the index read from disk is kept in memory. Larger serves readers of old records "
        "faster, smaller needs less memory.",
        integer(0),
    )

    preallocate_bytes: int = 16 * MIB  # a file grows by this: fragments less, and syncs faster
    punch_stretch_bytes: int = MIB  # shorter stretches of trimmed records are not worth a millisecond each
