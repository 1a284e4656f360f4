"""The settings of the write path: sequencers and Appenders, recovery and purge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.settings.declarations import Settings, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings(Settings):
    """What a log's sequencer accepts and remembers."""

    body_bytes_max: int = setting(
        32 * MIB,
        "The largest body of a record that a sequencer accepts. Raise it if writers have larger payloads, "
        "and with it `message_bytes_max` everywhere and `batch_bytes_max` of the writers; lower it if nodes "
        "need too much memory.",
    )
    writers_max: int = setting(
        10_000,
        "How many writers of tagged appends a log remembers. The log forgets the writer that was idle "
        "longest, and refuses old numbers of writers that it has forgotten. Raise it if writers get "
        "`UnknownWriterError`; lower it if sequencers need too much memory.",
    )
    clock_ahead_ms_max: int = setting(
        600_000,
        "How far a log's clock may be moved ahead of the clock of its node by the times that a client or a "
        "barrier has seen in other logs; times beyond that are refused. Raise it if nodes with wrong clocks "
        "make appends fail; lower it if the times of records must be closer to the true time.",
    )

    # A node sets the next three from attributes of the log: writes_in_flight_max and sticky_copyset_*.
    window_records_max: int = 1_000
    sticky_bytes_max: int = 32 * MIB
    sticky_ms_max: int = 600_000
    store_timeout_ms_min: int = 200  # of a first wave; it doubles with every wave
    # Shorter than the penalties of nodes that failed, or a wave would forget what the last one learnt.
    store_timeout_ms_max: int = 3_000
    immediate_waves_max: int = 3  # later waves wait for the time-out, to spare a cluster in trouble
    leader_retries_max: int = 2  # how often leaders without a copy are asked again: they send to readers
    # How long a node is passed over: for as long as its kind of trouble usually lasts.
    slow_store_penalty_ms: int = 60_000
    overloaded_penalty_ms: int = 1_000
    no_space_penalty_ms: int = 60_000
    rebuilding_penalty_ms: int = 30_000
    unreachable_penalty_ms: int = 5_000  # or until there is a new connection
    slow_nodes_share_max: float = 0.25  # of the nodeset; if more were slow it is not the nodes: all forgiven
    activation_timeout_ms: int = 5_000  # then the epoch store or the metadata log is asked again
    # Between activations that failed or were preempted, doubling: nodes that compete for a log calm down.
    activation_pause_ms_min: int = 100
    activation_pause_ms_max: int = 10_000
    tail_wait_ms: int = 1_000  # the first appends of an epoch wait for the counters before it, not longer
    draining_timeout_ms: int = 2_000  # then recovery takes over what an epoch left unfinished
    release_interval_ms: int = 2  # between two RELEASEs of a busy log
    release_repeat_ms: int = 2_000  # heals a RELEASE that was lost
    # Storage nodes are told of writers after this much, which bounds what recovery has to read.
    writers_keep_ms: int = 1_000
    writers_keep_records: int = 4_096
    clock_places_max: int = 4_096  # for this many milliseconds with appends, a barrier finds where each began
    window_bytes_max: int = 128 * MIB  # a second of a fast log; a single record may exceed it
    # How many tagged appends one writer may have in flight. The sequencer knows the positions of that many,
    # the latest ones, so that it can answer duplicates.
    writer_window_max: int = 64
    barriers_max: int = 1_000  # barriers and questions for the tail that wait; more are told to ask again
    barrier_timeout_ms: int = 5_000  # then a client that waits for a barrier or a tail is told to ask again


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings(Settings):
    """The recovery of a log's earlier epochs, and the purge of nodes that missed one."""

    recovery_timeout_ms: int = 30_000  # without progress; then the nodes that are there now are asked
    # Before a question that got no answer is asked again; doubling.
    retry_ms_min: int = 500
    retry_ms_max: int = 5_000
    digest_grace_ms: int = 100  # for nodes beyond the f-majority: each that answers needs no purge
    digest_bytes_max: int = 4 * MIB  # of copies in one answer, which is held in memory
    mutations_max: int = 64  # LSNs written at a time, to leave the nodes to others too
    state_flush_ms: int = 1_000  # after a crash a node must learn again what it had learnt since


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings(Settings):
    """Logs that are written along chains: what their sequencer does about writers that stop."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("chain_look_ms", "chain_fill_ms"),)

    chain_fill_ms: int = setting(
        5_000,
        "How long after a writer got a position the sequencer fills it with a hole, if nothing was written "
        "there. Raise it if slow writers lose their positions; lower it if readers must wait less for a "
        "writer that has died.",
    )

    # Then the sequencer checks whether the position was written. A smaller chain_fill_ms lowers it.
    chain_look_ms: int = 1_000
    chain_answer_ms: int = 1_000  # then a node of a chain is asked again: longer than a slow sync takes
    chain_attempts_max: int = 2  # questions without an answer; then the next chain goes without the node
    chain_suspicion_ms: int = 10_000  # how long a node stays left out: chains should not change too often
    chain_regrow_ms: int = 5_000  # how often a chain that is too short is looked at
