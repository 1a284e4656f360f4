"""The settings of a client: how long it waits, how often it tries, and how much it collects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, integer, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings(Settings):
    """How long a client waits, how much it collects, and how its writers work."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (
        ("attempt_timeout_ms", "call_timeout_ms"),
        ("writer_batch_bytes", "writer_memory_bytes_max"),
    )

    append_timeout_ms: int = setting(
        10_000,
        "How long an append may take, all attempts together. Raise it if appends fail while another node "
        "takes over their log; lower it if the application must learn of trouble sooner.",
    )
    call_timeout_ms: int = setting(
        30_000,
        "How long any other call may take, all attempts together. Raise it if calls fail during a failover "
        "or while nodes restart; lower it if the application must learn of trouble sooner.",
    )
    keep_freed_memory: bool = setting(
        True,
        "Whether the process keeps memory that it has freed. If it returns the memory to the operating "
        "system and asks for it again with every message, this takes up to 40 % of a reader's time. Set it "
        "to false if the process must shrink after it has read or written a lot.",
    )
    logs_window_bytes: int = setting(
        64 * MIB,
        "For a reader of several logs: how many bytes of records may be on their way to it or wait in it, "
        "all logs together. A single record of each log may exceed it. Raise it if such a reader is too slow "
        "for the network it has; lower it if its process needs too much memory.",
    )
    delivery_bytes: int = setting(
        4 * MIB,
        "How many bytes of records a reader joins into one batch for the application, if so many are there. "
        "Raise it if every batch costs the application much; lower it if its process needs too much memory.",
    )
    writer_batch_bytes: int = setting(
        MIB,
        "How many bytes of entries a batching writer collects for one record. Raise it if writers and nodes "
        "spend too much time on many records; lower it if entries must be readable sooner, or if a keyed "
        "log should drop replaced entries sooner: compaction drops whole records.",
    )
    writer_delay_ms: int = setting(
        20,
        "How long an entry may wait in a batching writer for other entries to share a record with. Raise it "
        "if records are too small because entries arrive slowly; lower it if entries must be readable "
        "sooner.",
        integer(0),
    )
    writer_memory_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of entries a batching writer holds before `put` waits. Raise it if `put` must not "
        "wait during a failover; lower it if the process needs too much memory.",
    )
    writer_in_flight_max: int = setting(
        8,
        "How many records a batching writer without a name may have on their way at the same time, in a log "
        "whose attribute `writer_order` is none. Raise it if the writer is too slow because answers take "
        "long; lower it if fewer records may change places when some of them have to be sent again.",
    )
    writer_stall_timeout_ms: int = setting(
        60_000,
        "How long a named writer goes on without any progress before it gives up. Raise it if the "
        "writer should wait through longer outages; lower it if the application must learn of an outage "
        "sooner.",
    )
    writer_journal_sync: bool = setting(
        True,
        "Whether a writer's journal is on the disk before the writer sends a record. Set it to false if "
        "waiting for the disk costs too much: the journal then survives a crash of the process, but perhaps "
        "not one of the machine.",
    )
    undo_bytes_max: int = setting(
        64 * MIB,
        "How many bytes of changes an undo ring keeps; its file takes up to twice as many. Raise it if the "
        "consumer must be able to take back longer rollbacks; lower it if the file takes too much disk.",
    )

    attempt_timeout_ms: int = 5_000  # for one node to answer: longer than a slow disk takes
    # Short at first, because most trouble is over at once; later longer, to spare a cluster in trouble.
    retry_pause_ms_min: int = 20
    retry_pause_ms_max: int = 2_000
    cluster_refresh_ms: int = 5_000  # how old views of nodes and logs may be; a failed call asks at once
    outbox_bytes_max: int = 64 * MIB  # of requests that wait for one node, as large as the largest message
    delivery_entries: int = 20_000  # so that tiny entries do not make batches of millions of rows
    writer_batch_entries: int = 20_000  # so that tiny entries do not make records that are slow to read
    writer_window: int = 32  # records of a named writer on their way: half of what nodes allow one writer
    chain_store_timeout_ms: int = 2_000  # longer than a slow sync; then the sequencer is asked to look
    # Of a tagged append, doubling up to attempt_timeout_ms. Short, as a tag keeps duplicates out of the log.
    resend_timeout_ms: int = 1_000
    writer_pause_ms_max: int = 250  # of a named writer; with longer pauses it resumes late after a failover
    redirects_max: int = 8  # in a row; then the client pauses, as nodes point at each other
    answers_grace_ms: int = 100  # for nodes beyond those that suffice: their answers make better estimates
