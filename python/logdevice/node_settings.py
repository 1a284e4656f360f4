"""The knobs of a node's process: its queues and threads, its peers, its housekeeping.

Declared like those in `settings.py`, which lists them with all others.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.knobs import Settings, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(Settings):
    """A node's process."""

    cuts_max: int = setting(
        1_000,
        "How many cuts may have a name. Larger keeps more, smaller keeps the epoch store small.",
        unit="cuts",
        minimum=1,
    )
    ping_interval_ms: int = setting(
        400,
        "How often of any two nodes one asks the other whether it is there. Larger sends less, smaller "
        "notices a dead node sooner.",
        unit="ms",
        minimum=1,
    )
    pings_missed_max: int = setting(
        4,
        "After how many pings without an answer a node counts as dead and others take over its logs. Larger "
        "bears pauses, smaller takes over sooner.",
        unit="pings",
        minimum=1,
    )
    pings_refused_max: int = setting(
        2,
        "After how many pings that cannot be delivered, because no process is there, a node counts as dead. "
        "Larger bears processes that restart, smaller takes over sooner.",
        unit="pings",
        minimum=1,
    )
    peer_timeout_ms: int = setting(
        10_000,
        "How long another node may take to answer before the request counts as lost. Larger bears slow "
        "disks, smaller forgets a hanging node sooner.",
        unit="ms",
        minimum=1,
    )
    peer_queue_bytes_max: int = setting(
        256 * MIB,
        "How many bytes may wait to be sent to one peer, requests or answers. Larger bears bursts, smaller "
        "bounds memory.",
        unit="bytes",
        minimum=1,
    )
    disk_queue_bytes_max: int = setting(
        256 * MIB,
        "How many bytes may wait for the disk before stores are refused as overloaded. Larger bears bursts, "
        "smaller bounds memory and tells sequencers sooner.",
        unit="bytes",
        minimum=1,
    )
    commit_group_bytes_max: int = setting(
        64 * MIB,
        "How many bytes one sync of the disk makes durable; a single record may go over. Larger syncs less "
        "often under load, smaller answers sooner.",
        unit="bytes",
        minimum=1,
    )
    disk_read_threads: int = setting(
        4,
        "How many reads of the disk run at a time. Larger serves more readers from a fast disk, smaller "
        "leaves more of it to writes.",
        unit="threads",
        minimum=1,
        maximum=1_000,
        restart=True,
    )
    read_streams_max: int = setting(
        10_000,
        "How many read streams a node serves; more are told to come again. Larger serves more readers, "
        "smaller bounds memory.",
        unit="streams",
        minimum=1,
    )
    configuration_poll_ms: int = setting(
        500,
        "How often a node asks the epoch store whether nodes or logs have changed. Larger asks less, smaller "
        "notices changes sooner.",
        unit="ms",
        minimum=1,
    )
    activation_check_ms: int = setting(
        1_000,
        "How often a node looks whether each log it should number is in fact numbered by somebody alive. "
        "Larger costs less, smaller heals a failed activation sooner.",
        unit="ms",
        minimum=1,
    )
    retention_interval_ms: int = setting(
        60_000,
        "How often records older than their log keeps them are trimmed. Larger costs less, smaller trims "
        "closer to the time.",
        unit="ms",
        minimum=1,
    )
    compaction_interval_ms: int = setting(
        60_000,
        "How often the sequencer's node of a keyed log looks whether there is something to compact. Larger "
        "costs less, smaller frees space sooner.",
        unit="ms",
        minimum=1,
    )
    compaction_share: float = setting(
        0.5,
        "How much must have been appended to a keyed log since it was compacted, compared with what was left "
        "then, before it is read and compacted again. Larger reads less, smaller frees space sooner.",
        minimum=0,
        maximum=100,
    )
    compaction_keys_max: int = setting(
        2_000_000,
        "How many keys one compaction remembers, at about 150 bytes each; records with more keys "
        "stay. Larger compacts logs of more keys, smaller bounds memory.",
        unit="keys",
        minimum=1,
    )
    reclaim_interval_ms: int = setting(
        5_000,
        "How often a node gives the space of trimmed records back. Larger leaves more of the disk to others, "
        "smaller frees space sooner.",
        unit="ms",
        minimum=1,
    )
    shutdown_timeout_ms: int = setting(
        5_000,
        "How long a node that was asked to stop waits for what it has begun. Larger finishes more, smaller "
        "stops sooner.",
        unit="ms",
        minimum=0,
    )
    data_port: int = setting(
        0,
        "The port where readers are served outside of gRPC, which takes half of their time, on the host of "
        "the node's own address; 0: any that is free; -1: none, readers use gRPC.",
        unit="port",
        minimum=-1,
        maximum=65_535,
        restart=True,
    )
    metrics_port: int = setting(
        0,
        "The port of the Prometheus page, on the host of the node's own address; 0: no page.",
        unit="port",
        minimum=0,
        maximum=65_535,
        restart=True,
    )
