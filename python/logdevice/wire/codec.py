"""Messages as bytes, and back.

    head length u32 | head | section

The head is a msgpack list: the code of the message, then its fields in order. The section holds what
msgpack should not touch: bodies and records, exactly as they are stored. MESSAGES is the whole
vocabulary; a new message is one line there. A code is never used again, and a message whose fields
change gets a new one. Decoding is strict: anything but exactly one whole message is a
RemoteProtocolError that names the message and the field.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

import msgpack

from logdevice.errors import LocalProtocolError, RemoteProtocolError
from logdevice.protocol import messages as read
from logdevice.wire.forms import Form, Misfit, Parts, Section, fields_of
from logdevice.wire.hello import Hello

MESSAGES: Final[dict[int, type[Any]]] = {
    0: Hello,
    1: read.Start,
    2: read.Window,
    3: read.Stop,
    4: read.Started,
    5: read.Records,
    6: read.GapNotice,
    7: read.StatusNotice,
}

_LENGTH: Final = Struct("<I")
_CODES: Final = {kind: code for code, kind in MESSAGES.items()}
_FORMS: Final[dict[int, Form]] = {code: fields_of(kind) for code, kind in MESSAGES.items()}


def encode(message: object) -> bytes:
    """The message as bytes; bodies are copied once, into them."""
    code = _CODES[type(message)]
    parts: Parts = []
    try:
        head = msgpack.packb([code, *_FORMS[code].pack(message, parts)])
    except (OverflowError, TypeError, ValueError, AttributeError) as problem:
        raise LocalProtocolError(f"{type(message).__name__} cannot be encoded: {problem}") from None
    return b"".join((_LENGTH.pack(len(head)), head, *parts))


def decode(data: bytes | memoryview) -> Any:
    """The one message in `data`. Bodies are views into it."""
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
        raise RemoteProtocolError(f"{kind.__name__} has {section.left} bytes too many")
    return message


def _split(view: memoryview) -> tuple[int, list[Any], Section]:
    """Code, packed fields and section of a message."""
    if len(view) < _LENGTH.size:
        raise RemoteProtocolError(f"a message of {len(view)} bytes is too short")
    head_end = _LENGTH.size + _LENGTH.unpack_from(view)[0]
    if head_end > len(view):
        raise RemoteProtocolError(f"a message of {len(view)} bytes has a head that ends at {head_end}")
    try:
        head = msgpack.unpackb(view[_LENGTH.size : head_end])
    except (msgpack.UnpackException, ValueError, TypeError) as problem:
        raise RemoteProtocolError(f"the head of a message is no msgpack: {problem!r}") from None
    if type(head) is not list or not head or type(head[0]) is not int:
        raise RemoteProtocolError("the head of a message does not start with its code")
    return head[0], head[1:], Section(view[head_end:])
