"""Where the metadata is: the address of an epoch store, as one writes it in a configuration.

    sqlite:/var/lib/logdevice/metadata.db
    zookeeper://host:2181,host:2181/root
    zookeeper://user:password@host:2181/root     only this user may look at it and change it

Pure: nothing is opened here. A password is never shown.
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
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperAddress:
    servers: str  # host:port,host:port
    root: str = ROOT  # the znode under which everything is
    user: str = ""  # empty: everybody may do everything
    password: str = field(default="", repr=False)


Address = SqliteAddress | ZookeeperAddress


def parse_address(text: str) -> Address:
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
        f"{_without_password(text)!r} is no address of metadata; write sqlite:PATH or "
        "zookeeper://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/ROOT]"
    )


def _without_password(text: str) -> str:
    return re.sub(r"//.*@", "//***@", text)
