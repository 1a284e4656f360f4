"""The address of an epoch store, as it is written in a configuration.

    sqlite:/var/lib/logdevice/metadata.db
    zookeeper://host:2181,host:2181/root
    zookeeper://user:password@host:2181/root     only this user may read and change it

Nothing is opened here. A password is never shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from logdevice.errors import InvalidArgumentError

ROOT: Final = "/logdevice"
_ZOOKEEPER = re.compile(r"zookeeper://(?:([^:@/]+):([^@/]+)@)?([^@/]+)((?:/[\w.-]+)*)/?")
_SERVER = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?")


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """The file of an epoch store in SQLite."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperAddress:
    """The servers of an epoch store in ZooKeeper, and its place there."""

    servers: str  # host:port,host:port
    root: str = ROOT  # the znode that holds everything of the store
    user: str = ""  # empty: without a login, and any user may read and change everything
    password: str = field(default="", repr=False)


Address = SqliteAddress | ZookeeperAddress


def parse_address(text: str) -> Address:
    """The address in `text`. Raises InvalidArgumentError if it is not an address of an epoch store."""
    scheme, _, rest = text.partition(":")
    if scheme == "sqlite" and rest and not rest.startswith("//"):
        return SqliteAddress(Path(rest))
    if match := _ZOOKEEPER.fullmatch(text):
        user, password, servers, root = match.groups(default="")
        if all(_SERVER.fullmatch(server) for server in servers.split(",")):
            return ZookeeperAddress(
                servers=servers, root=root or ROOT, user=unquote(user), password=unquote(password)
            )
    raise InvalidArgumentError(
        f"{_without_password(text)!r} is not an address of an epoch store; write sqlite:PATH or "
        "zookeeper://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/ROOT]"
    )


def _without_password(text: str) -> str:
    return re.sub(r"//.*@", "//***@", text)
