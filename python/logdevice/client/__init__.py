"""The client: what programs use to write to logs and to read them.

`client.py` is the whole of it for programs with an event loop, `blocking.py` for all others. docs/client.md
shows how it is used.
"""

from logdevice.client.appending import TaggedAppend
from logdevice.client.arrow_batches import ENTRIES_READ, Entry, RecordsBatch
from logdevice.client.batching_writer import BatchingWriter, Position, Receipt
from logdevice.client.blocking import Client, connect
from logdevice.client.blocking_streams import (
    BlockingLogsReader,
    BlockingReader,
    BlockingReceipt,
    BlockingWriter,
)
from logdevice.client.chain_operations import Filled, Point
from logdevice.client.client import AsyncClient, LogTail
from logdevice.client.config import ClientConfig
from logdevice.client.lineages import Checked, Checkpoint
from logdevice.client.logs_reader import LogItem, LogsReader, Passed
from logdevice.client.reader import Reader
from logdevice.client.undo_ring import Change, UndoRing
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.write_messages import WriterIs as TagStatus
from logdevice.writer_tags import writer_number

__all__ = [
    "ENTRIES_READ",
    "AsyncClient",
    "BatchingWriter",
    "BlockingLogsReader",
    "BlockingReader",
    "BlockingReceipt",
    "BlockingWriter",
    "Change",
    "Checked",
    "Checkpoint",
    "Client",
    "ClientConfig",
    "Entry",
    "Filled",
    "LogItem",
    "LogTail",
    "LogsReader",
    "Passed",
    "Point",
    "PointStatus",
    "Position",
    "Reader",
    "Receipt",
    "RecordsBatch",
    "TagStatus",
    "TaggedAppend",
    "UndoRing",
    "connect",
    "writer_number",
]
