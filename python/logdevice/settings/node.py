"""The settings of a node's process: its queues and threads, its peers, its chores."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.settings.declarations import Settings, integer, number, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(Settings):
    """A node's process."""

    cuts_max: int = setting(
        1_000,
        "How many cuts may have a name. Larger keeps more, smaller keeps the epoch store small.",
    )
    ping_interval_ms: int = setting(
        400,
        "How often of any two nodes one asks the other whether it is there. Larger sends less, smaller "
        "notices a dead node sooner.",
    )
    pings_missed_max: int = setting(
        4,
        "After how many pings without an answer a node counts as dead and others take over its logs. Larger "
        "bears pauses, smaller takes over sooner.",
    )
    peer_timeout_ms: int = setting(
        10_000,
        "How long another node may take to answer before the request counts as lost. Larger bears slow "
        "disks, smaller forgets a hanging node sooner.",
    )
    peer_queue_bytes_max: int = setting(
        256 * MIB,
        "How many bytes may wait to be sent to one peer, requests or answers. Larger bears bursts, smaller "
        "bounds memory.",
    )
    disk_queue_bytes_max: int = setting(
        256 * MIB,
        "How many bytes may wait for the disk before stores are refused as overloaded. Larger bears bursts, "
        "smaller bounds memory and tells sequencers sooner.",
    )
    disk_read_threads: int = setting(
        4,
        "How many reads of the disk run at a time. Larger serves more readers from a fast disk, smaller "
        "leaves more of it to writes.",
        integer(1, 1_000),
    )
    read_streams_max: int = setting(
        10_000,
        "How many read streams a node serves; more are told to come again. Larger serves more readers, "
        "smaller bounds memory.",
    )
    configuration_poll_ms: int = setting(
        500,
        "How often a node asks the epoch store whether nodes or logs have changed. Larger asks less, smaller "
        "notices changes sooner.",
    )
    retention_interval_ms: int = setting(
        60_000,
        "How often records older than their log keeps them are trimmed. Larger costs less, smaller trims "
        "closer to the time.",
    )
    compaction_interval_ms: int = setting(
        60_000,
        "How often the sequencer's node of a keyed log looks whether there is something to compact. Larger "
        "costs less, smaller frees space sooner.",
    )
    compaction_share: float = setting(
        0.5,
        "How much must have been appended to a keyed log since it was compacted, compared with what was left "
        "then, before it is read and compacted again. Larger reads less, smaller frees space sooner.",
        number(0, 100),
    )
    compaction_keys_max: int = setting(
        2_000_000,
        "How many keys one compaction remembers, at about 150 bytes each; records with more keys "
        "stay. Larger compacts logs of more keys, smaller bounds memory.",
    )
    shutdown_timeout_ms: int = setting(
        5_000,
        "How long a node that was asked to stop waits for what it has begun. Larger finishes more, smaller "
        "stops sooner.",
        integer(0),
    )
    data_port: int = setting(
        0,
        "The port where readers are served outside of gRPC, which takes half of their time, on the host of "
        "the node's own address; 0: any that is free; -1: none, readers use gRPC.",
        integer(-1, 65_535),
    )
    metrics_port: int = setting(
        0,
        "The port of the Prometheus page, on the host of the node's own address; 0: no page.",
        integer(0, 65_535),
    )

    commit_group_bytes_max: int = 64 * MIB  # of one sync of the disk; a record behind it does not wait longer
    activation_check_ms: int = 1_000  # how soon an activation that failed is noticed and done again
