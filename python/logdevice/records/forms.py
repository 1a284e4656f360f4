"""Encodes values by the types of their fields, for messages on the wire and for stored metadata.

The form of a dataclass is worked out once, from its annotations. Small values go into the message's envelope,
which msgpack encodes. Bytes and records go unchanged into the section after the envelope, and the envelope
has their lengths. A value that does not fit its type raises Misfit, which says what was expected; the caller,
which knows the message and the field, turns it into an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgpack

from logdevice.errors import CorruptRecordError
from logdevice.records.record_header import decode_records, encode_records
from logdevice.records.stored import StoredBody
from logdevice.types import EPOCH_MAX, LSN_MAX, Epoch, Location, LogId, Lsn, NodeId, Record, Replication

Value = TypeVar("Value")
Parts = list[bytes | memoryview | StoredBody]


class Misfit(ValueError):
    """A value that a field cannot have."""

    def __init__(self, wanted: str, got: object) -> None:
        super().__init__(f"expected {wanted}, got {repr(got)[:80]}")


class Section:
    """The bytes after an envelope, taken one piece after the other."""

    __slots__ = ("_offset", "_view")

    def __init__(self, view: memoryview) -> None:
        self._view, self._offset = view, 0

    @property
    def left(self) -> int:
        """How many bytes were not taken yet."""
        return len(self._view) - self._offset

    def take(self, length: Any) -> memoryview:
        """The next `length` bytes. Misfit if that is not a length, or if fewer are left."""
        if type(length) is not int or not 0 <= length <= self.left:
            raise Misfit(f"a length of at most the {self.left} bytes that are left", length)
        start, self._offset = self._offset, self._offset + length
        return self._view[start : self._offset]


@dataclass(frozen=True, slots=True)
class Form:
    """How a type is encoded: `pack` gives a value for msgpack and may add to the section, `unpack` undoes it.

    `unpack` raises Misfit for a value that is not of the type.
    """

    pack: Callable[[Any, Parts], Any]
    unpack: Callable[[Any, Section], Any]


def _unchanged(value: Any, parts: Parts) -> Any:
    return value


def _exactly(wanted: type, name: str) -> Form:
    def unpack(value: Any, section: Section) -> Any:
        # A bool is an int to Python, but not on the wire.
        if type(value) is not wanted:
            raise Misfit(name, value)
        return value

    return Form(_unchanged, unpack)


def _number(make: Callable[[int], Any], name: str, highest: int) -> Form:
    def unpack(value: Any, section: Section) -> Any:
        if type(value) is not int or not 0 <= value <= highest:
            raise Misfit(f"{name} from 0 to {int(highest)}", value)
        return make(value)

    return Form(lambda value, parts: int(value), unpack)


def _text_of(parse: Callable[[str], Any], name: str) -> Form:
    """The form of a type that has a text form."""

    def unpack(value: Any, section: Section) -> Any:
        if type(value) is not str:
            raise Misfit(name, value)
        try:
            return parse(value)
        except ValueError:
            raise Misfit(name, value) from None

    return Form(lambda value, parts: str(value), unpack)


def _raw(make: Callable[[memoryview], Any]) -> Form:
    def pack(value: Any, parts: Parts) -> int:
        parts.append(value)
        return len(value)

    return Form(pack, lambda value, section: make(section.take(value)))


def _viewed(view: memoryview) -> bytes | memoryview:
    """The view itself, or a copy if the view would keep a much larger buffer in memory."""
    return view if 2 * len(view) >= len(cast(Sized, view.obj)) else bytes(view)


def _pack_records(records: tuple[Record, ...], parts: Parts) -> list[int]:
    encoded = encode_records(records)
    parts += encoded
    return [len(records), sum(map(len, encoded))]


def _unpack_records(value: Any, section: Section) -> tuple[Record, ...]:
    if type(value) is not list or len(value) != 2:
        raise Misfit("the number of records and their length", value)
    count, length = value
    try:
        records = decode_records(section.take(length))
    except CorruptRecordError as problem:
        raise Misfit("whole records", problem.message) from None
    # Without this check, a message that was cut off between two records would look complete.
    if count != len(records):
        raise Misfit(f"{count} records", len(records))
    return records


def _unpack_record(value: Any, section: Section) -> Record:
    records = _unpack_records(value, section)
    if len(records) != 1:
        raise Misfit("one record", len(records))
    return records[0]


_KNOWN: Final[dict[Any, Form]] = {
    int: _exactly(int, "an integer"),
    bool: _exactly(bool, "true or false"),
    float: _exactly(float, "a floating-point number"),
    str: _exactly(str, "text"),
    bytes: _raw(bytes),
    bytes | memoryview: _raw(_viewed),
    Lsn: _number(Lsn, "an LSN", LSN_MAX),
    NodeId: _number(NodeId, "a node", 65535),
    LogId: _number(LogId, "a log", (1 << 63) - 1),
    Epoch: _number(Epoch, "an epoch", EPOCH_MAX + 1),
    Location: _text_of(Location.parse, "a location"),
    Replication: _text_of(Replication.parse, "a replication"),
    Record: Form(lambda record, parts: _pack_records((record,), parts), _unpack_record),
    tuple[Record, ...]: Form(_pack_records, _unpack_records),
}


def packed(value: object) -> bytes:
    """The stored form of a dataclass of small values: the list of its fields."""
    return bytes(msgpack.packb(_stored_form(type(value)).pack(value, [])))


def unpacked(kind: type[Value], data: bytes | memoryview) -> Value:
    """The value that `packed` encoded. Misfit if the data is not such a value."""
    try:
        fields = msgpack.unpackb(data)
    except (msgpack.UnpackException, ValueError, TypeError) as problem:
        raise Misfit("msgpack", problem) from None
    value: Value = _stored_form(kind).unpack(fields, Section(memoryview(b"")))
    return value


def form_of(hint: Any, dataclass_form: Callable[[type[Any]], Form] | None = None) -> Form:
    """The form of a type. TypeError if it has none, which shows when a message is first registered."""
    if hint in _KNOWN:
        return _KNOWN[hint]
    arguments = get_args(hint)
    # `LogId | None` is a typing.Union, because a NewType is not a class; `int | None` is a UnionType.
    if get_origin(hint) in (Union, UnionType) and NoneType in arguments and len(arguments) == 2:
        wanted = next(argument for argument in arguments if argument is not NoneType)
        return _optional(form_of(wanted, dataclass_form))
    if get_origin(hint) is tuple and arguments[1:] == (Ellipsis,):
        return _many(form_of(arguments[0], dataclass_form))
    if get_origin(hint) is tuple:
        forms = [form_of(argument, dataclass_form) for argument in arguments]
        return _each(forms, lambda *values: values, "item")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return (dataclass_form or fields_of)(hint)
    name = hint.__name__ if isinstance(hint, type | NewType) else hint
    raise TypeError(f"{name} has no form")


def fields_of(kind: type[Any]) -> Form:
    """The form of a dataclass: the list of its fields, in order."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]

    def make(*values: Any) -> Any:
        try:
            return kind(**dict(zip(names, values, strict=True)))
        except ValueError as problem:
            raise Misfit(f"a valid {kind.__name__}", str(problem)) from None

    form = _each([form_of(hints[name]) for name in names], make, "field", names)

    def pack(value: Any, parts: Parts) -> list[Any]:
        packed: list[Any] = form.pack([getattr(value, name) for name in names], parts)
        return packed

    return Form(pack, form.unpack)


_stored_form: Callable[[type], Form] = cache(fields_of)


def named_fields_of(kind: type[Any]) -> Form:
    """The form of a dataclass whose fields are stored by name, as are those of dataclasses in it."""
    hints = get_type_hints(kind)
    forms = {field.name: form_of(hints[field.name], named_fields_of) for field in fields(kind)}

    def pack(value: Any, parts: Parts) -> dict[str, Any]:
        return {name: form.pack(getattr(value, name), parts) for name, form in forms.items()}

    def unpack(values: Any, section: Section) -> Any:
        if type(values) is not dict or forms.keys() - values.keys():
            raise Misfit(f"the fields {', '.join(forms)}", values)
        return kind(**{name: form.unpack(values[name], section) for name, form in forms.items()})

    return Form(pack, unpack)


def _each(forms: list[Form], make: Callable[..., Any], noun: str, names: list[str] | None = None) -> Form:
    """The form of a list of fixed length, in which each value has a form of its own."""

    def pack(values: Any, parts: Parts) -> list[Any]:
        return [form.pack(value, parts) for form, value in zip(forms, values, strict=True)]

    def unpack(values: Any, section: Section) -> Any:
        if type(values) is not list or len(values) != len(forms):
            raise Misfit(f"a list of {len(forms)}", values)
        unpacked = []
        for index, (form, value) in enumerate(zip(forms, values, strict=True)):
            try:
                unpacked.append(form.unpack(value, section))
            except Misfit as problem:
                problem.args = (f"{noun} {names[index] if names else index}: {problem}",)
                raise
        return make(*unpacked)

    return Form(pack, unpack)


def _many(form: Form) -> Form:
    def pack(values: Any, parts: Parts) -> list[Any]:
        return [form.pack(value, parts) for value in values]

    def unpack(values: Any, section: Section) -> tuple[Any, ...]:
        if type(values) is not list:
            raise Misfit("a list", values)
        return tuple([form.unpack(value, section) for value in values])

    return Form(pack, unpack)


def _optional(form: Form) -> Form:
    return Form(
        lambda value, parts: None if value is None else form.pack(value, parts),
        lambda value, section: None if value is None else form.unpack(value, section),
    )


def _choice(kind: type[Enum]) -> Form:
    # By value: the names of members may change, their values never do.
    members = {member.value: member for member in kind}
    value_type = type(next(iter(members)))

    def unpack(value: Any, section: Section) -> Enum:
        if type(value) is not value_type or value not in members:
            raise Misfit(f"one of {', '.join(map(str, members))}", value)
        return members[value]

    return Form(lambda value, parts: value.value, unpack)
