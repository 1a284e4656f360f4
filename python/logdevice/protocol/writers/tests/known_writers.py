"""Helpers that show what a received table knows about a writer."""

from __future__ import annotations

from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import Lsn


def find(table: ReceivedTable, writer: int, seq: int) -> tuple[bool, Lsn]:
    """Whether the log has this append, and where."""
    state = table.state_of(writer, seq)
    return state.is_stored, state.lsn


def progress(table: ReceivedTable, writer: int) -> tuple[int, int] | None:
    """The writer's incarnation and the number of its next append."""
    state = table.state_of(writer, 0)
    return (state.incarnation, state.next_seq) if state.is_known else None
