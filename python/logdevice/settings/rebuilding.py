"""The settings of rebuilding: when lost data is restored, how fast, and what is never done by itself."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.settings.declarations import Settings, integer, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildSettings(Settings):
    """Restoring the copies of lost nodes, and emptying nodes that are drained."""

    rebuild_grace_ms: int = setting(
        1_200_000,
        "How long a storage node may be away before its copies are restored on other nodes; 0: not before an "
        "operator says so. Raise it if nodes are away for longer, for example for repairs; lower it if the "
        "loss of a second node in the meantime would be worse than copying without need.",
        integer(0),
    )
    rebuild_nodes_percent_max: int = setting(
        35,
        "How many percent of the storage nodes the cluster may take for lost without an operator. Raise it "
        "if the cluster should restore larger failures automatically; lower it if nothing should be copied "
        "when the network fails and the nodes are fine.",
        integer(0, 100),
    )
    auto_unrecoverable_ms: int = setting(
        0,
        "After how long the cluster gives up lost data without an operator, so that readers report it as "
        "lost and go on; 0: never. Set it if readers must not wait for an operator; raise it if disks may "
        "still come back after that time.",
        integer(0),
    )
    rebuild_bytes_per_s_max: int = setting(
        64 * MIB,
        "How many bytes a second one node copies to other nodes, all logs together. Raise it if lost copies "
        "must be restored sooner; lower it if copying slows down readers and writers.",
    )
    rebuild_busy_percent_max: int = setting(
        10,
        "How many percent of its time a node that serves readers spends on copying. Raise it if lost copies "
        "must be restored sooner; lower it if copying slows down readers.",
        integer(1, 100),
    )

    rebuild_yield_bytes_per_s: int = MIB  # a node that sends more to readers than this counts as serving them
    rebuild_chunk_bytes: int = 4 * MIB  # read and sent at a time, like what a reader is sent
    # What is on its way at a time hides latency, and is held in memory: chunks of a log, times logs.
    rebuild_chunks_max: int = 4
    rebuild_logs_max: int = 4
    rebuild_retry_ms: int = 500  # before something that could not be copied is tried again
    rebuild_attempts_max: int = 5  # to give one node a chunk; then the log is begun again with other nodes
