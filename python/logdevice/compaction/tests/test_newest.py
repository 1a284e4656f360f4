"""Which records are superseded, compared with a simpler implementation."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from logdevice.client.read.arrow_batches import assemble
from logdevice.compaction.newest import Newest, older_entries, ranges
from logdevice.records.batch import Codec, encode, from_entries
from logdevice.settings import BatchSettings
from logdevice.types import Lsn, Record

Entry = tuple[bytes | None, bytes]
BATCH = BatchSettings()


def columns(records: dict[int, list[Entry]]) -> list[pa.RecordBatch]:
    """Records as a reader returns them; each record's append time equals its LSN."""
    made = []
    for number, entries in records.items():
        batch = from_entries([key for key, _ in entries], [payload for _, payload in entries])
        made.append(Record(Lsn(number), number, (), encode(batch, Codec.NONE, BATCH), entries=len(entries)))
    return [batch.columns for batch in assemble(made, BATCH).batches]


def newest(records: dict[int, list[Entry]], keys_max: int = 1000, *, at_once: int = 100) -> Newest:
    found = Newest(keys_max)
    numbers = list(records)
    for first in range(0, len(numbers), at_once):
        for part in columns({number: records[number] for number in numbers[first : first + at_once]}):
            found.add(part)
    return found


entries = st.tuples(st.sampled_from([None, b"a", b"b", b"c", b"d"]), st.sampled_from([b"", b"1", b"2"]))
logs = st.lists(st.lists(entries, min_size=1, max_size=3), max_size=12).map(
    lambda found: dict(enumerate(found, 1))
)


def state(records: dict[int, list[Entry]]) -> dict[bytes, bytes]:
    """The view of a reader after these records."""
    found: dict[bytes, bytes] = {}
    for _, content in sorted(records.items()):
        for key, payload in content:
            if key is not None and payload:
                found[key] = payload
            elif key is not None:
                found.pop(key, None)
    return found


@settings(max_examples=200)
@given(records=logs, at_once=st.integers(1, 5), keys_max=st.integers(1, 6))
def test_every_reader_ends_with_the_same_whichever_superseded_records_are_gone(
    records: dict[int, list[Entry]], at_once: int, keys_max: int
) -> None:
    """K30, K33: and entries without a key stay."""
    gone = newest(records, keys_max, at_once=at_once).superseded()
    left = {number: content for number, content in records.items() if number not in gone}
    assert state(left) == state(records)
    assert not any(key is None for number in gone for key, _ in records[number])
    for number, content in records.items():
        later = {key for other in records if other > number for key, _ in records[other]}
        is_replaced = all(key is not None and key in later for key, _ in content)
        if keys_max > 5:
            assert (number in gone) == is_replaced
        else:
            assert is_replaced or number not in gone


@settings(max_examples=200)
@given(records=logs, now=st.integers(0, 14), at_once=st.integers(1, 5))
def test_a_deletion_goes_only_when_nothing_older_of_its_key_is_left(
    records: dict[int, list[Entry]], now: int, at_once: int
) -> None:
    """K32: so its removal changes nothing for a reader that begins at the oldest record."""
    found = newest(records, at_once=at_once)
    gone = set(found.superseded())
    deletions = found.deletions(now)
    blocked: set[int] = set()
    for part in columns(records):
        blocked |= older_entries(part, deletions, gone)
    purged = set(deletions.values()) - blocked
    left = {number: content for number, content in records.items() if number not in gone | purged}
    assert state(left) == state(records)
    for number in purged:
        assert number < now
        keys = {key for key, at in deletions.items() if at == number}
        assert not any(key in keys for other in left if other < number for key, _ in left[other])
    oldest = found.next_deletion_ms()
    assert (oldest is None) == (not found.deletions(1000) and oldest is None)
    assert all(oldest is not None and oldest <= number for number in purged)


def test_a_record_with_columns_of_its_own_stays() -> None:
    """K33: only the application knows what its key is."""
    found = Newest(10)
    lsns = pa.array([1, 1], pa.int64())
    typed = pa.RecordBatch.from_arrays([lsns, pa.array([5, 6])], names=["lsn", "price"])
    found.add(typed)
    assert (found.records.tolist(), found.superseded()) == ([1], [])
    assert older_entries(typed, {b"a": 5}, set()) == set()


def test_ranges_join_neighbours() -> None:
    assert ranges([1, 2, 4, 7, 8]) == [(1, 3), (4, 5), (7, 9)]
    assert ranges([]) == []
