"""What became of settings that no longer exist: an answer for each old name in a file, a flag or a call.

Every name that was ever public is either a setting today or in this table. The answer goes after "NAME is no
longer a setting: ". docs/upgrading.md has the table for operators.
"""

from __future__ import annotations

from typing import Final

_DETECTION: Final = (
    "readers have fixed rules for calling a node slow; slow_node_detection switches the detection off"
)
_PAUSES: Final = "pauses before another attempt have fixed lengths, which grow while the trouble lasts"
_PENALTIES: Final = "a sequencer passes over a node in trouble for a fixed time, by the kind of trouble"
_ACTIVATION: Final = "a node repeats an activation that failed after fixed pauses"
_RECOVERY: Final = "recovery has fixed steps and limits, and begins again when it makes no progress"
_CHAINS: Final = "a sequencer replaces nodes of a chain after fixed times; chain_fill_ms is still a setting"
_WRITERS_KEPT: Final = "a sequencer tells storage nodes of its writers at fixed intervals"
_REBUILDING: Final = (
    "copying has fixed steps; rebuild_bytes_per_s_max and rebuild_busy_percent_max bound what it costs"
)
_WAVES: Final = "a sequencer stores a record again after fixed times; append_timeout_ms bounds them"
_CONNECTIONS: Final = (
    "a process gives another one five seconds to connect, and notices after 15 seconds that it has vanished"
)

RETIRED: Final[dict[str, str]] = {
    # Said elsewhere.
    "window_records_max": "set the attribute writes_in_flight_max of the log",
    "sticky_bytes_max": "set the attribute sticky_copyset_bytes_max of the log",
    "sticky_ms_max": "set the attribute sticky_copyset_ms_max of the log",
    "attempt_timeout_ms": (
        "one attempt takes at most five seconds; append_timeout_ms and call_timeout_ms bound all of them"
    ),
    "redirects_max": "append_timeout_ms bounds how long an append looks for its sequencer",
    "resend_timeout_ms": "append_timeout_ms and writer_stall_timeout_ms bound all attempts",
    "chain_store_timeout_ms": "append_timeout_ms bounds an append to a chain log",
    "all_send_all_timeout_ms": "it is 20 seconds, or scd_timeout_ms if that is longer",
    "started_timeout_ms": "scd_timeout_ms says how long a reader waits for a silent node",
    "chain_look_ms": "it is one second, or chain_fill_ms if that is shorter",
    "pings_refused_max": "it is two; pings_missed_max says when a silent node counts as dead",
    "delivery_entries": "a batch joins records up to 20000 entries; delivery_bytes bounds its bytes",
    "writer_batch_entries": "a record gets at most 20000 entries; set writer_batch_bytes or writer_delay_ms",
    "batch_entries_max": "a record has at most 1000000 entries; batch_bytes_max bounds its bytes",
    "read_bytes_max": "one read of the store returns 4.25 MB; send_queue_bytes_max bounds reading ahead",
    "read_time_ms_max": "one read of the store takes at most a second",
    "cuts_expected_max": "a reader of several logs can expect 10000 cuts",
    # Limits that nothing gains from moving.
    "window_bytes_max": "a log may have 128 MB in flight; set its attribute writes_in_flight_max",
    "peer_queue_bytes_max": "256 MB may wait for one peer",
    "outbox_bytes_max": "64 MB of requests may wait for one node",
    "writer_window": "a named writer has up to 32 records in flight, which fits what nodes allow",
    "writer_window_max": "a writer may have 64 tagged appends in flight, which is part of the protocol",
    "barriers_max": "1000 barriers and questions for the tail of a log may wait; clients ask again",
    "barrier_timeout_ms": "a barrier waits five seconds, then the client asks again",
    "barrier_attempts_max": "a consistent cut is tried ten times",
    "clock_places_max": "a sequencer remembers enough of a log's recent milliseconds for barriers",
    "segment_bytes": "a segment is 256 MB large",
    "preallocate_bytes": "a segment file grows by 16 MB at a time",
    "punch_stretch_bytes": "a node gives back stretches of trimmed records of at least 1 MB",
    "open_segments_max": "a node keeps 256 segment files open",
    "index_memory_bytes": "a node collects 16 MB of index before it writes it; set index_cache_bytes",
    "commit_group_bytes_max": "one sync of the disk covers 64 MB; disk_queue_bytes_max bounds what waits",
    "drops_waiting_max": "a node refuses orders to drop records while 16 wait, and they come again",
    # Chores and waits with fixed times.
    "cluster_refresh_ms": "a client asks for changes of nodes and logs every five seconds and after failures",
    "configuration_poll_ms": "a node looks for changes of nodes and logs twice a second",
    "activation_check_ms": "a node looks once a second for logs that it should be the sequencer of",
    "retention_interval_ms": "a node trims records by the attribute backlog_s every minute",
    "reclaim_interval_ms": "a node gives back the space of trimmed records every five seconds",
    "shutdown_timeout_ms": "a node that was asked to stop waits at most five seconds for appends in flight",
    "peer_timeout_ms": "a node waits ten seconds for the answer of another one",
    "sqlite_busy_timeout_ms": "a process waits five seconds for another one that writes the SQLite file",
    "zookeeper_session_timeout_ms": "set zookeeper_timeout_ms; the session has ten seconds",
    "answers_grace_ms": "a client waits a tenth of a second for answers beyond those that suffice",
    "gap_grace_ms": "a reader waits a tenth of a second for the last nodes before it passes a gap",
    "gap_grace_limit": "a reader stops waiting for a silent node after two such waits in a row",
    "stall_grace_ms": "a reader calls itself unhealthy after half a minute without progress",
    "window_slide_share": "a reader asks for more at 70 % of its window; set window_lsns or window_bytes",
    "tail_wait_ms": "the first appends of an epoch wait at most a second for the counters before it",
    "draining_timeout_ms": "an epoch that its sequencer has left has two seconds to end",
    "release_interval_ms": "a sequencer releases records every two milliseconds at most",
    "release_repeat_ms": "a sequencer repeats its last RELEASE every two seconds",
    **dict.fromkeys(("connect_timeout_ms", "keepalive_interval_ms", "keepalive_timeout_ms"), _CONNECTIONS),
    **dict.fromkeys(
        (
            "retry_pause_ms_min",
            "retry_pause_ms_max",
            "writer_pause_ms_max",
            "reconnect_delay_ms_min",
            "reconnect_delay_ms_max",
            "metadata_retry_ms_min",
            "metadata_retry_ms_max",
            "rewind_delay_ms_min",
            "rewind_delay_ms_max",
            "rewind_delay_decay",
        ),
        _PAUSES,
    ),
    **dict.fromkeys(
        ("activation_timeout_ms", "activation_pause_ms_min", "activation_pause_ms_max"), _ACTIVATION
    ),
    **dict.fromkeys(
        ("store_timeout_ms_min", "store_timeout_ms_max", "immediate_waves_max", "leader_retries_max"), _WAVES
    ),
    **dict.fromkeys(
        (
            "slow_store_penalty_ms",
            "overloaded_penalty_ms",
            "no_space_penalty_ms",
            "rebuilding_penalty_ms",
            "unreachable_penalty_ms",
            "slow_nodes_share_max",
        ),
        _PENALTIES,
    ),
    **dict.fromkeys(("writers_keep_ms", "writers_keep_records"), _WRITERS_KEPT),
    **dict.fromkeys(
        (
            "recovery_timeout_ms",
            "retry_ms_min",
            "retry_ms_max",
            "digest_grace_ms",
            "digest_bytes_max",
            "mutations_max",
            "state_flush_ms",
        ),
        _RECOVERY,
    ),
    **dict.fromkeys(
        ("chain_answer_ms", "chain_attempts_max", "chain_suspicion_ms", "chain_regrow_ms"), _CHAINS
    ),
    **dict.fromkeys(
        (
            "slow_node_floor_ms",
            "slow_node_average_ms",
            "slow_node_margin",
            "slow_node_margin_decay_per_s",
            "slow_node_probation_ms_min",
            "slow_node_probation_ms_max",
            "slow_node_probation_decay",
        ),
        _DETECTION,
    ),
    **dict.fromkeys(
        (
            "rebuild_yield_bytes_per_s",
            "rebuild_chunk_bytes",
            "rebuild_chunks_max",
            "rebuild_logs_max",
            "rebuild_retry_ms",
            "rebuild_attempts_max",
        ),
        _REBUILDING,
    ),
    # Never did anything.
    **dict.fromkeys(
        ("redelivery_delay_ms_min", "redelivery_delay_ms_max"), "it has no replacement, as nothing used it"
    ),
}
