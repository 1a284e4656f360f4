"""Every knob once: its default, unit, bounds and text.

One frozen class per component; a component is handed its own object and sees no other. An object
that exists is valid. Command-line flags (`flags.py`) and docs/settings.md (`docs.py`) are derived from
here; how that works is in `knobs.py`. Times are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.client_settings import ClientSettings
from logdevice.knobs import Settings, setting
from logdevice.node_settings import NodeSettings
from logdevice.rebuild_settings import RebuildSettings

# Under their own names too: who encodes or connects asks for them here.
from logdevice.wire_settings import BatchSettings as BatchSettings
from logdevice.wire_settings import WireSettings as WireSettings
from logdevice.write_settings import ChainSettings, RecoverySettings, WriteSettings

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStreamSettings(Settings):
    """A reader's stream."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("scd_timeout_ms", "all_send_all_timeout_ms"),)

    window_lsns: int = setting(
        512,
        "How many LSNs nodes may send ahead of the head. Larger hides more latency, smaller needs less "
        "memory.",
        unit="LSNs",
        minimum=1,
        maximum=1_000_000,
    )
    window_slide_share: float = setting(
        0.7,
        "The share of the window that must be consumed before it slides. Smaller keeps nodes busier, larger "
        "sends fewer WINDOW messages.",
        minimum=0.0,
        maximum=1.0,
    )
    window_bytes: int = setting(
        64 * MIB,
        "How many bytes of records may be on their way or waiting in the reader. Larger reads big records "
        "faster, smaller needs less memory; a single record may go over.",
        unit="bytes",
        minimum=1,
    )
    gap_grace_ms: int = setting(
        100,
        "How long to wait for the remaining nodes when an f-majority has nothing at the head. Larger reports "
        "fewer records as lost that a slow node still has, smaller passes gaps sooner.",
        unit="ms",
        minimum=0,
    )
    gap_grace_limit: int = setting(
        2,
        "After how many such waits in a row a silent node is no longer waited for. Larger stays patient with "
        "it, smaller passes gaps sooner; -1 always waits one period.",
        unit="waits",
        minimum=-1,
    )
    started_timeout_ms: int = setting(
        5_000,
        "How long a node may take to answer START before it is asked again. Larger is kinder to a loaded "
        "node, smaller notices a lost request sooner.",
        unit="ms",
        minimum=1,
    )
    stall_grace_ms: int = setting(
        30_000,
        "How long a stream may be unable to make progress before it calls itself unhealthy. Larger raises "
        "fewer alarms, smaller raises them sooner.",
        unit="ms",
        minimum=0,
    )
    reconnect_delay_ms_min: int = setting(
        10,
        "The first pause before a lost connection is tried again. Larger spares the network, smaller gets a "
        "restarted node back sooner.",
        unit="ms",
        minimum=1,
    )
    reconnect_delay_ms_max: int = setting(
        30_000,
        "What that pause grows to while a node stays away. Larger tries less often, smaller finds it sooner.",
        unit="ms",
        minimum=1,
    )
    redelivery_delay_ms_min: int = setting(
        1_000,
        "The first pause before something the application rejected is offered again. Larger gives it more "
        "time, smaller goes on sooner.",
        unit="ms",
        minimum=1,
    )
    redelivery_delay_ms_max: int = setting(
        30_000,
        "What that pause grows to while the application keeps rejecting. Larger asks less often, smaller "
        "goes on sooner.",
        unit="ms",
        minimum=1,
    )
    metadata_retry_ms_min: int = setting(
        1_000,
        "The first pause before epoch metadata that could not be read is asked for again. Larger asks less, "
        "smaller goes on sooner.",
        unit="ms",
        minimum=1,
    )
    metadata_retry_ms_max: int = setting(
        30_000,
        "What that pause grows to while metadata stays unreadable. Larger asks less often, smaller goes on "
        "sooner.",
        unit="ms",
        minimum=1,
    )
    rewind_delay_ms_min: int = setting(
        1,
        "The first pause before a rewind, in which further reasons join it. Larger merges more, smaller "
        "reacts sooner.",
        unit="ms",
        minimum=0,
    )
    rewind_delay_ms_max: int = setting(
        10_000,
        "What that pause grows to when rewinds follow each other. Larger resends less while nodes come and "
        "go, smaller reacts sooner.",
        unit="ms",
        minimum=0,
    )
    rewind_delay_decay: float = setting(
        0.1,
        "How fast a grown rewind pause shrinks again, as a share of the time passed: 0.1 takes 100 ms off it "
        "every second. Larger forgets trouble sooner, 0 never forgets.",
        minimum=0.0,
    )
    scd_timeout_ms: int = setting(
        10_000,
        "How long the head may stand still before the nodes that hold it up are put on the known-down list. "
        "Larger bears slow nodes, smaller passes dead ones sooner at the price of more rewinds.",
        unit="ms",
        minimum=1,
    )
    all_send_all_timeout_ms: int = setting(
        20_000,
        "How long the head may stand still before every node is asked for everything. Larger saves traffic, "
        "smaller ends a standstill sooner; not below the SCD timeout.",
        unit="ms",
        minimum=1,
    )
    slow_node_detection: str = setting(
        "enabled",
        "What to do about a node much slower than its peers: nothing, only say so in the stream's health, or "
        "have others send its records.",
        choices=("disabled", "observe", "enabled"),
    )
    slow_node_floor_ms: int = setting(
        20,
        "A node that made the reader wait for less than this per answer is never called slow. Larger bears "
        "hiccups, smaller finds mild slowness.",
        unit="ms",
        minimum=1,
    )
    slow_node_average_ms: int = setting(
        1_800_000,
        "Over how much time a node's speed is averaged. Larger remembers longer, smaller follows changes.",
        unit="ms",
        minimum=1,
    )
    slow_node_margin: float = setting(
        10.0,
        "By how many times its peers' average, on top of it, a node must be slower to count as slow. Larger "
        "condemns fewer nodes, smaller reacts to milder slowness.",
        minimum=0.0,
    )
    slow_node_margin_decay_per_s: float = setting(
        0.25,
        "How much of the margin, which grows with each node found slow, goes away again per second. Larger "
        "becomes strict again sooner, 0 stays lenient.",
        unit="per s",
        minimum=0.0,
    )
    slow_node_probation_ms_min: int = setting(
        60_000,
        "How long a node found slow is first passed over. Larger rewinds less, smaller gives it its share "
        "back sooner.",
        unit="ms",
        minimum=1,
    )
    slow_node_probation_ms_max: int = setting(
        1_800_000,
        "What that probation grows to when nodes are found slow again and again. Larger rewinds less, "
        "smaller gives them more chances.",
        unit="ms",
        minimum=1,
    )
    slow_node_probation_decay: float = setting(
        0.25,
        "How fast a grown probation shrinks while no node is slow, as a share of the time passed. Larger "
        "forgives sooner, 0 never forgives.",
        minimum=0.0,
    )
    skip_partially_trimmed: bool = setting(
        True,
        "Pass over records as soon as one node says they are trimmed. When false, records that other nodes "
        "have not trimmed yet are still delivered.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReadSettings(Settings):
    """What a storage node spends on one reader's stream."""

    read_bytes_max: int = setting(
        4 * (MIB + 64 * 1024),  # sixteen records of a quarter of a megabyte, with their headers
        "How many bytes one read of the store may return; a first record of any size is returned. Larger "
        "reads more at once, smaller shares the disk more evenly.",
        unit="bytes",
        minimum=1,
    )
    read_time_ms_max: int = setting(
        1_000,
        "How long one read of the store may take. Larger scans further past records that others send, "
        "smaller lets other readers in sooner.",
        unit="ms",
        minimum=1,
    )
    send_queue_bytes_max: int = setting(
        8 * (MIB + 64 * 1024),  # one read is on its way while the next is made
        "How many bytes may wait to be sent before the node reads on. Less than two reads means that it "
        "reads and sends in turn. Larger keeps a fast connection full, smaller needs less memory per reader.",
        unit="bytes",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSettings(Settings):
    """How a process reaches the epoch store."""

    sqlite_busy_timeout_ms: int = setting(
        5_000,
        "How long to wait for another process that is writing the metadata file. Larger bears a slow disk, "
        "smaller reports trouble sooner.",
        unit="ms",
        minimum=0,
    )
    zookeeper_timeout_ms: int = setting(
        10_000,
        "How long to wait for an answer of ZooKeeper, a lost connection and its return included; a change "
        "without one waits as long again to find out whether it was made. Larger bears the election of a "
        "new leader, smaller reports trouble sooner.",
        unit="ms",
        minimum=1,
    )
    zookeeper_session_timeout_ms: int = setting(
        10_000,
        "How long ZooKeeper may be silent before its connection counts as lost. Larger bears pauses, "
        "smaller turns to another server sooner; the servers have bounds of their own.",
        unit="ms",
        minimum=100,
        restart=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings(Settings):
    """What a storage node keeps on its disk, and how."""

    segment_bytes: int = setting(
        256 * MIB,
        "How large a segment file gets. Larger means fewer files, smaller gives the space of trimmed "
        "records back sooner.",
        unit="bytes",
        minimum=4096,
    )
    preallocate_bytes: int = setting(
        16 * MIB,
        "By how much a segment file grows at a time. Larger fragments less and syncs faster, smaller "
        "takes less space for a store with little in it.",
        unit="bytes",
        minimum=4096,
    )
    free_bytes_floor: int = setting(
        256 * MIB,
        "Records are refused when less than this would stay free on the disk. Larger leaves more room for "
        "the index and for trims, smaller uses more of the disk.",
        unit="bytes",
        minimum=0,
    )
    compact_live_share: float = setting(
        0.5,
        "A segment is rewritten when not more than this share of the space it takes is still needed. Larger "
        "gives space back sooner, smaller writes less twice; 0 never rewrites.",
        minimum=0.0,
        maximum=0.95,
    )
    punch_stretch_bytes: int = setting(
        MIB,
        "How long a stretch of trimmed records must be for its space to be given back inside a segment. "
        "Smaller gives more back at once, but every stretch costs about a millisecond.",
        unit="bytes",
        minimum=4096,
    )
    open_segments_max: int = setting(
        256,
        "How many segment files are kept open. Larger saves opening them again, smaller needs fewer file "
        "descriptors.",
        unit="files",
        minimum=1,
        restart=True,
    )
    index_memory_bytes: int = setting(
        16 * MIB,
        "How much of the index is collected in memory before it is written. Larger writes less, smaller "
        "reads less of the segments after a crash.",
        unit="bytes",
        minimum=65_536,
        restart=True,
    )
    index_cache_bytes: int = setting(
        64 * MIB,
        "How much of the index read from disk is kept in memory. Larger serves readers of old records "
        "faster, smaller needs less memory.",
        unit="bytes",
        minimum=0,
        restart=True,
    )


COMPONENTS: tuple[type[Settings], ...] = (
    ReadStreamSettings,
    NodeReadSettings,
    MetadataSettings,
    BatchSettings,
    WireSettings,
    WriteSettings,
    ChainSettings,
    RecoverySettings,
    StorageSettings,
    ClientSettings,
    NodeSettings,
    RebuildSettings,
)
