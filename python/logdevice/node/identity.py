"""Whose data a data directory holds: written once, checked at every start.

A node that starts on the disk of another would answer for records it does not have. A directory without
the file is new: the node then comes back, if it was there before, as another one (its generation grows).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from logdevice.errors import InvalidArgumentError, UnreadableMetadataError
from logdevice.types import NodeId

FILE = "identity.json"


def claim(directory: Path, cluster: str, node: NodeId) -> bool:
    """Whether the directory is new. InvalidArgumentError if it belongs to somebody else."""
    path = directory / FILE
    mine = {"cluster": cluster, "node": int(node)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        _write(path, json.dumps(mine))
        return True
    except OSError as problem:
        raise InvalidArgumentError(f"{directory} cannot be used: {problem.strerror}") from None
    try:
        found = json.loads(text)
    except ValueError:
        raise UnreadableMetadataError(f"{path} is damaged") from None
    if found != mine:
        raise InvalidArgumentError(f"{directory} holds the data of {found}, not of {mine}")
    return False


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
