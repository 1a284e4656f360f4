"""Encodes messages as bytes, and decodes them.

    envelope length u32 | envelope | section

The envelope is a msgpack list: the code of the message, then its fields in order. The section holds the
bodies and records, exactly as they are stored; msgpack does not touch them. MESSAGES lists all messages; a
new message is one line there. A code is never reused, and a message whose fields change gets a new code.
Decoding is strict: anything but exactly one complete message raises a RemoteProtocolError that names the
message and the field.
"""

from __future__ import annotations

import sys
from struct import Struct
from typing import Any, Final, ForwardRef, get_args

import msgpack

from logdevice.errors import LocalProtocolError, RemoteProtocolError
from logdevice.protocol.io import Request
from logdevice.protocol.messages import chain, read, rebuilding, service, write
from logdevice.protocol.metadata_log import entries as metadata
from logdevice.records.forms import Form, Misfit, Parts, Section, fields_of
from logdevice.records.stored import joined
from logdevice.wire.hello import Hello

MESSAGES: Final[dict[int, type[Any]]] = {
    0: Hello,
    2: read.Window,
    3: read.Stop,
    4: read.Started,
    5: read.Records,
    6: read.GapNotice,
    7: read.StatusNotice,
    8: read.Start,  # with lineage; 1 was without
    17: write.Appended,
    20: write.Store,
    21: write.Stored,
    22: write.Delete,
    23: write.Release,
    24: write.Trim,
    25: write.Trimmed,
    26: write.Seal,
    27: write.Sealed,
    28: write.DigestRequest,
    29: write.DigestRecords,
    30: write.Clean,
    31: write.Cleaned,
    32: write.GetEpochRecovery,
    33: write.EpochRecovered,
    34: write.GetWriter,
    35: write.WriterIs,
    36: write.KeepWriters,
    37: write.Append,  # with written_ms and clock_ms; 16 was without
    38: write.Tail,
    39: write.Barrier,
    40: write.Drop,
    41: write.Dropped,
    42: write.BarrierIs,
    50: chain.Settle,
    51: chain.Settled,
    54: chain.ChainRead,
    56: chain.ChainCompleted,
    59: chain.ChainCopy,
    64: service.Failure,
    65: service.Done,
    66: service.GetCluster,
    67: service.ClusterView,
    68: rebuilding.Ping,
    69: rebuilding.Pong,
    70: service.GetStatus,
    71: service.NodeStatus,
    72: service.GetLogs,
    73: service.LogsView,
    74: service.ChangeLogs,
    75: service.FindSequencer,
    76: service.SequencerIs,
    77: read.GetEpochMetadata,
    78: read.EpochMetadataIs,
    79: service.GetStoredRange,
    80: service.StoredRange,
    81: service.FindTime,
    82: service.TimeFound,
    87: metadata.GetMetadataEntries,
    88: metadata.MetadataEntries,
    89: service.FindRecord,
    90: service.RecordFound,
    91: service.NextIncarnation,
    92: service.IncarnationIs,
    93: service.GetLineage,
    94: service.LineageIs,
    98: service.NotePurge,
    99: service.PurgeIs,
    100: service.ChangeNode,
    101: service.GetNodeStates,
    102: service.NodeStates,
    104: rebuilding.PutCopies,
    105: rebuilding.AmendCopies,
    106: rebuilding.CopiesStored,
    107: rebuilding.GetCopies,
    108: rebuilding.CopiesAre,
    113: service.GetCuts,
    114: service.CutsAre,
    115: service.KeepCut,
    116: service.RemoveCut,
    117: write.GetTail,
    118: service.FindLog,
}

_LENGTH: Final = Struct("<I")
_CODES: Final = {kind: code for code, kind in MESSAGES.items()}
_FORMS: Final[dict[int, Form]] = {code: fields_of(kind) for code, kind in MESSAGES.items()}


def _answer_to(request: type[Any]) -> type[Any]:
    """The class of the answer, which the base class of the request names."""
    (named,) = get_args(vars(request)["__orig_bases__"][0])
    if isinstance(named, ForwardRef):
        named = vars(sys.modules[request.__module__])[named.__forward_arg__]
    answer: type[Any] = named
    return answer


# The answer to each request. Besides it, only a Failure is accepted.
ANSWERS: Final = {kind: _answer_to(kind) for kind in MESSAGES.values() if issubclass(kind, Request)}


def encode(message: object) -> bytes:
    """The message as bytes. Bodies are copied once.

    Raises LocalProtocolError if a field has a value that cannot be encoded.
    """
    return joined(encode_parts(message))


def encode_parts(message: object) -> Parts:
    """The encoded message in pieces, to be sent one after the other. Bodies are not copied."""
    code = _CODES[type(message)]
    parts: Parts = []
    try:
        envelope = msgpack.packb([code, *_FORMS[code].pack(message, parts)])
    except (OverflowError, TypeError, ValueError, AttributeError) as problem:
        raise LocalProtocolError(f"{type(message).__name__} cannot be encoded: {problem}") from None
    return [_LENGTH.pack(len(envelope)) + envelope, *parts]


def decode(data: bytes | memoryview) -> Any:
    """The one message in `data`. Bodies are views into `data`.

    Raises RemoteProtocolError for anything but exactly one complete message.
    """
    view = memoryview(data)
    code, values, section = _split(view)
    kind = MESSAGES.get(code)
    if kind is None:
        raise RemoteProtocolError(f"a message has the unknown code {code}")
    try:
        message = _FORMS[code].unpack(values, section)
    except Misfit as problem:
        raise RemoteProtocolError(f"{kind.__name__} cannot be decoded: {problem}") from None
    if section.left:
        raise RemoteProtocolError(f"{kind.__name__} is followed by {section.left} bytes too many")
    return message


def _split(view: memoryview) -> tuple[int, list[Any], Section]:
    """Code, packed fields and section of a message."""
    if len(view) < _LENGTH.size:
        raise RemoteProtocolError(f"a message of {len(view)} bytes is too short")
    envelope_end = _LENGTH.size + _LENGTH.unpack_from(view)[0]
    if envelope_end > len(view):
        raise RemoteProtocolError(
            f"a message of {len(view)} bytes has an envelope that ends at {envelope_end}"
        )
    try:
        envelope = msgpack.unpackb(view[_LENGTH.size : envelope_end])
    except (msgpack.UnpackException, ValueError, TypeError) as problem:
        raise RemoteProtocolError(f"the envelope of a message is not msgpack: {problem!r}") from None
    if type(envelope) is not list or not envelope or type(envelope[0]) is not int:
        raise RemoteProtocolError("the envelope of a message does not start with its code")
    return envelope[0], envelope[1:], Section(view[envelope_end:])
