"""The settings of batches and connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, choice, integer, setting

MIB = 1024 * 1024
MESSAGE_BYTES_LEAST = 8 * MIB  # nodes send readers and each other up to 4.5 MB at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings(Settings):
    """How a client makes the body of a record from entries."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("batch_bytes_max", "batch_raw_bytes_max"),)

    batch_codec: str = setting(
        "zstd",
        "How a client compresses the bodies that it writes: zstd makes them smallest, lz4 takes less time, "
        "none takes no time. Set it to lz4 or none if writers and readers have more disk and network than "
        "processor time, and to none if payloads are compressed already.",
        choice("none", "zstd", "lz4"),
    )
    batch_zstd_level: int = setting(
        1,
        "How hard zstd tries. Raise it if bodies should become a little smaller and may take much more of "
        "the writer's time; lower it again if writers are too slow.",
        integer(1, 19),
    )
    batch_bytes_max: int = setting(
        32 * MIB,
        "The largest body of a record that a writer makes. Raise it if single payloads are larger, and with "
        "it `body_bytes_max` of the nodes and `message_bytes_max` everywhere; lower it if writers must not "
        "make records that take readers too much memory.",
        integer(1, 1 << 31),
    )
    batch_raw_bytes_max: int = setting(
        256 * MIB,
        "The largest body after it is unpacked, for writers and readers. Raise it on both if batches are "
        "larger; lower it if writers that are not trusted could fill a reader's memory: a reader cannot read "
        "records above its own limit.",
        integer(1, 1 << 31),
    )

    batch_entries_max: int = 1_000_000  # one body with more could not be read where this is smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings(Settings):
    """Connections between processes."""

    message_bytes_max: int = setting(
        64 * MIB,
        "The largest message that a process sends or accepts; it must hold the largest record. Raise it on "
        "all nodes and clients if records are larger; lower it if a peer must not make this process hold so "
        "much.",
        integer(MESSAGE_BYTES_LEAST, 1 << 31),
    )
    data_local: bool = setting(
        True,
        "Whether a reader on the machine of a node gets records over a local socket instead of TCP, large "
        "bodies straight from the node's files, which takes less processor time. Set it to false to measure "
        "what TCP costs.",
    )

    connect_timeout_ms: int = 5_000  # to accept a connection and to answer the hello: a node may be busy
    # Silence, and then silence after a ping: a peer that vanished without a word is noticed after both.
    keepalive_interval_ms: int = 10_000
    keepalive_timeout_ms: int = 5_000
