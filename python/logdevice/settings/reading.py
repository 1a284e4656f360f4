"""The settings of a reader's stream, at both of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, choice, integer, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStreamSettings(Settings):
    """How far a reader reads ahead, and what it does about nodes that send nothing."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("scd_timeout_ms", "all_send_all_timeout_ms"),)

    window_lsns: int = setting(
        512,
        "How many positions of a log the nodes may send ahead of what the application has read. Raise it if "
        "a log of small records is read slowly over a network with long delays; lower it if the application "
        "reads only a few records each time.",
        integer(1, 1_000_000),
    )
    window_bytes: int = setting(
        64 * MIB,
        "How many bytes of records may be on their way to a reader or wait in it; a single record may exceed "
        "it. Raise it if large records are read slowly over a network with long delays; lower it if the "
        "process needs too much memory.",
    )
    scd_timeout_ms: int = setting(
        10_000,
        "How long a reader in single-copy delivery may stand still before it has other nodes send what a "
        "silent node should have sent. Raise it if readers often turn away from nodes that are only slow; "
        "lower it if readers must get past dead nodes sooner.",
    )
    slow_node_detection: str = setting(
        "enabled",
        "What a reader does about a node much slower than its peers: nothing (disabled), only report it in "
        "the reader's health (observe), or have other nodes send its records (enabled). Set it to observe if "
        "readers turn away from nodes that are not slow, and to disabled to compare measurements.",
        choice("disabled", "observe", "enabled"),
    )
    skip_partially_trimmed: bool = setting(
        True,
        "Whether a reader passes over records as soon as one node says that they are trimmed. Set it to "
        "false if the application wants the records that other nodes have not trimmed yet.",
    )

    gap_grace_ms: int = 100  # for nodes beyond the f-majority that has nothing: one of them may have a copy
    # Twice the time for single-copy delivery; a larger scd_timeout_ms raises it.
    all_send_all_timeout_ms: int = 20_000
    # This much of the window is consumed before it slides: nodes stay busy, and WINDOW messages are few.
    window_slide_share: float = 0.7
    # After this many waits in a row, gaps no longer wait for a silent node; -1: they always wait one period.
    gap_grace_limit: int = 2
    started_timeout_ms: int = 5_000  # for the answer; then the reader connects anew and repeats it
    stall_grace_ms: int = 30_000  # only a standstill longer than a failover makes a stream unhealthy
    # A restarted node is back within a moment; one that stays away is tried ever less often.
    reconnect_delay_ms_min: int = 10
    reconnect_delay_ms_max: int = 30_000
    # Epoch metadata that could not be read is asked for again after a pause that grows.
    metadata_retry_ms_min: int = 1_000
    metadata_retry_ms_max: int = 30_000
    # Reasons for a rewind that come together share one; a stream that rewinds again and again waits longer.
    rewind_delay_ms_min: int = 1
    rewind_delay_ms_max: int = 10_000
    rewind_delay_decay: float = 0.1  # of the time passed: every second takes 100 ms off a grown pause
    slow_node_floor_ms: int = 20  # shorter waits per answer are hiccups, never slowness
    slow_node_average_ms: int = 1_800_000  # speed is averaged over this time: a bad minute is forgiven
    slow_node_margin: float = 10.0  # this many times its peers' average, on top of it, makes a node slow
    slow_node_margin_decay_per_s: float = 0.25  # the margin grows with each node found slow, and shrinks so
    # A node found slow is passed over for a minute, for longer when nodes are found slow again and again.
    slow_node_probation_ms_min: int = 60_000
    slow_node_probation_ms_max: int = 1_800_000
    slow_node_probation_decay: float = 0.25  # of the time in which no node was slow


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReadSettings(Settings):
    """What a storage node spends on one reader's stream."""

    send_queue_bytes_max: int = setting(
        8 * (MIB + 64 * 1024),  # one read is on its way while the next is made
        "How many bytes of one read stream may wait to be sent before the node stops reading ahead. Raise it "
        "if readers on a fast network wait for the node; lower it if many readers need too much of the "
        "node's memory: below two reads, 8.5 MB, the node reads and sends in turn.",
    )

    # Of one read of the store: sixteen records of a quarter of a megabyte, with their headers. Smaller reads
    # cost more for each byte, larger ones let other readers wait. A first record of any size is returned.
    read_bytes_max: int = 4 * (MIB + 64 * 1024)
    read_time_ms_max: int = 1_000  # a scan past records that others send lets other readers in after this
