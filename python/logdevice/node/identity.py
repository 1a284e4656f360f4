"""Whose data a data directory holds: written once, checked at every start.

A node that starts on the disk of another would answer for records it does not have. A directory without
the file, or without the store, is new: a node that was there before then comes back as another one (its
generation grows), and says so in the event log before the file is written and before it answers anybody.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from logdevice.errors import InvalidArgumentError, UnreadableMetadataError
from logdevice.types import NodeId

FILE = "identity.json"


def is_new(directory: Path, cluster: str, node: NodeId, *, store: Path | None) -> bool:
    """Whether nothing is in the directory yet. InvalidArgumentError if it belongs to somebody else.

    Without the store's files it is new, too: what the node promised about its records is gone. A node
    that stores nothing has no such files.
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
            f"{directory} holds the data of {found}, not of {_identity(cluster, node)}"
        )
    return store is not None and not store.exists()


def claim(directory: Path, cluster: str, node: NodeId) -> None:
    """From here on the directory is the node's own."""
    _write(directory / FILE, json.dumps(_identity(cluster, node)))


def _identity(cluster: str, node: NodeId) -> dict[str, object]:
    return {"cluster": cluster, "node": int(node)}


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
