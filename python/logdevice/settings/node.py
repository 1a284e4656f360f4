"""The settings of a node's process: its queues and threads, its peers, its chores."""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.settings.declarations import Settings, integer, number, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(Settings):
    """A node's process: its peers, its queues and threads, its chores, its ports."""

    cuts_max: int = setting(
        1_000,
        "How many named cuts the cluster keeps. Raise it if applications need more of them at the same time; "
        "lower it if the epoch store should stay smaller.",
    )
    ping_interval_ms: int = setting(
        400,
        "How often, of any two nodes, one asks the other whether it is there. Raise it if pings take too "
        "much time in a large cluster; lower it if other nodes must notice a dead node sooner.",
    )
    pings_missed_max: int = setting(
        4,
        "After how many pings without an answer a node counts as dead and other nodes take over its logs. "
        "Raise it if nodes that only pause for a moment lose their logs; lower it if other nodes must take "
        "over sooner.",
    )
    disk_queue_bytes_max: int = setting(
        256 * MIB,
        "How many bytes may wait for a node's disk before the node refuses records as overloaded. Raise it "
        "if the node refuses records in short bursts; lower it if the node needs too much memory.",
    )
    disk_read_threads: int = setting(
        4,
        "How many reads of its disk a node runs at the same time. Raise it if readers wait although the disk "
        "could do more; lower it if reads slow down appends.",
        integer(1, 1_000),
    )
    read_streams_max: int = setting(
        10_000,
        "How many read streams a node serves; it tells further readers to come again later. Raise it if "
        "there are more readers; lower it if read streams need too much of the node's memory.",
    )
    compaction_interval_ms: int = setting(
        60_000,
        "How often a node checks whether the keyed logs that it is the sequencer of need a compaction. Raise "
        "it if the checks cost too much with many keyed logs; lower it if replaced entries must go sooner.",
    )
    compaction_share: float = setting(
        0.5,
        "How much must have been appended to a keyed log since its last compaction, as a share of what that "
        "compaction left, before the node reads and compacts it again. Raise it if compaction reads too "
        "much; lower it if the space of replaced entries must be free sooner.",
        number(0, 100),
    )
    compaction_keys_max: int = setting(
        2_000_000,
        "How many keys one compaction remembers, at about 150 bytes each; records with further keys stay. "
        "Raise it if the node warns that a log has more keys; lower it if the node needs too much memory.",
    )
    data_port: int = setting(
        0,
        "The port where a node serves readers without gRPC, at about half the cost, on the host of the "
        "node's own address; 0: any free port; -1: none, readers use gRPC. Set it to a fixed port if a "
        "firewall is between readers and nodes, and to -1 if only one port can be open.",
        integer(-1, 65_535),
    )
    metrics_port: int = setting(
        0,
        "The port of the node's Prometheus page, on the host of its own address; 0: no page. Set it if "
        "Prometheus should collect the node's metrics.",
        integer(0, 65_535),
    )

    peer_timeout_ms: int = 10_000  # longer than a slow disk takes; then a request counts as lost
    peer_queue_bytes_max: int = 256 * MIB  # to one peer, requests or answers: bounds memory if a peer hangs
    configuration_poll_ms: int = 500  # how soon a node notices changes of nodes and logs; a small read
    retention_interval_ms: int = 60_000  # records are kept for hours or days: a minute more is exact enough
    shutdown_timeout_ms: int = 5_000  # for appends in flight; service managers wait ten seconds or more
    commit_group_bytes_max: int = 64 * MIB  # of one sync of the disk; a record behind it does not wait longer
    activation_check_ms: int = 1_000  # how soon an activation that failed is noticed and done again
