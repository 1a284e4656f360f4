"""From Spark's map of text to the values of declared options, for whichever class declares them.

Names are known without case, as Spark hands them over. A name that nobody declared is refused with the
nearest one, a value that is not allowed with what is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from logdevice.errors import InvalidOptionError
from pyspark_logdevice.option_values import Option

Table = Mapping[str, tuple[str, Option]]  # from an option's name in lower case to its field and declaration


def table_of(options: type) -> Table:
    return {
        about.metadata["name"].lower(): (about.name, Option(**about.metadata)) for about in fields(options)
    }


def values_of(given: Mapping[str, str], table: Table, *, path_means: str) -> dict[str, Any]:
    """Values by the names of their fields; `path_means` is the option that load(path) stands for."""
    read: dict[str, Any] = {}
    for key, value in _known(given, table, path_means).items():
        field_name, about = table[key]
        try:
            read[field_name] = about.parse(value)
        except (ValueError, TypeError, OverflowError):
            raise InvalidOptionError(f"option {about.name} must be {about.allowed}, got {value!r}") from None
    return read


def _known(given: Mapping[str, str], table: Table, path_means: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in given.items():
        # What Spark makes of load("/ads/clicks") and of start("/ads/clicks").
        key = path_means if name.lower() == "path" else name.lower()
        if key not in table:
            raise InvalidOptionError(f"there is no option {name}{_nearest(key, table)}")
        if key in texts:
            raise InvalidOptionError(f"give either a path or option {path_means}, not both")
        texts[key] = str(value)
    return texts


def _nearest(key: str, table: Table) -> str:
    near = get_close_matches(key, table, n=1)
    if near:
        return f"; the nearest is {table[near[0]][1].name}"
    # Those that begin with _ are not for users.
    names = [about.name for _, about in table.values() if not about.name.startswith("_")]
    return f"; there are: {', '.join(names)}"
