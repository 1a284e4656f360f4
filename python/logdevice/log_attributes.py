"""The attributes of a log: their names, allowed values and defaults, and which values contradict each other.

Declared like settings, but inherited down the log directory and changed at run time. A `LogAttributes` has a
value for every attribute: the default where none was set. Its values may come from several directories, so
they may contradict each other: `contradiction` checks that.
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
    """The attributes that apply to one log."""

    replication: str = setting(
        "node: 3",
        "On how many nodes, and on how many racks, rows, ... at least, a record is stored (R).",
        REPLICATION,
    )
    replication_mode: str = setting(
        "copyset",
        "How copies are stored: with `copyset` the sequencer stores them on nodes that it chooses for each "
        "block of records; with `chain` the client stores them along a fixed chain of nodes.",
        choice("copyset", "chain"),
    )
    extras: int = setting(
        0,
        "How many nodes beyond R are asked to store a record, so that a slow node does not delay it.",
        integer(0),
    )
    sync_leaders: int = setting(
        1,
        "How many of the first nodes of a copyset must have stored a record before readers get it.",
        integer(0),
    )
    leaders: int = setting(
        0,
        "How many of the first nodes of a copyset the sequencer makes sure have stored a record; 0: R nodes.",
        integer(0),
    )
    nodeset_size: int = setting(
        0, "How many nodes may store the records of an epoch; 0: all nodes.", integer(0)
    )
    scd: bool = setting(True, "Single-copy delivery: a reader gets each record from one node only.")
    local_scd: bool = setting(
        False, "Each record is sent by the node that is closest to the reader. Needs `scd`."
    )
    sticky_copyset_bytes_max: int = setting(
        32 * 1024 * 1024,
        "After how many bytes the sequencer chooses a new copyset; 0: for every record.",
        integer(0),
    )
    sticky_copyset_ms_max: int = setting(
        600_000, "After how much time the sequencer chooses a new copyset.", integer(0)
    )
    backlog_s: int = setting(
        0, "How long records are kept; 0: until an operator or a program trims them.", integer(0)
    )
    writer_order: str = setting(
        "strict",
        "Whether the log keeps the appends of each writer in the order in which the writer made them.",
        choice("strict", "none"),
    )
    writes_in_flight_max: int = setting(
        1_000,
        "How many records may be on their way to storage nodes. Beyond that, appends fail with "
        "`OverloadedError`, and clients send them again.",
        integer(2, 1_000_000),
    )
    chains: int = setting(
        1,
        "With `replication_mode` chain: how many chains the log has at a time. They take turns, position by "
        "position.",
        integer(1, 64),
    )
    min_copies: int = setting(
        1,
        "With `replication_mode` chain: the fewest nodes a chain may have while other nodes are down. With "
        "fewer nodes, appends wait.",
    )
    compaction: str = setting(
        "none",
        "What happens to superseded records, whose entries all have newer ones of the same keys: `none` "
        "keeps them, `keyed` drops them.",
        choice("none", "keyed"),
    )
    tombstone_grace_ms: int = setting(
        86_400_000,
        "With `compaction` keyed: how long a deletion (an entry with an empty payload) is kept at least. "
        "Readers that lag by more than this may have to start over.",
        integer(0),
    )

    @property
    def parsed_replication(self) -> Replication:
        """`replication` as a value."""
        return Replication.parse(self.replication)


ATTRIBUTES: Final = declared(LogAttributes)


def checked(path: str, name: str, value: object) -> Value:
    """The value in the form in which it is stored. InvalidArgumentError if it is not allowed."""
    try:
        kept: Value = read(ATTRIBUTES, "attribute", name, value)
    except ValueError as problem:
        raise InvalidArgumentError(f"{path}: {problem}") from None
    return kept


def contradiction(attributes: LogAttributes) -> str | None:
    """Why these attributes contradict each other; None if they do not."""
    copies = attributes.parsed_replication.copies
    wanted = copies + attributes.extras
    leaders = attributes.leaders or copies
    if leaders > copies:
        return f"leaders must be at most {copies}, the copies of replication, got {leaders}"
    if attributes.sync_leaders > leaders:
        return f"sync_leaders must be at most {leaders}, the number of leaders, got {attributes.sync_leaders}"
    if 0 < attributes.nodeset_size < wanted:
        return (
            f"nodeset_size must be 0 or at least {wanted}, copies plus extras, got {attributes.nodeset_size}"
        )
    if attributes.local_scd and not attributes.scd:
        return "local_scd must be false when scd is false, got true"
    if attributes.min_copies > copies:
        return f"min_copies must be at most {copies}, the copies of replication, got {attributes.min_copies}"
    if attributes.replication_mode == "chain" and attributes.extras:
        return f"extras must be 0 when replication_mode is 'chain', got {attributes.extras}"
    return None
