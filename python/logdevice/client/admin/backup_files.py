"""The files of a backup of a log, in one directory.

    DIRECTORY/metadata.json    what was backed up: log, history, attributes, every file with its sha256
    DIRECTORY/part-00000.arrow records in order: lsn, timestamp_ms, entries, body, checksum

Bodies are copied as they are stored, without decoding. `metadata.json` is written last: a directory without
it is not a backup.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from crc32c import crc32c

from logdevice.client.framed_file import sync
from logdevice.errors import CorruptRecordError, InvalidArgumentError
from logdevice.protocol.messages.service import LogView
from logdevice.types import LSN_OLDEST, Gap, GapType, Lsn, Record

FORMAT: Final = 1
METADATA: Final = "metadata.json"
PART_BYTES: Final = 64 << 20
SCHEMA: Final = pa.schema(
    [
        pa.field("lsn", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        pa.field("entries", pa.int64(), nullable=False),
        pa.field("body", pa.large_binary(), nullable=False),
        pa.field("checksum", pa.uint32(), nullable=False),  # crc32c of the body
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The contents of a backup: returned by `backup`, and by `restore` once they are in the new log."""

    path: str  # of the log that was backed up
    start: Lsn  # of its first record
    end: Lsn  # everything below was backed up
    records: int  # how many it holds
    entries: int  # how many they hold
    bytes: int  # of bodies
    lost: tuple[Gap, ...]  # the ranges that the log had lost before it was backed up


class BackupWriter:
    """Writes the files of a backup."""

    def __init__(self, target: Path, part_bytes: int) -> None:
        self.end = LSN_OLDEST
        self._target, self._part_bytes = target, part_bytes
        self._waiting: list[Record] = []
        self._waiting_bytes = 0
        self._parts: list[dict[str, Any]] = []
        self._lost: list[Gap] = []
        self._entries = self._bytes = 0

    def add(self, taken: Sequence[Record] | Gap) -> None:
        """Adds the next records or gap of the log."""
        if isinstance(taken, Gap):
            self.end = taken.end
            self._lost += [taken] if taken.type.is_loss else []
            return
        self.end = taken[-1].lsn.next
        for record in taken:
            self._waiting.append(record)
            self._waiting_bytes += len(record.body)
            if self._waiting_bytes >= self._part_bytes:
                self._write()

    def finish(self, view: LogView, cluster: str, lineage: str | None) -> Backup:
        """Writes what is left, and then the metadata: the backup is complete."""
        if self._waiting:
            self._write()
        metadata = {
            "format": FORMAT,
            "cluster": cluster,
            "path": view.path,
            "log": str(view.log),
            "lineage": lineage,
            "end": str(self.end),
            "records": sum(part["records"] for part in self._parts),
            "entries": self._entries,
            "bytes": self._bytes,
            "attributes": {name: value for name, value, where in view.attributes if where},
            "lost": [[str(gap.start), str(gap.end)] for gap in self._lost],
            "parts": self._parts,
        }
        unfinished = self._target / f"{METADATA}.unfinished"
        unfinished.write_text(json.dumps(metadata, indent=1))
        sync(unfinished)
        unfinished.rename(self._target / METADATA)
        sync(self._target)
        return summary_of(metadata)

    def _write(self) -> None:
        records, self._waiting, self._waiting_bytes = self._waiting, [], 0
        bodies = [bytes(record.body) for record in records]
        columns = [
            [int(record.lsn) for record in records],
            [record.timestamp_ms for record in records],
            [record.entries for record in records],
            bodies,
            [record.crc for record in records],
        ]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
            schema=SCHEMA,
        )
        file = self._target / f"part-{len(self._parts):05}.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_batch(batch)
        sync(file)
        size = sum(map(len, bodies))
        self._entries += sum(record.entries for record in records)
        self._bytes += size
        self._parts.append(
            {
                "file": file.name,
                "records": len(records),
                "bytes": size,
                "start": str(records[0].lsn),
                "sha256": _sha256(file),
            }
        )


def make_directory(target: Path) -> None:
    """Creates the directory of a backup. InvalidArgumentError if it exists and is not empty."""
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InvalidArgumentError(f"directory {target} is not empty: a backup needs an empty or new one")


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def verified(source: Path) -> dict[str, Any]:
    """The metadata of a backup whose files are all there and unchanged; CorruptRecordError if they are not.

    InvalidArgumentError if the directory has no complete backup, or one of another format.
    """
    try:
        metadata: dict[str, Any] = json.loads((source / METADATA).read_text())
    except FileNotFoundError:
        raise InvalidArgumentError(
            f"{source} is not a complete backup: it has no {METADATA}, which is written last"
        ) from None
    except ValueError as problem:
        raise CorruptRecordError(f"{source / METADATA} is damaged: {problem}") from None
    if metadata.get("format") != FORMAT:
        raise InvalidArgumentError(
            f"{source} is a backup of format {metadata.get('format')!r}; this version reads {FORMAT}"
        )
    for part in metadata["parts"]:
        file = source / part["file"]
        if not file.is_file() or _sha256(file) != part["sha256"]:
            raise CorruptRecordError(f"{file} is missing or does not match {METADATA}")
    return metadata


def records_of(file: Path) -> Iterator[Record]:
    """The records in a file of a backup. CorruptRecordError at the first that is damaged."""
    with pa.memory_map(str(file)) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    for row in table.to_pylist():
        if crc32c(row["body"]) != row["checksum"]:
            raise CorruptRecordError(f"{file}: record {Lsn(row['lsn'])} is damaged", lsn=Lsn(row["lsn"]))
        yield Record(Lsn(row["lsn"]), row["timestamp_ms"], (), row["body"], entries=row["entries"])


def summary_of(metadata: Mapping[str, Any]) -> Backup:
    """The contents of a backup, from its metadata."""
    parts = metadata["parts"]
    end = Lsn.parse(metadata["end"])
    return Backup(
        path=metadata["path"],
        start=Lsn.parse(parts[0]["start"]) if parts else end,
        end=end,
        records=metadata["records"],
        entries=metadata["entries"],
        bytes=metadata["bytes"],
        lost=tuple(
            Gap(GapType.DATALOSS, Lsn.parse(start), Lsn.parse(last)) for start, last in metadata["lost"]
        ),
    )
