"""Finds where a query begins and where a batch read ends in each log, from the options.

This is done once, when a query starts without a checkpoint. The offsets keep the result from then on.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdevice.client.blocking import Client
from logdevice.client.client import LogTail
from logdevice.client.read.lineages import Checkpoint
from logdevice.cuts import Cut
from logdevice.errors import InvalidOptionError, TrimmedError
from logdevice.types import LogId, LogPoint, Lsn
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.options.values import AtCut, Edge, Places


class Endpoints:
    """Where the reads of one query begin and end."""

    def __init__(self, options: ReadOptions, client: Client) -> None:
        self._options, self._client = options, client
        self._cuts: dict[str, Cut] = {}

    def check_names(self, paths: Mapping[LogId, str]) -> None:
        """Checks that every log has a position and every position a log.

        Otherwise a query with a misspelt name would begin somewhere else.
        """
        known = {*paths.values(), *(str(int(log)) for log in paths)}
        named = (
            ("startingOffsets", self._options.starting_offsets),
            ("endingOffsets", self._options.ending_offsets),
        )
        for option, places in named:
            if places is None:
                continue
            for name, _ in places.by_log:
                if name not in known:
                    raise InvalidOptionError(f"option {option} names {name}, which the query does not read")
            for log, path in paths.items():
                if places.of(path, log) is None:
                    raise InvalidOptionError(
                        f'option {option} has no position for {path}; add one, or one for "*", all others'
                    )

    def start(self, log: LogId, path: str, tail: LogTail, default: Edge) -> LogPoint:
        """Where the query begins in a log."""
        if self._options.starting_timestamp_ms is not None:
            lsn = self._client.find_time(log, self._options.starting_timestamp_ms)
            return self.counted(log, min(max(lsn, self._client.first_lsn(log)), tail.next), tail)
        place = self._place("startingOffsets", self._options.starting_offsets, path, log, default)
        if place is Edge.EARLIEST:
            return self.beginning(log, tail)
        if isinstance(place, Edge):
            return self.counted(log, tail.next, tail)
        self._check_range("startingOffsets", path, place, tail)
        if self._options.fail_on_data_loss and place < (first := self._client.first_lsn(log)):
            raise TrimmedError(
                f"option startingOffsets begins {path} at {place}, but the log is trimmed up to {first}, and "
                "failOnDataLoss is true",
                log=log,
            )
        return self.counted(log, place, tail)

    def beginning(self, log: LogId, tail: LogTail) -> LogPoint:
        """The first record that is not trimmed."""
        return self.counted(log, min(self._client.first_lsn(log), tail.next), tail)

    def end(self, log: LogId, path: str, tail: LogTail, start: Lsn) -> LogPoint:
        """Where a batch read ends in a log, at or after the start."""
        if self._options.ending_timestamp_ms is not None:
            lsn = self._client.find_time(log, self._options.ending_timestamp_ms)
            return self.counted(log, max(start, min(lsn, tail.next)), tail)
        place = self._place("endingOffsets", self._options.ending_offsets, path, log, Edge.LATEST)
        if isinstance(place, Edge):
            return tail.at(max(start, tail.next))
        self._check_range("endingOffsets", path, place, tail)
        if place < start:
            raise InvalidOptionError(f"option endingOffsets ends {path} at {place}, before its start {start}")
        return self.counted(log, place, tail)

    def counted(self, log: LogId, lsn: Lsn, tail: LogTail) -> LogPoint:
        """An LSN with its counters: those of the first record from there on, or of the end of the log."""
        found = self._client.find_record(log, lsn)
        return (tail if found is None else found.start).at(lsn)

    def _check_range(self, option: str, path: str, place: Lsn, tail: LogTail) -> None:
        if place > tail.next:
            raise InvalidOptionError(
                f"option {option} has position {place} for {path}, which is past its end {tail.next}"
            )

    def _place(self, option: str, places: Places | None, path: str, log: LogId, default: Edge) -> Edge | Lsn:
        found = None if places is None else places.of(path, log)
        if not isinstance(found, AtCut):
            return default if found is None else found
        if found.name not in self._cuts:
            self._cuts[found.name] = self._client.cut(found.name)
        end = self._cuts[found.name].of(log)
        if end is None:
            raise InvalidOptionError(
                f"option {option} names cut {found.name!r}, which has no position for {path}"
            )
        if end.lineage is not None:
            # If the log has another history now, the position would mean something else.
            checked = self._client.check(Checkpoint(path=path, log=log, next=end.end, lineage=end.lineage))
            if checked.is_rollback:
                raise checked.error()
        return end.end
