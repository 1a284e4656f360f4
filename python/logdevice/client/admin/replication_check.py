"""The replication checker: checks that every record of a log has as many good copies as it should.

It reads the headers from all nodes, one range of the log after the other, and compares them. It changes
nothing, and holds only one range in memory. It skips records that are trimmed or not released yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from logdevice.client.client import AsyncClient
from logdevice.client.directory import LogRef
from logdevice.errors import UnavailableError
from logdevice.protocol.messages.rebuilding import CopiesAre
from logdevice.protocol.quorum import can_replicate, places
from logdevice.types import (
    LSN_OLDEST,
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    epoch_start,
)

_DRAINED = int(RecordFlags.DRAINED)
_BRIDGE = int(RecordFlags.BRIDGE)
_COMPACTED = int(RecordFlags.COMPACTED)
_UNREADABLE = -1
_EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY


class Problem(Enum):
    """What is wrong with a record."""

    TOO_FEW_COPIES = "TOO_FEW_COPIES"  # fewer than the replication asks for, in some scope
    WRONG_COPYSET = "WRONG_COPYSET"  # there are enough copies, but every copyset names a node without one
    NO_COPY = "NO_COPY"  # no node has a copy of a released record: it is lost
    DIFFERENT_CONTENT = "DIFFERENT_CONTENT"  # two copies differ
    UNREADABLE = "UNREADABLE"  # a copy has a wrong checksum


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one record."""

    lsn: Lsn
    problem: Problem
    details: str


@dataclass(slots=True)
class CheckReport:
    """What was checked so far, and what was found."""

    end: Lsn = Lsn(0)  # everything below was checked
    records: int = 0
    copies: int = 0
    findings: list[Finding] = field(default_factory=list)
    silent: tuple[NodeId, ...] = ()  # nodes that did not answer: what they hold is not known

    @property
    def is_clean(self) -> bool:
        """Whether every node answered and no problem was found."""
        return not self.findings and not self.silent


@dataclass(frozen=True, slots=True)
class Copy:
    node: NodeId
    record: Record
    checksum: int


def judge(
    copies: Sequence[Copy], metadata: EpochMetadata, locations: Mapping[NodeId, Location]
) -> list[tuple[Problem, str]]:
    """What is wrong with the copies of one record.

    The record is well stored if there is a copyset all of whose members have a copy that names this copyset.
    Other copies do no harm: those of a failed wave, those that were moved to other nodes, and those of a node
    that was down when the record was stored again without it.
    """
    counted = [copy for copy in copies if not copy.record.flags & _DRAINED]
    unreadable = sorted(copy.node for copy in counted if copy.checksum == _UNREADABLE)
    whole = [copy for copy in counted if copy.checksum != _UNREADABLE]
    holders = [copy.node for copy in whole]
    found: list[tuple[Problem, str]] = []
    if unreadable:
        found.append((Problem.UNREADABLE, f"on {_names(unreadable)}"))
    # In a keyed log some nodes may have dropped a body that others still have (K25).
    with_body = [copy for copy in whole if not copy.record.flags & _COMPACTED]
    if len({(copy.checksum, copy.record.entries) for copy in with_body}) > 1:
        found.append((Problem.DIFFERENT_CONTENT, f"on {_names(holders)}"))
    if not can_replicate(places(holders, locations), metadata.replication):
        found.append((Problem.TOO_FEW_COPIES, f"on {_names(holders)}, needed: {metadata.replication}"))
    elif not any(
        _is_complete(copyset, whole, metadata, locations)
        for copyset in {frozenset(copy.record.copyset) for copy in whole}
    ):
        named = sorted({node for copy in whole for node in copy.record.copyset})
        found.append((Problem.WRONG_COPYSET, f"named: {_names(named)}, on {_names(holders)}"))
    return found


def _is_complete(
    copyset: frozenset[NodeId],
    copies: Sequence[Copy],
    metadata: EpochMetadata,
    locations: Mapping[NodeId, Location],
) -> bool:
    having = {copy.node for copy in copies if frozenset(copy.record.copyset) == copyset} & copyset
    # With extras the copyset also names nodes that may have no copy.
    has_extras = len(copyset) > metadata.replication.copies
    is_enough = can_replicate(places(having, locations), metadata.replication)
    return is_enough and (has_extras or having == copyset)


def _names(nodes: Sequence[NodeId]) -> str:
    return " ".join(str(node) for node in sorted(nodes)) or "no node"


class Checker:
    """Checks one log."""

    def __init__(self, client: AsyncClient, log: LogRef) -> None:
        self._client, self._log = client, log
        self._metadata: EpochMetadata | None = None
        self._known_until = Epoch(0)
        self._expected = LSN_OLDEST  # the next LSN that should hold something
        self._empty: set[NodeId] = set()  # nodes whose data is on other nodes: they need not answer

    async def run(self) -> AsyncIterator[CheckReport]:
        """Checks the log from its first record to its end. Yields the growing report after each range."""
        report = CheckReport()
        states = (await self._client.node_states()).nodes
        self._empty = {state.node for state in states if state.status is _EMPTY}
        position = await self._client.first_lsn(self._log)
        end = (await self._client.tail(self._log)).released_end
        while position < end:
            position = await self._stretch(position, end, report)
            report.end = position
            yield report
        yield report

    async def _stretch(self, start: Lsn, end: Lsn, report: CheckReport) -> Lsn:
        """Checks from `start` up to where the shortest answer of a node ends, and returns that LSN."""
        views = {view.node: view for view in (await self._client.cluster()).nodes if view.is_storage}
        answers = dict(
            zip(views, await asyncio.gather(*(self._ask(node, start, end) for node in views)), strict=True)
        )
        told = {node: answer for node, answer in answers.items() if answer is not None}
        report.silent = tuple(sorted(set(report.silent) | (set(views) - set(told) - self._empty)))
        if not told:
            raise UnavailableError(f"no storage node answers; asked: {_names(list(views))}")
        next_lsn = min(answer.next for answer in told.values())
        trim_end = max(answer.trim_end for answer in told.values())
        copies: dict[Lsn, list[Copy]] = {}
        for node, answer in told.items():
            for record, checksum in zip(answer.records, answer.checksums, strict=True):
                if trim_end <= record.lsn < next_lsn:
                    copies.setdefault(record.lsn, []).append(Copy(node, record, checksum))
        locations = {node: view.location for node, view in views.items()}
        for lsn, found in sorted(copies.items()):
            self._note_missing(lsn, found, trim_end, report)
            metadata = await self._metadata_of(lsn.epoch)
            problems = judge(found, metadata, locations)
            report.findings += [Finding(lsn, problem, details) for problem, details in problems]
            report.records += 1
            report.copies += len(found)
        return max(next_lsn, Lsn(start + 1))

    def _note_missing(self, lsn: Lsn, copies: Sequence[Copy], trim_end: Lsn, report: CheckReport) -> None:
        """Reports released LSNs without any copy: from the first of an epoch to its bridge, none is empty."""
        expected = max(self._expected, trim_end)
        if lsn.epoch > expected.epoch:
            expected = epoch_start(lsn.epoch)
        if lsn > expected:
            report.findings.append(Finding(expected, Problem.NO_COPY, f"up to {lsn}"))
        is_bridge = any(copy.record.flags & _BRIDGE for copy in copies)
        self._expected = epoch_start(Epoch(lsn.epoch + 1)) if is_bridge else lsn.next

    async def _ask(self, node: NodeId, start: Lsn, end: Lsn) -> CopiesAre | None:
        try:
            return await self._client.copies(self._log, node, start, end)
        except UnavailableError:
            return None

    async def _metadata_of(self, epoch: Epoch) -> EpochMetadata:
        if self._metadata is None or epoch > self._known_until:
            found = await self._client.epoch_metadata(self._log, epoch)
            self._metadata, self._known_until = found.metadata, found.last_epoch
        return self._metadata
