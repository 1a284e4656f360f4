"""The settings of a reader's stream, at both of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, choice, integer, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStreamSettings(Settings):
    """A reader's stream."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("scd_timeout_ms", "all_send_all_timeout_ms"),)

    window_lsns: int = setting(
        512,
        "How many LSNs nodes may send ahead of the head. Larger hides more latency, smaller needs less "
        "memory.",
        integer(1, 1_000_000),
    )
    window_bytes: int = setting(
        64 * MIB,
        "How many bytes of records may be on their way or waiting in the reader. Larger reads big records "
        "faster, smaller needs less memory; a single record may go over.",
    )
    gap_grace_ms: int = setting(
        100,
        "How long to wait for the remaining nodes when an f-majority has nothing at the head. Larger reports "
        "fewer records as lost that a slow node still has, smaller passes gaps sooner.",
        integer(0),
    )
    scd_timeout_ms: int = setting(
        10_000,
        "How long the head may stand still before the nodes that hold it up are put on the known-down list. "
        "Larger bears slow nodes, smaller passes dead ones sooner at the price of more rewinds.",
    )
    all_send_all_timeout_ms: int = setting(
        20_000,
        "How long the head may stand still before every node is asked for everything. Larger saves traffic, "
        "smaller ends a standstill sooner; not below the SCD timeout.",
    )
    slow_node_detection: str = setting(
        "enabled",
        "What to do about a node much slower than its peers: nothing, only say so in the stream's health, or "
        "have others send its records.",
        choice("disabled", "observe", "enabled"),
    )
    skip_partially_trimmed: bool = setting(
        True,
        "Pass over records as soon as one node says they are trimmed. When false, records that other nodes "
        "have not trimmed yet are still delivered.",
    )

    # So much of the window is consumed before it slides: nodes stay busy, and WINDOW messages are few.
    window_slide_share: float = 0.7
    # After so many waits in a row a silent node is no longer waited for at gaps; -1 always waits one period.
    gap_grace_limit: int = 2
    started_timeout_ms: int = 5_000  # without an answer, START is sent again: one that was lost
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
    slow_node_average_ms: int = 1_800_000  # over so much time speed is averaged: a bad minute is forgiven
    slow_node_margin: float = 10.0  # so many times its peers' average, on top of it, makes a node slow
    slow_node_margin_decay_per_s: float = 0.25  # the margin grows with each node found slow, and shrinks so
    # A node found slow is passed over for a minute, for longer when nodes are found slow again and again.
    slow_node_probation_ms_min: int = 60_000
    slow_node_probation_ms_max: int = 1_800_000
    slow_node_probation_decay: float = 0.25  # of the time in which no node was slow


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReadSettings(Settings):
    """What a storage node spends on one reader's stream."""

    read_bytes_max: int = setting(
        4 * (MIB + 64 * 1024),  # sixteen records of a quarter of a megabyte, with their headers
        "How many bytes one read of the store may return; a first record of any size is returned. Larger "
        "reads more at once, smaller shares the disk more evenly.",
    )
    send_queue_bytes_max: int = setting(
        8 * (MIB + 64 * 1024),  # one read is on its way while the next is made
        "How many bytes may wait to be sent before the node reads on. Less than two reads means that it "
        "reads and sends in turn. Larger keeps a fast connection full, smaller needs less memory per reader.",
    )
    read_time_ms_max: int = 1_000  # a scan past records that others send lets other readers in after this
