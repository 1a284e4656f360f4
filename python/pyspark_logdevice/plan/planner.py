"""Decides, on the driver, what the next batch of a query reads. Asks the cluster where its logs are.

One planner serves one query, or one batch read, from one thread. Everything that a later batch depends on is
in the offsets, not in the planner, so a query that is started again continues where it was. The client
retries failed requests until `retryTimeout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, TypeVar

from logdevice.client.blocking import Client
from logdevice.client.client import LogTail
from logdevice.cuts import CutEnd, CutKind
from logdevice.errors import CheckpointAheadError, CheckpointClusterError, CheckpointTrimmedError
from logdevice.types import CountedRecord, LogId, LogPoint, Lsn
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.options.values import Edge
from pyspark_logdevice.plan.admission import NO_LIMIT, NOTHING, Amount, Span, Taken, admit
from pyspark_logdevice.plan.consistent_batches import align
from pyspark_logdevice.plan.division import divide
from pyspark_logdevice.plan.lag import Lag, lag_of
from pyspark_logdevice.plan.offsets import LogPosition, Offsets
from pyspark_logdevice.plan.pushdown import Comparison, lsns
from pyspark_logdevice.plan.range_ends import Endpoints
from pyspark_logdevice.plan.rollbacks import checked, made_again
from pyspark_logdevice.plan.selection import Selection
from pyspark_logdevice.plan.tasks import ReadSplit, splits

Result = TypeVar("Result")
_QUESTIONS_AT_A_TIME: Final = 16
_ALL: Final = Amount(NO_LIMIT, NO_LIMIT)


class Planner:
    """The planner of one query, or of one batch read."""

    def __init__(self, options: ReadOptions, client: Client) -> None:
        self._options, self._client = options, client
        self._selection = Selection(options, client)
        self._endpoints = Endpoints(options, client)
        self._threads: ThreadPoolExecutor | None = None
        self._is_checked = False
        self._target: dict[LogId, LogTail] | None = None
        self._left: dict[LogId, CountedRecord] = {}  # the first record after the last planned end
        self.lag: dict[LogId, Lag] = {}  # after the last planned end

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def plan_batch(self, filters: Sequence[Comparison] = ()) -> tuple[list[ReadSplit], Amount]:
        """The tasks of a batch read of everything that passes the filters, and how much they read."""
        start, tails = self._begin(Edge.EARLIEST)
        paths = {log: position.path for log, position in start.logs.items()}
        if self._is_cut:
            tails = self._ends(paths)

        def wanted(log: LogId) -> Span:
            at = start.logs[log].at
            end = self._endpoints.end(log, paths[log], tails[log], at.lsn)
            first, upto = lsns(filters, log, paths[log], self._client.find_time)
            if max(first, at.lsn) >= min(upto, end.lsn):
                return Span(at, at)
            return Span(
                at if first <= at.lsn else self._endpoints.counted(log, first, tails[log]),
                end if upto >= end.lsn else self._endpoints.counted(log, upto, tails[log]),
            )

        spans = {log: span for log, span in self._each(paths, wanted).items() if span}
        begun = {log: start.logs[log].moved(paths[log], span.start) for log, span in spans.items()}
        start = Offsets(start.cluster, begun)
        end = self._end(start, paths, {log: Taken(span) for log, span in spans.items()})
        return splits(start, end, self._options), sum((span.amount for span in spans.values()), NOTHING)

    def begin(self, default: Edge) -> Offsets:
        """Where a query without a checkpoint begins. The offsets keep it from then on."""
        return self._begin(default)[0]

    def _begin(self, default: Edge) -> tuple[Offsets, dict[LogId, LogTail]]:
        """Where a query without a checkpoint begins, and where the logs end at that moment."""
        paths = self._selection.logs({})
        tails = self._tails(paths)
        self._endpoints.check_names(paths)
        begun = self._begun(paths, lambda log: self._endpoints.start(log, paths[log], tails[log], default))
        self._is_checked = True
        return Offsets(self._client.cluster().cluster, begun), tails

    def hold_target(self) -> None:
        """Sets the present ends of the logs as the target: nothing that is appended later is read."""
        self._target = self._ends(self._selection.chosen())

    @property
    def has_target(self) -> bool:
        """Whether `hold_target` was called."""
        return self._target is not None

    def next_end(self, start: Offsets, *, limited: bool) -> Offsets | None:
        """The end of the next batch; None if there is nothing new.

        Only `start` decides where the batch begins. It may be from a checkpoint, or an older one than the
        last planned end.
        """
        self.resume(start, start)
        paths, tails = self._readable(start, limited=limited)
        start = self._still_true(start, paths, tails)
        ends = {log: _end_of(tails[log], wait=self.has_target or not limited) for log in paths}
        taken = self._admitted(start, _waiting(start, ends), limited=limited)
        self.lag = {log: lag_of(start.logs[log], tails[log], taken.get(log)) for log in paths}
        is_something = bool(taken) or any(position.undone for position in start.logs.values())
        return self._end(start, paths, taken) if is_something else None

    def _readable(self, start: Offsets, *, limited: bool) -> tuple[dict[LogId, str], Mapping[LogId, LogTail]]:
        """First step: finds the logs to read, and where they end."""
        paths = self._selection.logs(start.logs)
        if self._target is None:
            # A replaced sequencer that answers does not know the newest records. A later batch has them.
            tails = self._tails(paths, confirm=not limited)
            if self._is_cut and any(log not in start.logs or _has_more(start, log, tails) for log in paths):
                tails = self._ends(paths)
            return paths, tails
        # Logs that the query has read under another name were not chosen when the target was set.
        missing = [log for log in start.logs if log in paths and log not in self._target]
        self._target |= self._ends(missing) if missing else {}
        return {log: path for log, path in paths.items() if log in self._target}, self._target

    def _still_true(
        self, start: Offsets, paths: Mapping[LogId, str], tails: Mapping[LogId, LogTail]
    ) -> Offsets:
        """Second step: checks the start against the histories of the logs, and adds logs that have joined."""
        settled = {log: replace(position, undone=None) for log, position in start.logs.items()}
        looked_at = self._each(
            [log for log in paths if log in settled],
            lambda log: checked(self._client, self._options, log, settled[log], self._counted),
        )
        start = Offsets(start.cluster, {**settled, **looked_at})
        if any(position.undone for position in start.logs.values()):
            self._left = {}  # of a history that is over
        return self._with_new_logs(start, paths, tails)

    def _admitted(
        self, start: Offsets, waiting: Mapping[LogId, Span], *, limited: bool
    ) -> Mapping[LogId, Taken]:
        """Third step: decides how much the batch takes of what waits."""
        if not waiting:
            self._left = {}
            return {}
        turn = sum(position.at.entry_end for position in start.logs.values())
        taken = admit(waiting, self._limit if limited else _ALL, self._find, self._each, turn)
        self._left = {log: part.left for log, part in taken.items() if part.left is not None}
        if self._is_cut:
            return align(waiting, taken, self._find, self._client.find_time, self._each)
        return taken

    def _end(self, start: Offsets, paths: Mapping[LogId, str], taken: Mapping[LogId, Taken]) -> Offsets:
        """Last step: makes the end offsets, with everything that decides how the batch is read."""
        spans = {log: part.span for log, part in taken.items() if part.span}
        moved = {log: start.logs[log].moved(paths[log], span.end) for log, span in spans.items()}
        tasks = divide(spans, self._options, self._find)
        return Offsets(start.cluster, {**start.logs, **moved}, tasks)

    def resume(self, start: Offsets | None, end: Offsets) -> None:
        """Checks once, before anything is read, that a checkpoint fits the cluster and its logs.

        Raises CheckpointError of the kind that says what does not fit.
        """
        if self._is_checked:
            return
        cluster = self._client.cluster().cluster
        if end.cluster != cluster:
            raise CheckpointClusterError(
                f"the checkpoint belongs to cluster {end.cluster!r}, but {self._options.endpoint} belongs to "
                f"cluster {cluster!r}"
            )
        paths = self._selection.logs(end.logs)
        before = {} if start is None else start.logs
        known = [log for log in paths if log in end.logs]
        self._each(known, lambda log: self._check(log, before.get(log), end.logs[log]))
        self._is_checked = True

    def is_there(self, log: LogId) -> bool:
        """Whether the log exists, as far as the planner knows."""
        return self._selection.is_there(log)

    @property
    def _limit(self) -> Amount:
        return Amount(self._options.max_records_per_trigger or NO_LIMIT, self._options.max_bytes_per_trigger)

    def _check(self, log: LogId, before: LogPosition | None, end: LogPosition) -> None:
        start, tail = end.since if before is None else before.next, self._client.tail(log)
        if end.next > tail.next:
            raise CheckpointAheadError(
                f"the checkpoint says that {end.path} was read up to {end.next}, but the log ends at "
                f"{tail.next}",
                log=log,
                lsn=end.next,
            )
        first = self._client.first_lsn(log) if self._options.fail_on_data_loss else start
        if first > start:
            raise CheckpointTrimmedError(
                f"{end.path} was trimmed up to {first}, but the query must continue at {start}",
                log=log,
                lsn=start,
            )

    def _with_new_logs(
        self, start: Offsets, paths: Mapping[LogId, str], tails: Mapping[LogId, LogTail]
    ) -> Offsets:
        """The start, with the beginning of every log that has joined since."""
        new = {log: path for log, path in paths.items() if log not in start.logs}
        joining = self._begun(new, lambda log: self._endpoints.beginning(log, tails[log]))
        for log, position in start.logs.items():
            again = next((other for other, path in new.items() if path == position.path), None)
            if again is not None and not self.is_there(log):
                joining[again] = made_again(self._options, log, position, joining[again])
        return Offsets(start.cluster, {**start.logs, **joining})

    def _begun(
        self, paths: Mapping[LogId, str], beginning: Callable[[LogId], LogPoint]
    ) -> dict[LogId, LogPosition]:
        """Where the query begins in each of the logs."""

        def position(log: LogId) -> LogPosition:
            lineage, at = self._client.lineage(int(log)).shown, beginning(log)
            seen = self._client.purged_end(log)
            return LogPosition(path=paths[log], since=at.lsn, at=at, lineage=lineage, purged_seen=seen)

        return self._each(paths, position)

    @property
    def _is_cut(self) -> bool:
        return self._options.cut == "consistent"

    def _ends(self, logs: Iterable[LogId]) -> dict[LogId, LogTail]:
        """Where the logs end. With the option cut, this is a consistent cut."""
        listed = list(logs)
        if not self._is_cut or not listed:
            return self._tails(listed)
        cut = self._client.barrier(listed, CutKind.CONSISTENT)
        return {end.log: _tail_at(end, cut.time_ms) for end in cut.ends}

    def _tails(self, logs: Iterable[LogId], *, confirm: bool = True) -> dict[LogId, LogTail]:
        listed = list(logs)
        return dict(zip(listed, self._client.tails(listed, confirm=confirm), strict=True))

    def _counted(self, log: LogId, lsn: Lsn) -> LogPoint:
        return self._endpoints.counted(log, lsn, self._client.tail(log))

    def _find(
        self, log: LogId, start: Lsn, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        known = self._left.get(log)
        if known is not None and known.lsn == start and entries is None and bytes is None:
            return known  # the counters at a record never change
        return self._client.find_record(log, start, entries=entries, bytes=bytes)

    def _each(self, logs: Iterable[LogId], ask: Callable[[LogId], Result]) -> dict[LogId, Result]:
        """Asks about the logs, several at a time; the answers are in the order of the logs."""
        listed = list(logs)
        if len(listed) < 2:
            return {log: ask(log) for log in listed}
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_QUESTIONS_AT_A_TIME, "logdevice-planner")
        return dict(zip(listed, self._threads.map(ask, listed), strict=True))


def _has_more(start: Offsets, log: LogId, tails: Mapping[LogId, LogTail]) -> bool:
    return start.logs[log].next < tails[log].next


def _waiting(start: Offsets, ends: Mapping[LogId, LogPoint]) -> dict[LogId, Span]:
    """What waits in each log; logs in which nothing waits are left out."""
    spans = {log: Span(start.logs[log].at, end) for log, end in ends.items()}
    return {log: span for log, span in spans.items() if span}


def _tail_at(end: CutEnd, time_ms: int) -> LogTail:
    return LogTail(end.end, end.entry_end, end.byte_end, time_ms, released_end=end.end)


def _end_of(tail: LogTail, *, wait: bool) -> LogPoint:
    """Where a batch may end. With `wait`, for a query that must read everything, it ends at the tail, and its
    tasks wait until that is released. A new sequencer does not know at first what is released.
    """
    return tail.at(tail.next if wait else tail.released_end)
