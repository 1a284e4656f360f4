"""Answers the questions of SQL about logs, for the catalog of the JVM surface.

Called by `jvm_surface/planner.py`, in a worker of the driver that is kept together with its client. An error
that a user can act on is part of the answer. Any other error is raised, and shows as a traceback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from logdevice.client.blocking import Client
from logdevice.errors import LogDeviceError, UnknownLogError
from logdevice.protocol.messages.service import LogView
from logdevice.types import LSN_MAX, Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.options.read import parse
from pyspark_logdevice.options.write import WRITE_OPTIONS
from pyspark_logdevice.read.rows import SCHEMA


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """Calls the function of `CALLS` that the question names, with the question's arguments."""
    try:
        client = _client(question["options"])
        return {"result": CALLS[question["function"]](client, **question["arguments"])}
    except (LogDeviceError, ValueError) as error:
        return {"error": str(error)}


def _client(options: Mapping[str, str]) -> Client:
    # The log is named later, by a table. Until then any pattern makes the options complete.
    return connections.client(parse({**options, "logsPattern": ".*"}))


def children(client: Client, directory: Sequence[str]) -> dict[str, list[str]]:
    """The names of the logs and of the directories in a directory."""
    inside = "/" + "".join(f"{part}/" for part in directory)
    paths = [view.path for view in client.logs("/") if view.log is not None and view.path.startswith(inside)]
    names = [path.removeprefix(inside).split("/") for path in paths]
    return {
        "logs": sorted(name[0] for name in names if len(name) == 1),
        "directories": sorted({name[0] for name in names if len(name) > 1}),
    }


def table(
    client: Client,
    name: Sequence[str],
    options: Mapping[str, str],
    version: str | None = None,
    timestamp_us: int | None = None,
) -> dict[str, Any] | None:
    """A log as a table; None if there is no such log.

    The table ends with the record at the LSN `version`, or with those of the time `timestamp_us`, if given.
    """
    view = _find(client, name)
    if view is None:
        return None
    reading = {**options, "logs": json.dumps([view.path])}
    if version is not None:
        reading["endingOffsets"] = str(min(Lsn.parse(version) + 1, int(LSN_MAX) - 1))
    if timestamp_us is not None:
        # Includes the whole millisecond, because times are shown in milliseconds.
        reading["endingTimestamp"] = str(timestamp_us // 1000 + 1)
    return {
        "path": view.path,
        "schema": SCHEMA.json(),
        "read_options": reading,
        "write_options": {"log": view.path}
        | {one: options[one] for one in options if one.lower() in WRITE_OPTIONS},
    }


def properties(client: Client, name: Sequence[str]) -> dict[str, str]:
    """The attributes of a log by their names, and where it begins and ends now."""
    view = client.find_log(_path(name), fresh=True)
    assert view.log is not None
    tail = client.tail(view.log)
    return {name: value for name, value, _ in view.attributes} | {
        "log_id": str(int(view.log)),
        "first_lsn": str(client.first_lsn(view.log)),
        "next_lsn": str(tail.next),
        "entries_ever": str(tail.entry_end),
        "bytes_ever": str(tail.byte_end),
    }


def set_properties(client: Client, name: Sequence[str], properties: Mapping[str, str | None]) -> bool:
    """Sets attributes of a log. The value None removes one, so that the log inherits it again.

    Returns whether there is such a log.
    """
    view = _find(client, name)
    if view is not None:
        client.set_attributes(view.path, dict(properties))
    return view is not None


def find_time(client: Client, log: str, at: int) -> dict[str, Any]:
    """The LSN from which to read everything that was appended at a time (in microseconds) or later."""
    lsn = client.find_time(log, -(-at // 1000))
    return {"log": log, "lsn": int(lsn), "lsn_text": str(lsn)}


def trim(client: Client, log: str, until: str) -> dict[str, Any]:
    """Removes everything below an LSN. Nodes that were not reached learn of it when they are up again."""
    missed = client.trim(log, Lsn.parse(until))
    first = client.first_lsn(log)
    return {"log": log, "first_lsn": int(first), "nodes_missed": ", ".join(map(str, missed))}


CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "children": children,
    "table": table,
    "properties": properties,
    "set_properties": set_properties,
    "find_time": find_time,
    "trim": trim,
}


def _find(client: Client, name: Sequence[str]) -> LogView | None:
    try:
        return client.find_log(_path(name), fresh=True)
    except UnknownLogError:
        return None


def _path(name: Sequence[str]) -> str:
    """The path or number of a log, from the name of a table: one part with either, or all parts of a path."""
    if len(name) == 1 and (name[0].startswith("/") or name[0].isdecimal()):
        return name[0]
    return "/" + "/".join(name)
