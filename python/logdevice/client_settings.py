"""The knobs of a client: how long it waits, how often it tries, and how much it collects.

Declared like those in `settings.py`, which lists them with all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.knobs import Settings, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings(Settings):
    """A client of the cluster."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (
        ("attempt_timeout_ms", "call_timeout_ms"),
        ("writer_batch_bytes", "writer_memory_bytes_max"),
    )

    chain_store_timeout_ms: int = setting(
        2_000,
        "How long to wait for one node of a chain before the sequencer is asked to look. Larger bears slow "
        "disks, smaller gets around a node that hangs sooner.",
        unit="ms",
        minimum=1,
    )
    append_timeout_ms: int = setting(
        10_000,
        "How long an append may take, all attempts together. Larger bears longer failovers, smaller reports "
        "trouble sooner.",
        unit="ms",
        minimum=1,
    )
    call_timeout_ms: int = setting(
        30_000,
        "How long any other call may take, all attempts together. Larger bears longer failovers, smaller "
        "reports trouble sooner.",
        unit="ms",
        minimum=1,
    )
    attempt_timeout_ms: int = setting(
        5_000,
        "How long one node may take to answer a question before another one is asked, or the same again. "
        "Larger bears slow nodes, smaller gets around hanging ones sooner.",
        unit="ms",
        minimum=1,
    )
    resend_timeout_ms: int = setting(
        1_000,
        "How long a tagged append may go without an answer before it is sent again, which cannot double it; "
        "the wait doubles up to `attempt_timeout_ms`. Larger bears slow disks, smaller gets around hanging "
        "sequencers sooner.",
        unit="ms",
        minimum=1,
    )
    retry_pause_ms_min: int = setting(
        20,
        "The first pause before a call is tried again; it doubles each time. Larger spares a cluster in "
        "trouble, smaller goes on sooner.",
        unit="ms",
        minimum=1,
    )
    retry_pause_ms_max: int = setting(
        2_000,
        "What that pause grows to. Larger spares a cluster in trouble, smaller goes on sooner.",
        unit="ms",
        minimum=1,
    )
    barrier_attempts_max: int = setting(
        10,
        "How often a consistent cut is tried when sequencers are replaced while it is taken. Larger bears "
        "more failovers, smaller reports trouble sooner.",
        unit="attempts",
        minimum=1,
    )
    redirects_max: int = setting(
        8,
        "How many redirects in a row an append follows before it pauses. Larger finds a sequencer that "
        "wanders, smaller spares nodes that point at each other.",
        unit="redirects",
        minimum=1,
    )
    answers_grace_ms: int = setting(
        100,
        "How long to wait for the remaining nodes when enough of them have answered a question about a log. "
        "Larger gives better estimates, smaller gets around hanging nodes sooner.",
        unit="ms",
        minimum=0,
    )
    cluster_refresh_ms: int = setting(
        5_000,
        "For how long the client relies on what it was told about nodes and logs. Larger asks less, smaller "
        "notices changes sooner.",
        unit="ms",
        minimum=1,
    )
    outbox_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of requests may wait to be sent to one node; more are refused for the moment. Larger "
        "keeps a slow connection full, smaller needs less memory.",
        unit="bytes",
        minimum=1,
    )
    keep_freed_memory: bool = setting(
        True,
        "Keep memory that was freed in the process instead of giving it back and asking for it again with "
        "every message, which takes up to 40 % of a reader's time. When false, the process shrinks sooner.",
    )
    logs_window_bytes: int = setting(
        64 * MIB,
        "How many bytes of records may be on their way or waiting when several logs are read at a time, all "
        "together. Larger reads faster, smaller needs less memory; a single record of each may go over.",
        unit="bytes",
        minimum=1,
    )
    cuts_expected_max: int = setting(
        10_000,
        "How many cuts a reader of several logs may be told to expect at a time. Larger takes "
        "cuts longer ahead of the reader, smaller needs less memory.",
        unit="cuts",
        minimum=1,
    )
    delivery_bytes: int = setting(
        4 * MIB,
        "How many bytes of records a reader joins into one batch for the application, if they are there. "
        "Larger costs less per entry, smaller needs less memory.",
        unit="bytes",
        minimum=1,
    )
    delivery_entries: int = setting(
        20_000,
        "How many entries a reader joins into one batch for the application, if they are there. Larger costs "
        "less per entry, smaller needs less memory.",
        unit="entries",
        minimum=1,
    )
    writer_batch_bytes: int = setting(
        MIB,
        "How many bytes of entries a batching writer collects for one record. Larger costs less per entry, "
        "smaller needs less memory and delays less.",
        unit="bytes",
        minimum=1,
    )
    writer_batch_entries: int = setting(
        20_000,
        "How many entries a batching writer collects for one record. Larger costs less per entry, smaller "
        "delays less.",
        unit="entries",
        minimum=1,
    )
    writer_delay_ms: int = setting(
        20,
        "How long an entry may wait in a batching writer for others to share a record with. Larger makes "
        "larger records, smaller makes them readable sooner.",
        unit="ms",
        minimum=0,
    )
    writer_memory_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of entries a batching writer holds before whoever writes has to wait. Larger rides "
        "out longer pauses of the cluster, smaller needs less memory.",
        unit="bytes",
        minimum=1,
    )
    writer_window: int = setting(
        32,
        "How many records of a writer with a name may be on their way at a time; at most what the nodes "
        "allow, `writer_window_max`. Larger hides more latency, smaller sends less again after a failover.",
        unit="records",
        minimum=1,
    )
    writer_pause_ms_max: int = setting(
        250,
        "What the pause grows to that a writer with a name makes when its log has no sequencer. Larger "
        "spares a cluster in trouble, smaller goes on sooner.",
        unit="ms",
        minimum=1,
    )
    writer_stall_timeout_ms: int = setting(
        60_000,
        "After how long without any progress a writer with a name gives up. Larger bears longer outages, "
        "smaller reports trouble sooner.",
        unit="ms",
        minimum=1,
    )
    writer_journal_sync: bool = setting(
        True,
        "Whether a writer's journal is on the disk before a record is sent. When false it survives the crash "
        "of the process, but perhaps not that of the machine.",
    )
    undo_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of changes an undo ring keeps; its file has up to twice as many. Larger "
        "takes back longer rollbacks, smaller needs less disk.",
        unit="bytes",
        minimum=1,
    )
    writer_in_flight_max: int = setting(
        8,
        "How many records of a batching writer may be on their way at a time; in a log with strict writer "
        "order it is one. Larger hides more latency, smaller mixes up fewer when some have to be sent again.",
        unit="records",
        minimum=1,
    )
