"""The settings of what is kept on disks: a node's store, and the epoch store."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.settings.declarations import Settings, integer, number, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings(Settings):
    """What a storage node keeps on its disk, and how."""

    free_bytes_floor: int = setting(
        256 * MIB,
        "A node refuses records when less than this would stay free on its disk. Raise it if other programs "
        "use the disk too: the node needs free space for its index and to remove trimmed records; lower it "
        "if a small disk must be used more fully.",
        integer(0),
    )
    compact_live_share: float = setting(
        0.5,
        "A node rewrites a segment when at most this share of the space it takes is still needed; 0: never. "
        "Raise it if trimmed records take too much of the disk; lower it if rewriting takes too much of the "
        "disk's time.",
        number(0, 0.95),
    )
    index_cache_bytes: int = setting(
        64 * MIB,
        "How many bytes of the index a node keeps in memory after it has read them from its disk. Raise it "
        "if readers of old records are slow; lower it if the node needs too much memory.",
        integer(0),
    )

    segment_bytes: int = 256 * MIB  # few files (4000 for a terabyte), each soon rewritten
    preallocate_bytes: int = 16 * MIB  # a file grows by this: fragments less, and syncs faster
    punch_stretch_bytes: int = MIB  # shorter stretches of trimmed records are not worth a millisecond each
    open_segments_max: int = 256  # a quarter of the usual limit of 1024 file descriptors
    index_memory_bytes: int = 16 * MIB  # changes not written yet; after a crash they are replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSettings(Settings):
    """How a node reaches the epoch store."""

    zookeeper_timeout_ms: int = setting(
        10_000,
        "How long a node waits for an answer of ZooKeeper, including the time in which it connects again. "
        "After a change without an answer it waits as long again to find out whether the change was made. "
        "Raise it if ZooKeeper takes longer to elect a new leader; lower it if trouble must be reported "
        "sooner.",
    )

    zookeeper_session_timeout_ms: int = 10_000  # of silence; the servers adjust it to bounds of their own
    sqlite_busy_timeout_ms: int = 5_000  # for another process that writes the file: longer than a slow sync
