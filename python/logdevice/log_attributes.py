"""The attributes of a log, for nodes and clients: what may be set, to what, and what makes sense together.

Declared like settings, but inherited down the log directory and changed at run time. An object is
complete: whatever was set nowhere has its default. One that exists need not make sense as a whole
before `contradiction` says so, because its values may come from several directories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdevice.errors import InvalidArgumentError
from logdevice.settings.declarations import Kind, Value, choice, declared, integer, read, setting
from logdevice.types import Replication

REPLICATION: Final = Kind(
    "a number of nodes, or counts by scope such as 'node: 3, rack: 2'",
    lambda text: str(Replication.parse(text)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAttributes:
    """The attributes that hold for one log."""

    replication: str = setting(
        "node: 3",
        "On how many nodes, and on how many racks, rows, ... at least, a record is stored (R).",
        REPLICATION,
    )
    replication_mode: str = setting(
        "copyset",
        "Who stores the copies: the sequencer on nodes it chooses for each block of records, or the writer "
        "along a fixed chain of nodes.",
        choice("copyset", "chain"),
    )
    extras: int = setting(
        0, "How many nodes beyond R are asked to store a record, to be faster than a slow one.", integer(0)
    )
    sync_leaders: int = setting(
        1, "How many of the first nodes of a copyset must have a record before readers get it.", integer(0)
    )
    leaders: int = setting(
        0,
        "How many of the first nodes of a copyset the sequencer sees to that they have it; 0: R of them.",
        integer(0),
    )
    nodeset_size: int = setting(0, "On how many nodes an epoch of the log is spread; 0: on all.", integer(0))
    scd: bool = setting(True, "Single-copy delivery: a reader gets each record from one node only.")
    local_scd: bool = setting(False, "The node closest to the reader sends. Needs `scd`.")
    sticky_copyset_bytes_max: int = setting(
        32 * 1024 * 1024, "After how many bytes a new copyset is chosen; 0: for every record.", integer(0)
    )
    sticky_copyset_ms_max: int = setting(600_000, "After how much time a new copyset is chosen.", integer(0))
    backlog_s: int = setting(0, "How long records are kept; 0: until they are trimmed by hand.", integer(0))
    writer_order: str = setting(
        "strict",
        "Whether the appends of one writer are always in the order in which it made them.",
        choice("strict", "none"),
    )
    writes_in_flight_max: int = setting(
        1_000,
        "How many records may be on their way to storage nodes; more are refused for the moment.",
        integer(2, 1_000_000),
    )
    chains: int = setting(
        1,
        "With `replication_mode` chain: how many chains there are at a time. Positions go round them.",
        integer(1, 64),
    )
    min_copies: int = setting(
        1,
        "With `replication_mode` chain: how few nodes a chain may have when others are gone. Where not even "
        "these are there, appends wait.",
    )

    compaction: str = setting(
        "none",
        "What becomes of records whose entries have all been replaced by newer ones of the same keys: with "
        "`keyed` they are dropped.",
        choice("none", "keyed"),
    )
    tombstone_grace_ms: int = setting(
        86_400_000,
        "With `compaction` keyed: how long a deletion, an entry without a payload, is kept at least. Readers "
        "that are behind for longer may have to start over.",
        integer(0),
    )

    @property
    def parsed_replication(self) -> Replication:
        return Replication.parse(self.replication)


ATTRIBUTES: Final = declared(LogAttributes)


def checked(path: str, name: str, value: object) -> Value:
    """The value as it is kept. InvalidArgumentError names the path, the attribute and what is allowed."""
    try:
        kept: Value = read(ATTRIBUTES, "attribute", name, value)
    except ValueError as problem:
        raise InvalidArgumentError(f"{path}: {problem}") from None
    return kept


def contradiction(attributes: LogAttributes) -> str | None:
    """Why these attributes cannot hold together; None if they can."""
    copies = attributes.parsed_replication.copies
    wanted = copies + attributes.extras
    leaders = attributes.leaders or copies
    if leaders > copies:
        return f"leaders must be at most the {copies} copies of replication, got {leaders}"
    if attributes.sync_leaders > leaders:
        return f"sync_leaders must be at most the {leaders} leaders, got {attributes.sync_leaders}"
    if 0 < attributes.nodeset_size < wanted:
        return (
            f"nodeset_size must be 0 or at least {wanted}, copies and extras, got {attributes.nodeset_size}"
        )
    if attributes.local_scd and not attributes.scd:
        return "local_scd must be false when scd is false, got True"
    if attributes.min_copies > copies:
        return f"min_copies must be at most the {copies} copies of replication, got {attributes.min_copies}"
    if attributes.replication_mode == "chain" and attributes.extras:
        return f"extras must be 0 when replication_mode is 'chain', got {attributes.extras}"
    return None
