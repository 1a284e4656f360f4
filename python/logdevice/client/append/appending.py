"""The calls of a client that append one batch: encode it, send it to the log's sequencer, return its LSN.

With a tag, a batch is in the log once, however often it is sent. Without a tag, a lost answer leaves the
outcome unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from crc32c import crc32c

from logdevice.client.append.chain_appending import ChainAppending
from logdevice.client.context import ClientContext, Where
from logdevice.client.directory import LogRef
from logdevice.client.read.arrow_batches import POSITION
from logdevice.errors import (
    ClockAheadError,
    InvalidArgumentError,
    LogDeviceError,
    NoSpaceError,
    OutcomeUnknownError,
    PayloadTooLargeError,
    UnknownWriterError,
    WriterFencedError,
    WriterOutOfOrderError,
)
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, GetWriter, WriterIs
from logdevice.records import batch as batches
from logdevice.records.writer_tags import check_tag
from logdevice.types import Epoch, LogId, Lsn, WriterTag

# Encoding fewer bytes takes no longer than handing them to a thread.
_INLINE_BYTES: Final = 64 * 1024

Attributes = Mapping[str, str]  # of one entry


@dataclass(frozen=True, slots=True)
class TaggedAppend:
    """The outcome of `append_tagged`: where the append is in the log."""

    lsn: Lsn  # of the first append with the tag; 0: the log no longer knows it
    is_duplicate: bool  # the append was in the log already


class Appending:
    """Appends batches; `chains` appends those of chain logs."""

    def __init__(self, context: ClientContext, chains: ChainAppending) -> None:
        self._context, self._chains = context, chains
        self._settings = context.config.batch
        self._codec = batches.Codec.of(self._settings.batch_codec)
        self._seen_epochs: dict[LogId, Epoch] = {}

    async def append(
        self, log: LogRef, payload: bytes, key: bytes | None = None, attributes: Attributes | None = None
    ) -> Lsn:
        """Appends one entry, as a record of its own, and returns its LSN.

        `attributes` are pairs of strings that readers get with the entry. The client retries for
        `append_timeout_ms` while it knows that nothing was stored. OutcomeUnknownError if the record may or
        may not be in the log; after any other error it is not there: UnknownLogError, PayloadTooLargeError,
        NoSequencerError, OverloadedError, NoSpaceError, UnavailableError or ClockAheadError.
        """
        return await self.append_many(
            log, [payload], None if key is None else [key], None if attributes is None else [attributes]
        )

    async def append_many(
        self,
        log: LogRef,
        payloads: Sequence[bytes],
        keys: Sequence[bytes | None] | None = None,
        attributes: Sequence[Attributes | None] | None = None,
    ) -> Lsn:
        """Appends entries as one record, and returns its LSN: all of them get into the log, or none.

        `keys` and `attributes`, if given, have a value or None for each payload. Errors are those of
        `append`; InvalidArgumentError if there are no payloads, or if the lists differ in length.
        """
        return await self.append_batch(log, batches.from_entries(keys, payloads, attributes))

    async def append_batch(self, log: LogRef, batch: pa.RecordBatch) -> Lsn:
        """Appends an Arrow batch with any columns as one record, and returns its LSN.

        Readers get the same columns back, after those that give the position. Errors are those of `append`;
        InvalidArgumentError if the batch has no rows, or a column named like one that readers add.
        """
        number = await self._context.number(log)
        return await self.append_body(number, await self.encode(batch), batch.num_rows)

    async def encode(self, batch: pa.RecordBatch) -> bytes:
        """The body of the record for a batch; a large one is encoded in a thread."""
        taken = [name for name in POSITION.names if name in batch.schema.names]
        if taken:
            raise InvalidArgumentError(f"columns must not be named {', '.join(taken)}: readers add these")
        if batch.num_rows == 0:
            raise InvalidArgumentError("a batch without entries cannot be appended")
        if batch.nbytes < _INLINE_BYTES:
            return batches.encode(batch, self._codec, self._settings)
        return await asyncio.to_thread(batches.encode, batch, self._codec, self._settings)

    async def append_body(self, log: LogId, body: bytes, entries: int) -> Lsn:
        """Appends a record with an encoded body, and returns its LSN."""
        context, append = self._context, self._record(log, body, entries)
        is_chain = context.directory.is_chain(log)
        answer = await (self._chains if is_chain else context.routing).append(append)
        if answer.status is AppendStatus.UNCHAINED:
            # The log was changed from a chain log to a copyset log since it was looked up.
            answer = await context.routing.append(append)
        if answer.status is not AppendStatus.OK:
            raise refusal(log, answer)
        self.saw(log, answer.lsn, answer.timestamp_ms)
        return answer.lsn

    async def append_tagged(
        self, log: LogRef, batch: pa.RecordBatch, tag: WriterTag, *, since: Where = Lsn(0)
    ) -> TaggedAppend:
        """Appends an Arrow batch as a record that is in the log once, however often it is sent with this tag.

        Returns where it is in the log, and whether it was there already. `since` is a position that the log
        had reached when the tag was made: it shows to a log that has forgotten the writer that the tag is
        new. docs/named_writers.md explains tags.

        WriterFencedError if the log has an append of a newer incarnation; WriterOutOfOrderError if an append
        with a lower number must come first; UnknownWriterError if the log cannot tell whether the tag is new;
        OutcomeUnknownError if there was no answer in time: append again with the same tag. Other errors are
        those of `append`.
        """
        number = await self._context.number(log)
        position = await self._context.position(number, since)
        check_tag(tag)
        append = self._record(number, await self.encode(batch), batch.num_rows, tag, position)
        answer = await self._context.routing.append_tagged(append)
        if answer.status not in (AppendStatus.OK, AppendStatus.DUPLICATE):
            raise refusal(number, answer)
        self.saw(number, answer.lsn, answer.timestamp_ms)
        return TaggedAppend(answer.lsn, answer.status is AppendStatus.DUPLICATE)

    async def append_status(self, log: LogRef, tag: WriterTag) -> WriterIs:
        """Asks whether the log has an append with this tag, and what it knows of the tag's writer.

        `is_stored` and `lsn` of the answer say whether and where the append is in the log, without a new
        append.
        """
        question = GetWriter(await self._context.number(log), tag.writer, tag.first_seq)
        return await self._context.routing.ask(question)

    def _record(
        self, log: LogId, body: bytes, entries: int, tag: WriterTag | None = None, since: Lsn = Lsn(0)
    ) -> Append:
        """The append of a body, with the log's epoch and the time that this client has seen."""
        return Append(
            log=log,
            body=body,
            crc=crc32c(body),
            entries=entries,
            tag=tag,
            since=since,
            seen_epoch=self.seen_epoch(log),
            clock_ms=self._context.clock.time_ms,
        )

    def seen_epoch(self, log: LogId) -> Epoch:
        """The highest epoch of the log in which this client has an append; 0 if it has none."""
        return self._seen_epochs.get(log, Epoch(0))

    def saw(self, log: LogId, lsn: Lsn, time_ms: int = 0) -> None:
        """Notes that an append of this client is in the log."""
        self._context.clock.saw(time_ms)
        self._seen_epochs[log] = max(self.seen_epoch(log), lsn.epoch)


_REFUSALS: Final[Mapping[AppendStatus, tuple[type[LogDeviceError], str]]] = {
    AppendStatus.NO_SPACE: (NoSpaceError, "the disks of too many nodes are full"),
    AppendStatus.CLOCK_AHEAD: (
        ClockAheadError,
        "this client has seen a time that is too far ahead of the clock of the log's sequencer",
    ),
    AppendStatus.TOO_BIG: (PayloadTooLargeError, "the body is larger than the nodes' body_bytes_max allows"),
    AppendStatus.UNKNOWN: (OutcomeUnknownError, "no node knows whether the append was stored"),
    AppendStatus.FENCED: (WriterFencedError, "incarnation {incarnation} of the writer has appended"),
    AppendStatus.OUT_OF_ORDER: (WriterOutOfOrderError, "append {expected} of the writer must come first"),
    AppendStatus.UNKNOWN_WRITER: (
        UnknownWriterError,
        "from a writer that it does not know, the log accepts only tags made at {horizon} or later",
    ),
}


def refusal(log: LogId, answer: Appended) -> LogDeviceError:
    """The error for an answer that is final and not a success. The routing handles all other answers."""
    kind, message = _REFUSALS[answer.status]
    words = message.format(incarnation=answer.incarnation, expected=answer.expected, horizon=answer.horizon)
    return kind(words, log=log, lsn=answer.lsn if answer.lsn else None)
