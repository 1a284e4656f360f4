"""Lines become batches as they arrive, and the bytes of a line are not changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import pytest

from logdevice.cli.commands import append
from logdevice.cli.commands.append import AppendProgress, batches
from logdevice.types import Lsn


def fed(*pieces: bytes) -> list[list[bytes]]:
    """The batches that come out when these pieces are written into a pipe one after the other."""
    reading, writing = os.pipe()

    def feed(pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)

    feeder = threading.Thread(target=feed, args=(pieces,))
    feeder.start()
    try:
        return list(batches(reading))
    finally:
        feeder.join()
        os.close(reading)


def lines(*pieces: bytes) -> list[bytes]:
    return [line for batch in fed(*pieces) for line in batch]


def test_lines_that_arrive_together_share_a_batch() -> None:
    assert fed(b"one\ntwo\nthree\n") == [[b"one", b"two", b"three"]]


def test_a_line_may_arrive_in_pieces() -> None:
    assert lines(b"one\ntw", b"o\nth", b"ree", b"\n") == [b"one", b"two", b"three"]


def test_a_last_line_needs_no_newline() -> None:
    assert lines(b"one\ntwo") == [b"one", b"two"]


def test_empty_lines_and_any_bytes_stay_as_they_are() -> None:
    assert lines(b"\n\r\n\xff\x00\n\n") == [b"", b"\r", b"\xff\x00", b""]


def test_an_empty_input_has_no_batches() -> None:
    assert fed() == []


def test_many_lines_are_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "LINES_MAX", 2)
    assert fed(b"1\n2\n3\n4\n5\n") == [[b"1", b"2"], [b"3", b"4"], [b"5"]]


def test_progress_says_what_was_acknowledged() -> None:
    progress = AppendProgress()
    assert str(progress) == "0 lines, 0 bytes in 0 batches"
    progress.note([b"one"], Lsn.of(1, 1))
    assert str(progress) == "1 line, 3 bytes in 1 batch, e1n1 to e1n1"
    progress.note([b"two", b"three"], Lsn.of(1, 2))
    assert str(progress) == "3 lines, 11 bytes in 2 batches, e1n1 to e1n2"
