"""The settings of batches and connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, choice, integer, setting

MIB = 1024 * 1024


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
