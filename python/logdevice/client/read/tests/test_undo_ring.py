"""The undo ring: a consumer can always go back to a position, or learns that it has to start over."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdevice.client import Change, UndoRing
from logdevice.errors import InvalidArgumentError, RebuildError
from logdevice.settings import ClientSettings
from logdevice.types import LSN_OLDEST, LogId, Lsn

LOG = LogId(7)
View = dict[bytes, bytes]
Write = tuple[bytes, bytes | None]


def open_ring(path: Path, bytes_max: int = 1 << 20) -> UndoRing:
    return UndoRing(path, LOG, LSN_OLDEST, ClientSettings(undo_bytes_max=bytes_max))


def changes(view: View, first: int, records: list[list[Write]]) -> list[Change]:
    """The changes that records from `first` on make in a view to which they were not applied yet."""
    found, state = [], dict(view)
    for number, writes in enumerate(records, first):
        for key, value in writes:
            found.append(Change(Lsn(number), key, state.get(key)))
            put(state, key, value)
    return found


def put(view: View, key: bytes, value: bytes | None) -> None:
    if value is None:
        view.pop(key, None)
    else:
        view[key] = value


def undo(ring: UndoRing, to: int, view: View) -> int:
    return ring.undo(Lsn(to), lambda key, before: put(view, key, before))


def test_changes_are_taken_back_newest_first(tmp_path: Path) -> None:
    ring = open_ring(tmp_path / "ring")
    view = {b"a": b"0"}
    records: list[list[Write]] = [[(b"a", b"1"), (b"a", b"2")], [(b"b", b"3")], [(b"a", None)]]
    ring.keep(changes(view, 1, records))
    after = {b"b": b"3"}
    assert undo(ring, 3, after) == 1
    assert after == {b"a": b"2", b"b": b"3"}
    assert undo(ring, 3, after) == 0
    assert undo(ring, 1, after) == 3
    assert after == view
    ring.close()


def test_what_a_crash_left_half_applied_is_taken_back(tmp_path: Path) -> None:
    view = {b"a": b"0", b"b": b"0"}
    ring = open_ring(tmp_path / "ring")
    ring.keep(changes(view, 1, [[(b"a", b"1")], [(b"b", b"1"), (b"c", b"1")]]))
    half = {**view, b"a": b"1", b"b": b"1"}
    ring.close()
    again = open_ring(tmp_path / "ring")
    undo(again, 1, half)
    assert half == view
    again.close()


def test_an_undo_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    ring = open_ring(tmp_path / "ring")
    ring.keep(changes({}, 1, [[(b"a", b"1")], [(b"a", b"2")], [(b"a", b"3")]]))
    view = {b"a": b"3"}

    def crash(key: bytes, before: bytes | None) -> None:
        put(view, key, before)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ring.undo(Lsn(2), crash)
    ring.close()
    again = open_ring(tmp_path / "ring")
    assert undo(again, 2, view) == 2
    assert view == {b"a": b"1"}
    again.close()


def test_below_its_reach_the_consumer_has_to_start_over(tmp_path: Path) -> None:
    ring = open_ring(tmp_path / "ring", bytes_max=40)
    for number in range(1, 20):
        ring.keep([Change(Lsn(number), b"k", b"%d" % (number - 1))])
    assert LSN_OLDEST < ring.reach < ring.end == Lsn(20)
    with pytest.raises(RebuildError, match="reaches back to e0n"):
        undo(ring, ring.reach - 1, {})
    view = {b"k": b"19"}
    undo(ring, ring.reach, view)
    assert view == {b"k": b"%d" % (ring.reach - 1)}
    ring.start_over(Lsn(5))
    assert (ring.reach, ring.end) == (5, 5)
    ring.close()
    assert open_ring(tmp_path / "ring").reach == 5


def test_the_file_stays_within_twice_its_bytes(tmp_path: Path) -> None:
    ring = open_ring(tmp_path / "ring", bytes_max=10_000)
    for number in range(1, 100):
        ring.keep([Change(Lsn(number), b"k", bytes(1000))])
        assert (tmp_path / "ring").stat().st_size < 22_000
    assert ring.end - ring.reach == 9
    ring.close()


def test_small_changes_do_not_rewrite_the_file_every_time(tmp_path: Path) -> None:
    """The bytes of a frame besides its changes count, too."""
    ring = open_ring(tmp_path / "ring", bytes_max=4_000)
    files = []
    for number in range(1, 1_001):
        ring.keep([Change(Lsn(number), b"k", b"")])
        files.append((tmp_path / "ring").stat().st_ino)
    assert sum(one != other for one, other in pairwise(files)) < 20
    ring.close()


def test_changes_out_of_order_are_refused(tmp_path: Path) -> None:
    ring = open_ring(tmp_path / "ring")
    ring.keep([Change(Lsn(5), b"k", None)])
    for number in (4, 5):
        with pytest.raises(InvalidArgumentError, match="next is e0n6"):
            ring.keep([Change(Lsn(number), b"k", None)])
    ring.keep([Change(Lsn(6), b"k", b"")])
    ring.close()


def test_a_ring_belongs_to_one_log(tmp_path: Path) -> None:
    open_ring(tmp_path / "ring").close()
    with pytest.raises(InvalidArgumentError, match="belongs to undo ring, log 7, not to undo ring, log 8"):
        UndoRing(tmp_path / "ring", LogId(8), LSN_OLDEST)


writes = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([None, b"", b"1", b"22"])), max_size=3
)


@settings(max_examples=40)
@given(records=st.lists(writes, max_size=8), cut=st.integers(0, 600), to=st.integers(1, 9), data=st.data())
def test_a_ring_cut_anywhere_brings_back_every_position_it_reaches(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[list[Write]],
    cut: int,
    to: int,
    data: st.DataObject,
) -> None:
    """The file is cut in the middle of the last `keep`, whose changes were not applied yet."""
    path = tmp_path_factory.mktemp("undo") / "ring"
    states: list[View] = [{}]
    for record in records:
        states.append(dict(states[-1]))
        for key, value in record:
            put(states[-1], key, value)
    applied = data.draw(st.integers(0, len(records)))
    ring = open_ring(path, bytes_max=100)
    for number, record in enumerate(records[:applied], 1):
        ring.keep(changes(states[number - 1], number, [record]))
    safe = path.stat().st_size
    reach = ring.reach
    ring.keep(changes(states[applied], applied + 1, records[applied:]))
    ring.close()
    # A rewritten file is always whole; only frames added at its end can be incomplete.
    if reach == LSN_OLDEST and path.stat().st_size >= safe:
        with path.open("r+b") as file:
            file.truncate(min(path.stat().st_size, safe + cut))
    again = open_ring(path, bytes_max=100)
    view = dict(states[applied])
    position = min(to, applied + 1)
    if position >= again.reach:
        undo(again, position, view)
        assert view == states[position - 1]
    else:
        with pytest.raises(RebuildError):
            undo(again, position, view)
        assert view == states[applied]
    again.close()
