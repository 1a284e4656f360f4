"""The settings of what is kept on disks: a node's store, and the epoch store."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.settings.declarations import Settings, integer, number, setting

MIB = 1024 * 1024


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
