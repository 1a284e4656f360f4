"""The knobs of the write path: sequencers and Appenders, recovery and purge.

Declared like those in `settings.py`, which lists them with all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logdevice.knobs import Settings, setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings(Settings):
    """A log's sequencer and its Appenders."""

    body_bytes_max: int = setting(
        32 * MIB,
        "The largest body of a record that is accepted. Larger allows bigger batches, smaller bounds memory.",
        unit="bytes",
        minimum=1,
    )
    window_records_max: int = setting(
        1_000,
        "How many records of a log may be in flight. Larger hides more latency, smaller makes recovery "
        "shorter.",
        unit="records",
        minimum=1,
    )
    window_bytes_max: int = setting(
        128 * MIB,
        "How many bytes of a log's records may be in flight; a single record may go over. Larger hides more"
        " latency, smaller needs less memory.",
        unit="bytes",
        minimum=1,
    )
    store_timeout_ms_min: int = setting(
        200,
        "How long a first wave waits for its answers; it doubles with every wave. Larger bears slow disks, "
        "smaller gets around them sooner.",
        unit="ms",
        minimum=1,
    )
    store_timeout_ms_max: int = setting(
        # Shorter than the penalties of nodes that failed, or a wave would forget what the last one learnt.
        3_000,
        "What that wait grows to. Larger spares a cluster in trouble, smaller tries more often.",
        unit="ms",
        minimum=1,
    )
    immediate_waves_max: int = setting(
        3,
        "Up to which wave a failure is followed by the next wave at once; after that, at the time-out. "
        "Larger gets around failed nodes sooner, smaller spares a cluster in trouble.",
        unit="waves",
        minimum=1,
    )
    leader_retries_max: int = setting(
        2,
        "How often leaders without a copy are asked again before a record goes on without them. Larger "
        "keeps single copy delivery exact, smaller releases sooner.",
        unit="times",
        minimum=0,
    )
    sticky_bytes_max: int = setting(
        32 * MIB,
        "After how many bytes a new copyset is chosen. Larger makes longer blocks for readers, smaller "
        "spreads a log more evenly; 1 chooses one for every record.",
        unit="bytes",
        minimum=1,
    )
    sticky_ms_max: int = setting(
        600_000,
        "After how much time a new copyset is chosen. Larger makes longer blocks, smaller spreads a log "
        "sooner.",
        unit="ms",
        minimum=1,
    )
    slow_store_penalty_ms: int = setting(
        60_000,
        "How long a node that did not answer a store in time is passed over. Larger avoids it longer, "
        "smaller gives it another chance sooner.",
        unit="ms",
        minimum=0,
    )
    slow_nodes_share_max: float = setting(
        0.25,
        "When more than this share of the nodeset was slow, all are forgiven. Larger avoids more nodes, "
        "smaller keeps copies spread.",
        minimum=0.0,
        maximum=1.0,
    )
    overloaded_penalty_ms: int = setting(
        1_000,
        "How long a node that said it was overloaded is passed over. Larger spares it, smaller uses it "
        "again sooner.",
        unit="ms",
        minimum=0,
    )
    no_space_penalty_ms: int = setting(
        60_000,
        "How long a node whose disk is full is passed over. Larger asks it less often, smaller notices "
        "sooner that it has space again.",
        unit="ms",
        minimum=0,
    )
    rebuilding_penalty_ms: int = setting(
        30_000,
        "How long a node whose data is being restored is passed over. Larger asks it less often, smaller "
        "uses it again sooner.",
        unit="ms",
        minimum=0,
    )
    unreachable_penalty_ms: int = setting(
        5_000,
        "How long a node that could not be reached, or whose disk failed, is passed over; a new connection "
        "forgives it. Larger asks it less often, smaller uses it again sooner.",
        unit="ms",
        minimum=0,
    )
    activation_timeout_ms: int = setting(
        5_000,
        "How long to wait for the epoch store or the metadata log before asking again. Larger bears slow "
        "stores, smaller gives up sooner.",
        unit="ms",
        minimum=1,
    )
    activation_pause_ms_min: int = setting(
        100,
        "How long after a failed or preempted activation the next one may begin; it doubles each time. "
        "Larger calms nodes that compete for a log, smaller takes over sooner.",
        unit="ms",
        minimum=1,
    )
    activation_pause_ms_max: int = setting(
        10_000,
        "What that pause grows to. Larger calms more, smaller takes over sooner.",
        unit="ms",
        minimum=1,
    )
    tail_wait_ms: int = setting(
        1_000,
        "How long the first appends of an epoch wait to learn the counters and the time of the last record "
        "before it. Larger keeps them exact in more cases, smaller accepts appends sooner in trouble.",
        unit="ms",
        minimum=0,
    )
    draining_timeout_ms: int = setting(
        2_000,
        "How long an epoch that its own sequencer has left may go on before recovery takes over. Larger "
        "finishes more appends, smaller releases the new epoch sooner.",
        unit="ms",
        minimum=0,
    )
    release_interval_ms: int = setting(
        2,
        "How long after a RELEASE the next one may follow. Larger sends fewer, smaller lets readers see "
        "records sooner.",
        unit="ms",
        minimum=0,
    )
    release_repeat_ms: int = setting(
        2_000,
        "How often the last RELEASE is repeated to all nodes. Larger sends fewer, smaller heals lost ones "
        "sooner.",
        unit="ms",
        minimum=1,
    )
    writers_max: int = setting(
        10_000,
        "How many writers of tagged appends a log remembers; who was idle longest is forgotten, and refused "
        "when it sends old numbers. Larger bears more writers, smaller needs less memory and smaller bridge "
        "records.",
        unit="writers",
        minimum=1,
    )
    writer_window_max: int = setting(
        64,
        "How many tagged appends of one writer may be on their way at a time; for so many a duplicate is "
        "told its position. Larger hides more latency, smaller needs less memory.",
        unit="appends",
        minimum=1,
    )
    writers_keep_ms: int = setting(
        1_000,
        "How long after a tagged append the storage nodes are told what the log has of its writers. Larger "
        "sends less, smaller leaves less for recovery to read.",
        unit="ms",
        minimum=0,
    )
    writers_keep_records: int = setting(
        4_096,
        "After how many tagged records they are told in any case. Larger sends less, smaller leaves less for "
        "recovery to read.",
        unit="records",
        minimum=1,
    )
    clock_ahead_ms_max: int = setting(
        600_000,
        "How far a log's clock may be put ahead of its node's by what a client or a barrier has seen; beyond "
        "that they are refused. Larger bears worse clocks, smaller keeps times of records closer to the true "
        "ones.",
        unit="ms",
        minimum=1,
    )
    clock_places_max: int = setting(
        4_096,
        "For how many milliseconds in which something was appended a sequencer knows where they began. "
        "Larger bears slower barriers, smaller needs less memory.",
        unit="places",
        minimum=1,
    )
    barriers_max: int = setting(
        1_000,
        "How many barriers of a log may wait for their answer, and how many questions for its tail. Larger "
        "serves more clients at a time, smaller needs less memory.",
        unit="barriers",
        minimum=1,
    )
    barrier_timeout_ms: int = setting(
        5_000,
        "How long a barrier waits for what was given out to be released, and a barrier or a tail for the "
        "epoch store, before the client is told to ask again. Larger asks less often, smaller frees room "
        "sooner.",
        unit="ms",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings(Settings):
    """The recovery of a log's earlier epochs, and the purge of nodes that missed one."""

    retry_ms_min: int = setting(
        500,
        "After how long a question without an answer is asked again; it doubles each time. Larger spares "
        "slow nodes, smaller recovers sooner from lost messages.",
        unit="ms",
        minimum=1,
    )
    retry_ms_max: int = setting(
        5_000,
        "What that grows to. Larger spares nodes in trouble, smaller notices sooner that they are back.",
        unit="ms",
        minimum=1,
    )
    digest_grace_ms: int = setting(
        100,
        "How long to wait for the remaining nodes when an f-majority has said what it has. Larger leaves "
        "fewer nodes to purge, smaller releases sooner.",
        unit="ms",
        minimum=0,
    )
    digest_bytes_max: int = setting(
        4 * MIB,
        "How many bytes of copies a node sends at once. Larger needs fewer questions, smaller less memory.",
        unit="bytes",
        minimum=1,
    )
    drops_waiting_max: int = setting(
        16,
        "How many orders to drop superseded records wait for one that a node is at; more are told to come "
        "again. Larger needs fewer messages, smaller less memory.",
        unit="orders",
        minimum=1,
    )
    mutations_max: int = setting(
        64,
        "How many LSNs recovery writes at a time. Larger is faster, smaller leaves more of the nodes to "
        "others.",
        unit="LSNs",
        minimum=1,
    )
    recovery_timeout_ms: int = setting(
        30_000,
        "After how long without progress the recovery of an epoch begins again with the nodes that are "
        "there. Larger bears slow nodes, smaller gets around dead ones sooner.",
        unit="ms",
        minimum=1,
    )
    state_flush_ms: int = setting(
        1_000,
        "How often a node writes down what it has learnt of released and good records. Larger writes less, "
        "smaller makes recovery after a crash shorter.",
        unit="ms",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings(Settings):
    """Logs that are written along chains, as their sequencer sees to them."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = (("chain_look_ms", "chain_fill_ms"),)

    chain_look_ms: int = setting(
        1_000,
        "How long after a position was given out its sequencer looks whether it was written. Larger leaves "
        "slow writers alone, smaller sooner completes what a writer left unfinished.",
        unit="ms",
        minimum=1,
    )
    chain_fill_ms: int = setting(
        5_000,
        "How long after a position was given out it is filled, if nothing was written there. Larger bears "
        "slower writers, smaller makes readers wait less for one that died.",
        unit="ms",
        minimum=1,
    )
    chain_answer_ms: int = setting(
        1_000,
        "How long the sequencer waits for the answer of a node in a chain before it asks again. Larger bears "
        "slow disks, smaller gets around a node that hangs sooner.",
        unit="ms",
        minimum=1,
    )
    chain_attempts_max: int = setting(
        2,
        "After how many questions without an answer a node is left out of the next chain. Larger bears short "
        "interruptions, smaller gets around a dead node sooner.",
        unit="times",
        minimum=1,
    )
    chain_suspicion_ms: int = setting(
        10_000,
        "How long a node that was left out stays so, unless it is heard of. Larger keeps chains from "
        "changing too often, smaller uses it again sooner.",
        unit="ms",
        minimum=1,
    )
    chain_regrow_ms: int = setting(
        5_000,
        "How often a chain that is shorter than it should be is looked at. Larger changes epochs less often, "
        "smaller brings back the full number of copies sooner.",
        unit="ms",
        minimum=1,
    )
