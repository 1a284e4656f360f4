"""The calls of a client that open readers: of one log, of several, of one position."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, assert_never

from logdevice.client.admin.keyed_logs import KeyedLogs
from logdevice.client.context import ClientContext, Where, chosen
from logdevice.client.directory import LogRef
from logdevice.client.read import key_search
from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.client.read.lineages import Lineages
from logdevice.client.read.logs_reader import LogsReader
from logdevice.client.read.reader import Item, Reader
from logdevice.cuts import Cut
from logdevice.errors import InvalidArgumentError, UnavailableError
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.read_stream.events import ReadRequest
from logdevice.settings.declarations import changed
from logdevice.types import LSN_MAX, LSN_OLDEST, GapType, LogId, Lsn, ReadLevel, TimeRange


class Reading:
    def __init__(self, context: ClientContext, keyed: KeyedLogs) -> None:
        self._context, self._keyed = context, keyed
        self.lineages = Lineages(context, self.read)

    def read(
        self,
        /,
        log: LogRef,
        start: Where = "oldest",
        until: Where | None = None,
        *,
        follow: bool = False,
        headers_only: bool = False,
        time_range: tuple[int, int] | None = None,
        scd: bool = True,
        shuffle_seed: int | None = None,
        purged_seen: Lsn | None = None,
        lineage: str | None = None,
        is_checked: bool = False,
        level: ReadLevel | str = ReadLevel.RELEASED,
        **settings: Any,
    ) -> Reader:
        """Opens a reader of [start, until): it returns every LSN once and in order, in a batch or a gap.

        `start` and `until` are LSNs, their text form, 'oldest' or 'tail'. Without `until` the reader ends
        where the log ends when reading begins or, with `follow`, never. `time_range`, (start_ms, end_ms),
        selects records by append time. `headers_only` gives one row per record, without bodies. `scd=False`
        has every node send every copy. Readers with the same `shuffle_seed` read from the same nodes. With
        `level` 'durable' the reader also waits until lost copies are restored. In a keyed log pass the saved
        `purged_seen` with a saved `start`. `settings` are settings of ReadStreamSettings.

        With `lineage`, the id saved with `start` or 'newest', the reader checks that what was read is still
        in the log; with `is_checked` the caller has done so for `start`, by `check`. InvalidArgumentError or
        InvalidSettingError if an argument is not allowed; Reader lists the other errors.
        """
        context, wanted = self._context, chosen(ReadLevel, "level", level)
        if follow and until is not None:
            raise InvalidArgumentError("until must not be given with follow: the reader has no end")
        stream_settings = changed(context.config.stream, settings)

        async def open_request() -> ReadRequest:
            number = await context.number(log)
            first, end = await self._bounds(number, start, until, follow=follow)
            return ReadRequest(
                log=number,
                start=first,
                end=end,
                location=context.config.location,
                # Different readers should ask different nodes for the same records.
                shuffle_seed=random.getrandbits(31) if shuffle_seed is None else shuffle_seed,
                time_range=None if time_range is None else TimeRange(*time_range),
                headers_only=headers_only,
                force_all_send_all=not scd,
                level=wanted,
            )

        deletions_seen = partial(self._keyed.deletions_seen, log, start, purged_seen)
        make_guard = None
        if lineage is not None:
            make_guard = partial(self.lineages.guard, lineage=lineage, is_checked=is_checked)
        reader = Reader(context, open_request, stream_settings, deletions_seen, make_guard)
        context.in_use.add(reader)
        return reader

    async def _bounds(
        self, log: LogId, start: Where, until: Where | None, *, follow: bool
    ) -> tuple[Lsn, Lsn]:
        """Which LSNs a range means now."""
        end = LSN_MAX if follow else await self._context.position(log, "tail" if until is None else until)
        first = await self._context.position(log, start)
        if first > end and until is not None:
            raise InvalidArgumentError(f"the range starts at {first}, after its end {end}", log=log)
        return min(first, end), end

    def subscribe(self, /, log: LogRef, start: Where = "tail", **options: Any) -> Reader:
        """Opens a reader that follows the log from its end on, or from `start` on, and never ends.

        `options` and errors are those of `read`.
        """
        return self.read(log, start, follow=True, **options)

    async def read_logs(
        self,
        /,
        logs: Sequence[LogRef],
        starts: Mapping[LogId, Lsn] | None = None,
        *,
        until: Cut | None = None,
        follow: bool = False,
        **options: Any,
    ) -> LogsReader:
        """Opens a reader of several logs, which take turns: an idle log does not hold up the others.

        It starts in each log at its position in `starts`, or else at the oldest record. It ends in each log
        at its position in the cut `until`, or else where the log ends now or, with `follow`, never. `options`
        are those of `read`. UnknownLogError if there is no such log; InvalidArgumentError if no log is given,
        or if one of the logs is not in the cut.
        """
        views = await asyncio.gather(*map(self._context.directory.find, logs))
        paths = {view.log: view.path for view in views if view.log is not None}
        if not paths:
            raise InvalidArgumentError("logs must have at least one log, got none")
        ends = {} if until is None else {end.log: end.end for end in until.ends}
        if until is not None and (missing := [path for log, path in paths.items() if log not in ends]):
            raise InvalidArgumentError(f"the cut has no position in {', '.join(missing)}")
        config, begins = self._context.config, starts or {}
        usual, share = config.stream.window_bytes, config.client.logs_window_bytes // len(paths)
        options = {"window_bytes": max(1, min(usual, share)), **options}
        readers = {
            log: self.read(log, begins.get(log, "oldest"), ends.get(log), follow=follow, **options)
            for log in paths
        }
        first = {log: begins.get(log, LSN_OLDEST) for log in paths}
        reader = LogsReader(readers, paths, first)
        try:
            await asyncio.gather(*(each.open() for each in readers.values()))
        except BaseException:
            await reader.close()
            raise
        return reader

    async def item_at(self, log: LogId, lsn: Lsn, timeout_ms: int, *, headers_only: bool = False) -> Item:
        """Waits until a position is released, and returns the record or the gap there."""
        reader = self.read(log, lsn, lsn.next, headers_only=headers_only)
        try:
            item = await reader.next(timeout_ms)
        except TimeoutError:
            raise UnavailableError(
                f"the position was not released within {timeout_ms} ms", log=log, lsn=lsn
            ) from None
        finally:
            await reader.close()
        assert item is not None, "a range of one position is a record or a gap"
        return item

    async def outcome_at(self, log: LogId, lsn: Lsn) -> PointStatus:
        """Waits until a position is released, and returns what became of an append there."""
        timeout_ms = self._context.settings.append_timeout_ms
        item = await self.item_at(log, lsn, timeout_ms, headers_only=True)
        return PointStatus.WRITTEN if isinstance(item, RecordsBatch) else _outcome(item.type)

    async def first_with_key(self, log: LogId, start: Lsn, end: Lsn) -> RecordsBatch | None:
        """The first records of [start, end) that have a key, if there are any."""
        async with self.read(log, start, end, window_lsns=16) as reader:
            async for item in reader:
                if isinstance(item, RecordsBatch) and key_search.has_key(item):
                    return item
        return None


def _outcome(gap: GapType) -> PointStatus:
    """What became of an append at a position with a gap. HOLE: it failed, and may be sent again."""
    match gap:
        case GapType.COMPACTED:
            return PointStatus.WRITTEN  # a newer record has replaced it since
        case GapType.TRIM | GapType.DATALOSS:
            return PointStatus.LOST  # there may have been a record: the outcome stays unknown
        case (
            GapType.BRIDGE
            | GapType.HOLE
            | GapType.ACCESS
            | GapType.NOTINCONFIG
            | GapType.FILTERED_OUT
            | GapType.ROLLBACK
        ):
            return PointStatus.HOLE
        case _:
            assert_never(gap)
