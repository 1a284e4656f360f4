"""The file that says which node a data directory belongs to: written once, checked at every start.

A node that started on the disk of another node would answer for records it does not have. A directory
without this file, or without the store, is new. If the node was registered before, it has come back without
its data: it writes that to the event log before it writes the file and before it answers any request, and
registers with a higher generation.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from logdevice.errors import InvalidArgumentError, UnreadableMetadataError
from logdevice.types import NodeId

FILE = "identity.json"


def is_new(directory: Path, cluster: str, node: NodeId, *, store: Path | None) -> bool:
    """Whether the directory holds no data of this node yet.

    A directory without the store's files is new, too: the records that the node promised to keep are gone.
    `store` is None for a node that stores nothing, which has no such files. Raises InvalidArgumentError if
    the directory belongs to another node or cluster.
    """
    path = directory / FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    except OSError as problem:
        raise InvalidArgumentError(f"{directory} cannot be used: {problem.strerror}") from None
    try:
        found = json.loads(text)
    except ValueError:
        raise UnreadableMetadataError(f"{path} is damaged") from None
    if found != _identity(cluster, node):
        raise InvalidArgumentError(
            f"{directory} holds the data of {_shown(found)}, not of {_shown(_identity(cluster, node))}"
        )
    return store is not None and not store.exists()


def claim(directory: Path, cluster: str, node: NodeId) -> None:
    """Marks the directory as belonging to this node."""
    _write(directory / FILE, json.dumps(_identity(cluster, node)))


def _identity(cluster: str, node: NodeId) -> dict[str, object]:
    return {"cluster": cluster, "node": int(node)}


def _shown(identity: object) -> str:
    match identity:
        case {"cluster": str(name), "node": int(node)}:
            return f"{NodeId(node)} of cluster {name!r}"
    return "an unknown node"


def _write(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as problem:
        raise InvalidArgumentError(f"{path.parent} cannot be written: {problem.strerror}") from None
