"""Appending one batch: encode it, send it to the log's sequencer, and say what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from logdevice import batch as batches
from logdevice.client.arrow_batches import POSITION
from logdevice.client.routing import Routing
from logdevice.errors import (
    InvalidArgumentError,
    LogDeviceError,
    NoSpaceError,
    OutcomeUnknownError,
    PayloadTooLargeError,
)
from logdevice.protocol.write_messages import Append, AppendStatus
from logdevice.settings import BatchSettings
from logdevice.types import Epoch, LogId, Lsn

# Encoding less than this takes no longer than handing it to a thread.
_INLINE_BYTES: Final = 64 * 1024


class Appending:
    def __init__(self, routing: Routing, settings: BatchSettings) -> None:
        self._routing, self._settings = routing, settings
        self._codec = batches.Codec.of(settings.batch_codec)
        self._seen_epochs: dict[LogId, Epoch] = {}

    async def append(self, log: LogId, batch: pa.RecordBatch) -> Lsn:
        body = await self.encode(batch)
        return await self.append_body(log, body, batch.num_rows)

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
        seen_epoch = self._seen_epochs.get(log, Epoch(0))
        answer = await self._routing.append(
            Append(log=log, body=body, entries=entries, seen_epoch=seen_epoch)
        )
        if answer.status is not AppendStatus.OK:
            raise _refusal(answer.status, log, answer.lsn)
        self._seen_epochs[log] = max(seen_epoch, answer.lsn.epoch)
        return answer.lsn


_REFUSALS: Final[Mapping[AppendStatus, tuple[type[LogDeviceError], str]]] = {
    AppendStatus.NO_SPACE: (NoSpaceError, "the disks of too many nodes are full"),
    AppendStatus.TOO_BIG: (PayloadTooLargeError, "the batch is larger than the cluster accepts"),
    AppendStatus.UNKNOWN: (OutcomeUnknownError, "nobody could find out whether it was stored"),
}


def _refusal(status: AppendStatus, log: LogId, lsn: Lsn) -> LogDeviceError:
    kind, message = _REFUSALS[status]  # others are followed by the routing
    return kind(message, log=log, lsn=lsn if lsn else None)
