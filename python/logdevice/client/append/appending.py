"""Appending one batch: encode it, send it to the log's sequencer, and say what became of it. A part of the
client.

With a tag it is in the log once, however often it is sent; without one, an answer that was lost leaves the
outcome open.
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

# Encoding less than this takes no longer than handing it to a thread.
_INLINE_BYTES: Final = 64 * 1024

Attributes = Mapping[str, str]  # of one entry


@dataclass(frozen=True, slots=True)
class TaggedAppend:
    """Where a tagged append is; for a duplicate, where the first one is, or 0 if that is no longer known."""

    lsn: Lsn
    is_duplicate: bool


class Appending:
    """`chains` writes those logs that are known to be written along chains."""

    def __init__(self, context: ClientContext, chains: ChainAppending) -> None:
        self._context, self._chains = context, chains
        self._settings = context.config.batch
        self._codec = batches.Codec.of(self._settings.batch_codec)
        self._seen_epochs: dict[LogId, Epoch] = {}

    async def append(
        self, log: LogRef, payload: bytes, key: bytes | None = None, attributes: Attributes | None = None
    ) -> Lsn:
        """Appends one entry, as a record of its own."""
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
        """Appends entries that share one record: all of them are in the log or none is."""
        return await self.append_batch(log, batches.from_entries(keys, payloads, attributes))

    async def append_batch(self, log: LogRef, batch: pa.RecordBatch) -> Lsn:
        """Appends columns, of whatever schema, as one record."""
        number = await self._context.number(log)
        return await self.append_body(number, await self.encode(batch), batch.num_rows)

    async def encode(self, batch: pa.RecordBatch) -> bytes:
        taken = [name for name in POSITION.names if name in batch.schema.names]
        if taken:
            raise InvalidArgumentError(f"readers add the columns {', '.join(taken)}; name yours otherwise")
        if batch.num_rows == 0:
            raise InvalidArgumentError("a batch without entries cannot be appended")
        if batch.nbytes < _INLINE_BYTES:
            return batches.encode(batch, self._codec, self._settings)
        return await asyncio.to_thread(batches.encode, batch, self._codec, self._settings)

    async def append_body(self, log: LogId, body: bytes, entries: int) -> Lsn:
        context, append = self._context, self._record(log, body, entries)
        is_chain = context.directory.is_chain(log)
        answer = await (self._chains if is_chain else context.routing).append(append)
        if answer.status is AppendStatus.UNCHAINED:
            # Its mode has changed since it was looked up: the sequencer stores the copies.
            answer = await context.routing.append(append)
        if answer.status is not AppendStatus.OK:
            raise refusal(log, answer)
        self.saw(log, answer.lsn, answer.timestamp_ms)
        return answer.lsn

    async def append_tagged(
        self, log: LogRef, batch: pa.RecordBatch, tag: WriterTag, *, since: Where = Lsn(0)
    ) -> TaggedAppend:
        """Appends columns as one record that is in the log once, however often it is sent with this tag.

        `since` is a position of the log that is not younger than the tag: see docs/client.md.
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
        """What became of a tagged append, without sending it; and what the log has of its writer."""
        question = GetWriter(await self._context.number(log), tag.writer, tag.first_seq)
        return await self._context.routing.ask(question)

    def _record(
        self, log: LogId, body: bytes, entries: int, tag: WriterTag | None = None, since: Lsn = Lsn(0)
    ) -> Append:
        """With what this client has seen of the log, and of time."""
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
        return self._seen_epochs.get(log, Epoch(0))

    def saw(self, log: LogId, lsn: Lsn, time_ms: int = 0) -> None:
        self._context.clock.saw(time_ms)
        self._seen_epochs[log] = max(self.seen_epoch(log), lsn.epoch)


_REFUSALS: Final[Mapping[AppendStatus, tuple[type[LogDeviceError], str]]] = {
    AppendStatus.NO_SPACE: (NoSpaceError, "the disks of too many nodes are full"),
    AppendStatus.CLOCK_AHEAD: (
        ClockAheadError,
        "this client has seen a time that is too far ahead of the clock of the log's sequencer",
    ),
    AppendStatus.TOO_BIG: (PayloadTooLargeError, "the batch is larger than the cluster accepts"),
    AppendStatus.UNKNOWN: (OutcomeUnknownError, "nobody could find out whether it was stored"),
    AppendStatus.FENCED: (WriterFencedError, "process {incarnation} of the writer has appended"),
    AppendStatus.OUT_OF_ORDER: (WriterOutOfOrderError, "append {expected} of the writer has to come first"),
    AppendStatus.UNKNOWN_WRITER: (
        UnknownWriterError,
        "only tags made at {horizon} or later are accepted of writers that the log does not know",
    ),
}


def refusal(log: LogId, answer: Appended) -> LogDeviceError:
    """What an answer means to whoever asked; others than these are followed by the routing."""
    kind, message = _REFUSALS[answer.status]
    words = message.format(incarnation=answer.incarnation, expected=answer.expected, horizon=answer.horizon)
    return kind(words, log=log, lsn=answer.lsn if answer.lsn else None)
