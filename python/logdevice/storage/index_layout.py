"""Every byte of the index: keys that sort by log and position, and their values.

Pure functions, as in layout.py. A record's entry starts with its *route*, its copyset and flags: they alone
decide whether this node sends the record. Then come the places of its parts, and its header as
records/record_header.py encodes it. Everything in an index can be rebuilt from the segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from logdevice.types import LogId, Lsn, LsnRange, NodeId


class BodyLocation(NamedTuple):
    """Where the parts of a stored record are."""

    body_segment: int
    body_offset: int
    body_bytes: int
    header_segment: int  # the segment of the last change of its header: the body's, until it is amended


# The first byte of a key says what kind of key it is.
POSITION_KEY: Final = b"p"
RECORD_KEYS, BRIDGE_KEYS, SEGMENT_KEYS, STATE_KEYS, TRIM_KEYS = b"r", b"b", b"s", b"n", b"t"
_LONG_KEY: Final = Struct(">cQQ")
_SHORT_KEY: Final = Struct(">cQ")

_LOCATION: Final = Struct("<QQIQ")
USAGE: Final = Struct("<QQQQ")  # the fields of a Usage
POSITION: Final = Struct("<QQQQ")  # the fields of an IndexPosition
LSN: Final = Struct("<Q")
_ROUTE_HEAD: Final = Struct("<BH")


def record_key(log: LogId, lsn: int) -> bytes:
    return _LONG_KEY.pack(RECORD_KEYS, log, lsn)


def key_log(key: bytes) -> LogId:
    """The log of a key that has one."""
    return LogId(int.from_bytes(key[1:9], "big"))


def key_lsn(key: bytes) -> Lsn:
    return Lsn(int.from_bytes(key[9:], "big"))


def bridge_key(log: LogId, lsn: int) -> bytes:
    return _LONG_KEY.pack(BRIDGE_KEYS, log, lsn)


def segment_key(segment: int) -> bytes:
    return _SHORT_KEY.pack(SEGMENT_KEYS, segment)


def state_key(log: LogId, name: str) -> bytes:
    return _SHORT_KEY.pack(STATE_KEYS, log) + name.encode()


def trim_key(log: LogId) -> bytes:
    return _SHORT_KEY.pack(TRIM_KEYS, log)


# A log has few copysets and many records.
@lru_cache(maxsize=4096)
def encode_route(copyset: tuple[NodeId, ...], flags: int) -> bytes:
    return _ROUTE_HEAD.pack(len(copyset), flags) + _nodes(len(copyset)).pack(*copyset)


def encode_entry(route: bytes, location: BodyLocation, header: bytes) -> bytes:
    return route + _LOCATION.pack(*location) + header


def route_bytes(entry: bytes) -> int:
    return _ROUTE_HEAD.size + 2 * entry[0]


@lru_cache(maxsize=4096)
def decode_route(route: bytes) -> tuple[tuple[NodeId, ...], int]:
    """The copyset and flags of a route."""
    count, flags = _ROUTE_HEAD.unpack_from(route)
    return tuple(NodeId(node) for node in _nodes(count).unpack_from(route, _ROUTE_HEAD.size)), flags


def entry_location(entry: bytes) -> BodyLocation:
    return BodyLocation(*_LOCATION.unpack_from(entry, route_bytes(entry)))


def entry_header(entry: bytes) -> bytes:
    return entry[route_bytes(entry) + _LOCATION.size :]


def _nodes(count: int) -> Struct:
    return Struct(f"<{count}H")


class Usage(NamedTuple):
    """How much of a segment is still needed."""

    records: int = 0  # records whose body or latest header is in it
    live_bytes: int = 0  # bytes of the records whose body is in it
    put_bytes: int = 0  # bytes of all records that were ever written to it
    deletes: int = 0  # deletions in it; without them a rebuilt index would bring back older records


class IndexPosition(NamedTuple):
    """The place in the segments up to which all changes are in the index."""

    store: int
    segment: int
    offset: int
    group: int  # the number of the next group


def encode_ranges(ranges: Sequence[LsnRange]) -> bytes:
    return b"".join(LSN.pack(range_.start) + LSN.pack(range_.end) for range_ in ranges)


def decode_ranges(value: bytes) -> tuple[LsnRange, ...]:
    lsns = [Lsn(lsn) for (lsn,) in LSN.iter_unpack(value)]
    return tuple(LsnRange(start, end) for start, end in zip(lsns[::2], lsns[1::2], strict=True))
