"""The latest value of every key of a log, in a file that survives crashes and rollbacks of the log.

    python examples/latest_per_key.py HOST:PORT DIRECTORY /shop/customers

reads what is new since the last run from a log whose entries have keys, and prints

    /shop/customers: 3 keys

The view is an SQLite file with an undo ring next to it. The order is: save the values that will be replaced,
replace them, save the position. A deletion is an entry with an empty payload. See also docs/undo_ring.md and
docs/keyed_logs.md.
"""

import sqlite3
import sys
from pathlib import Path

import logdevice
from logdevice.client import BlockingReader, Change, Checkpoint, Client, RecordsBatch, UndoRing
from logdevice.types import LSN_OLDEST, LogId, Lsn

TABLES = """
create table if not exists latest (key blob primary key, value blob not null);
create table if not exists reached (one integer primary key, position integer, lineage text, purged integer);
"""


class View:
    def __init__(self, directory: Path, log: LogId) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.table = sqlite3.connect(directory / f"log-{int(log)}.db", isolation_level=None)
        self.table.executescript(TABLES)
        self.ring = UndoRing(directory / f"log-{int(log)}.undo", log, start=LSN_OLDEST)

    def reached(self) -> tuple[Lsn, str | None, Lsn] | None:
        """The saved position, its lineage, and `purged_seen` of a keyed log; None before the first read."""
        row = self.table.execute("select position, lineage, purged from reached").fetchone()
        return None if row is None else (Lsn(row[0]), row[1], Lsn(row[2]))

    def get(self, key: bytes) -> bytes | None:
        row = self.table.execute("select value from latest where key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.table.execute("delete from latest where key = ?", (key,))
        else:
            self.table.execute("insert or replace into latest values (?, ?)", (key, value))

    def apply(self, batch: RecordsBatch, reader: BlockingReader) -> None:
        values: dict[bytes, bytes | None] = {}
        changes: list[Change] = []
        for entry in batch.entries():
            if entry.key is not None:
                before = values[entry.key] if entry.key in values else self.get(entry.key)
                changes.append(Change(entry.lsn, entry.key, before))
                values[entry.key] = entry.payload or None
        self.ring.keep(changes)
        self.table.execute("begin")
        for key, value in values.items():
            self.put(key, value)
        lineage = reader.checkpoint(batch.end).lineage
        self.note(batch.end, lineage, reader.purged_seen)
        self.table.execute("commit")

    def note(self, position: Lsn, lineage: str | None, purged: Lsn) -> None:
        row = (1, position, lineage, purged)
        self.table.execute("insert or replace into reached values (?, ?, ?, ?)", row)

    def roll_back(self, position: Lsn, lineage: str | None, purged: Lsn) -> None:
        """Goes back to an earlier position, and undoes what a crash left in the ring only."""
        self.ring.undo(position, self.put)
        self.note(position, lineage, purged)

    def start_over(self) -> None:
        self.table.executescript("delete from latest; delete from reached;")
        self.ring.start_over(LSN_OLDEST)

    def close(self) -> None:
        self.ring.close()
        self.table.close()


def catch_up(client: Client, path: str, view: View) -> None:
    reached = view.reached()
    if reached is None:
        reader = client.read(path, lineage="newest")
    else:
        position, lineage, purged = reached
        checked = client.check(Checkpoint(path=path, log=view.log, next=position, lineage=lineage))
        view.roll_back(checked.safe, checked.lineage, purged)
        reader = client.read(path, checked.safe, lineage=checked.lineage, is_checked=True, purged_seen=purged)
    with reader:
        for item in reader:
            if isinstance(item, RecordsBatch):
                view.apply(item, reader)


def main(endpoint: str, directory: str, path: str) -> None:
    with logdevice.connect(endpoint) as client:
        (found,) = client.logs(path)
        assert found.log is not None, f"{path} is a directory"
        view = View(Path(directory), found.log)
        while True:
            try:
                catch_up(client, path, view)
                break
            except logdevice.RollbackError:
                pass  # the log branched during the read: check again how far to go back
            except logdevice.RebuildError:
                view.start_over()
        count = view.table.execute("select count(*) from latest").fetchone()[0]
        print(f"{path}: {count} keys")
        view.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
