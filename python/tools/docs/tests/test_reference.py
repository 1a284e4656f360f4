"""What the API reference promises: every public name has an entry, and every type in a signature has one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import logdevice
import logdevice.client
import pyspark_logdevice
from logdevice.errors import LogDeviceError
from tools.docs.pages import COMPONENTS
from tools.docs.reference import OURS, calls, entries, methods
from tools.docs.reference_contents import ALIASES, PAGES, RENAMED
from tools.docs.source_text import members, types_named

ON_OTHER_PAGES = {"ErrorCode", "ENTRIES_READ"}  # errors.md; the columns of a batch are in client.md
SETTINGS = {component.__name__ for component in COMPONENTS}  # settings.md
CONSTANTS = {"EPOCH_MAX", "ESN_MAX", "LSN_MAX", "LSN_OLDEST"}  # named in a chapter's text


def documented() -> dict[str, Any]:
    return {name.removesuffix("()"): what for page in PAGES.values() for name, what in entries(page)}


def test_every_public_name_has_an_entry() -> None:
    public = {*logdevice.__all__, *logdevice.client.__all__, *pyspark_logdevice.__all__}
    errors = {name for name in public if _is_error(getattr(logdevice, name, None))}  # on docs/errors.md
    assert public - errors - ON_OTHER_PAGES - CONSTANTS - set(documented()) == set()


def test_every_type_of_ours_in_a_signature_has_an_entry() -> None:
    known = {*documented(), *ALIASES, *RENAMED, *ON_OTHER_PAGES}
    missing = {
        f"{name} in {function.__qualname__}"
        for function in _functions()
        for name in types_named(function)
        if name not in known and _is_ours(function, name)
    }
    assert missing == set()


def test_every_type_of_ours_of_an_attribute_has_an_entry() -> None:
    known = {*documented(), *ALIASES, *RENAMED, *ON_OTHER_PAGES, *SETTINGS}
    missing = {
        f"{name} in {what.__qualname__}"
        for what in filter(inspect.isclass, documented().values())
        for field in members(what)
        for name in re.findall(r"\w+", field.type)
        if name not in known and _is_type_of_ours(vars(inspect.getmodule(what)).get(name))
    }
    assert missing == set()


def _functions() -> Iterator[Any]:
    yield from calls().values()
    for what in documented().values():
        if inspect.isclass(what):
            yield from (function for _, function in methods(what))
        elif inspect.isfunction(what):
            yield inspect.unwrap(what)


def _is_ours(function: Any, name: str) -> bool:
    return _is_type_of_ours(inspect.unwrap(function).__globals__.get(name))


def _is_type_of_ours(found: Any) -> bool:
    return inspect.isclass(found) and found.__module__.partition(".")[0] in OURS and not _is_error(found)


def _is_error(what: Any) -> bool:
    return inspect.isclass(what) and issubclass(what, LogDeviceError)
