"""The knobs of rebuilding: when lost data is restored, how fast, and what is never done by itself.

Declared like those in `settings.py`, which lists them with all others.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.knobs import Settings, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildSettings(Settings):
    """Restoring the copies of lost nodes, and emptying nodes that are drained."""

    rebuild_grace_ms: int = setting(
        1_200_000,
        "How long a storage node may be away before its copies are restored elsewhere; 0: not before an "
        "operator says so. Larger bears longer repairs, smaller is safer against a second loss.",
        unit="ms",
        minimum=0,
    )
    rebuild_nodes_percent_max: int = setting(
        35,
        "How many of the storage nodes may be taken for lost without an operator. Larger heals larger "
        "failures by itself, smaller copies nothing when it is the network that failed.",
        unit="percent",
        minimum=0,
        maximum=100,
    )
    auto_unrecoverable_ms: int = setting(
        0,
        "After how long lost data is given up without an operator, so that readers report it as lost; 0: "
        "never. Larger waits longer for disks that may come back, smaller lets readers go on sooner.",
        unit="ms",
        minimum=0,
    )
    rebuild_bytes_per_s_max: int = setting(
        64 * MIB,
        "How many bytes a second one node copies to others, all logs together. Larger restores sooner, "
        "smaller leaves more of disks and network to readers and writers.",
        unit="bytes",
        minimum=1,
    )
    rebuild_busy_percent_max: int = setting(
        10,
        "How much of its time a node that serves readers spends on copying. Larger restores sooner, smaller "
        "leaves more to readers.",
        unit="percent",
        minimum=1,
        maximum=100,
    )
    rebuild_yield_bytes_per_s: int = setting(
        MIB,
        "From how many bytes a second on that it sends to readers a node counts as serving them. Larger "
        "restores sooner, smaller gives way to fewer readers.",
        unit="bytes",
        minimum=1,
    )
    rebuild_chunk_bytes: int = setting(
        4 * MIB,
        "How many bytes of records are read and sent at a time. Larger costs less per byte, smaller needs "
        "less memory.",
        unit="bytes",
        minimum=1,
    )
    rebuild_chunks_max: int = setting(
        4,
        "How many such chunks of a log are on their way at a time. Larger hides more latency, smaller needs "
        "less memory.",
        unit="chunks",
        minimum=1,
    )
    rebuild_logs_max: int = setting(
        4,
        "How many logs a node copies at a time. Larger hides more latency, smaller needs less memory.",
        unit="logs",
        minimum=1,
    )
    rebuild_retry_ms: int = setting(
        500,
        "How long to wait before something that could not be copied is tried again. Larger spares a cluster "
        "in trouble, smaller goes on sooner.",
        unit="ms",
        minimum=1,
    )
    rebuild_attempts_max: int = setting(
        5,
        "How often a node is offered a chunk before the log is begun again with other nodes. Larger bears "
        "longer pauses, smaller gets around a node that is away sooner.",
        unit="attempts",
        minimum=1,
    )
