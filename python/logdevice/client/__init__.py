"""The client: how programs write logs, read them and administer them.

`client.py` is for programs with an event loop, `blocking.py` for all others. docs/client.md shows how to use
them.
"""

from logdevice.client.admin.chain_points import Filled, Point
from logdevice.client.append.appending import TaggedAppend
from logdevice.client.append.batching_writer import BatchingWriter, Position, Receipt
from logdevice.client.blocking import Client, connect
from logdevice.client.blocking_streams import (
    BlockingLogsReader,
    BlockingReader,
    BlockingReceipt,
    BlockingWriter,
)
from logdevice.client.client import AsyncClient, LogTail
from logdevice.client.config import ClientConfig
from logdevice.client.read.arrow_batches import ENTRIES_READ, Entry, RecordsBatch
from logdevice.client.read.lineages import Checked, Checkpoint
from logdevice.client.read.logs_reader import LogItem, LogsReader, Passed
from logdevice.client.read.reader import Reader
from logdevice.client.read.undo_ring import Change, UndoRing
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.messages.write import WriterIs as TagStatus
from logdevice.records.writer_tags import writer_number

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
