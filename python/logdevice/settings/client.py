"""The settings of a client: how long it waits, how often it tries, and how much it collects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, integer, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings(Settings):
    """A client of the cluster."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (
        ("attempt_timeout_ms", "call_timeout_ms"),
        ("writer_batch_bytes", "writer_memory_bytes_max"),
    )

    append_timeout_ms: int = setting(
        10_000,
        "How long an append may take, all attempts together. Larger bears longer failovers, smaller reports "
        "trouble sooner.",
    )
    call_timeout_ms: int = setting(
        30_000,
        "How long any other call may take, all attempts together. Larger bears longer failovers, smaller "
        "reports trouble sooner.",
    )
    attempt_timeout_ms: int = setting(
        5_000,
        "How long one node may take to answer a question before another one is asked, or the same again. "
        "Larger bears slow nodes, smaller gets around hanging ones sooner.",
    )
    retry_pause_ms_min: int = setting(
        20,
        "The first pause before a call is tried again; it doubles each time. Larger spares a cluster in "
        "trouble, smaller goes on sooner.",
    )
    retry_pause_ms_max: int = setting(
        2_000,
        "What that pause grows to. Larger spares a cluster in trouble, smaller goes on sooner.",
    )
    cluster_refresh_ms: int = setting(
        5_000,
        "For how long the client relies on what it was told about nodes and logs. Larger asks less, smaller "
        "notices changes sooner.",
    )
    outbox_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of requests may wait to be sent to one node; more are refused for the moment. Larger "
        "keeps a slow connection full, smaller needs less memory.",
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
    )
    delivery_bytes: int = setting(
        4 * MIB,
        "How many bytes of records a reader joins into one batch for the application, if they are there. "
        "Larger costs less per entry, smaller needs less memory.",
    )
    delivery_entries: int = setting(
        20_000,
        "How many entries a reader joins into one batch for the application, if they are there. Larger costs "
        "less per entry, smaller needs less memory.",
    )
    writer_batch_bytes: int = setting(
        MIB,
        "How many bytes of entries a batching writer collects for one record. Larger costs less per entry, "
        "smaller needs less memory and delays less.",
    )
    writer_batch_entries: int = setting(
        20_000,
        "How many entries a batching writer collects for one record. Larger costs less per entry, smaller "
        "delays less.",
    )
    writer_delay_ms: int = setting(
        20,
        "How long an entry may wait in a batching writer for others to share a record with. Larger makes "
        "larger records, smaller makes them readable sooner.",
        integer(0),
    )
    writer_memory_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of entries a batching writer holds before whoever writes has to wait. Larger rides "
        "out longer pauses of the cluster, smaller needs less memory.",
    )
    writer_window: int = setting(
        32,
        "How many records of a writer with a name may be on their way at a time; at most what the nodes "
        "allow, `writer_window_max`. Larger hides more latency, smaller sends less again after a failover.",
    )
    writer_stall_timeout_ms: int = setting(
        60_000,
        "After how long without any progress a writer with a name gives up. Larger bears longer outages, "
        "smaller reports trouble sooner.",
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
    )
    writer_in_flight_max: int = setting(
        8,
        "How many records of a batching writer may be on their way at a time; in a log with strict writer "
        "order it is one. Larger hides more latency, smaller mixes up fewer when some have to be sent again.",
    )

    chain_store_timeout_ms: int = 2_000  # longer than a slow sync; then the sequencer is asked to look
    resend_timeout_ms: int = 1_000  # of a tagged append, doubling up to attempt_timeout_ms: it cannot double
    writer_pause_ms_max: int = 250  # of a writer with a name: longer, and it is late after a failover
    redirects_max: int = 8  # in a row; then nodes that point at each other get a pause
    answers_grace_ms: int = 100  # for nodes beyond those that suffice: their answers make better estimates
