"""A node's configuration: from a JSON or TOML file, and from flags, which win over the file.

    cluster = "ads"
    node = 3
    address = "10.0.0.7:7040"
    data_directory = "/var/lib/logdevice"
    epoch_store = "zookeeper://zk1:2181,zk2:2181,zk3:2181/ads"
    location = "eu.fra1.c2.row4.rack7"
    roles = ["sequencer", "storage"]

    [settings.node]
    ping_interval_ms = 400

Configurations are checked when they are made, so every `NodeConfig` is valid. Nothing is opened here except
the file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_type_hints

from logdevice.errors import InvalidArgumentError, InvalidSettingError, UsageError
from logdevice.metadata.addresses import parse_address
from logdevice.metadata.values import NodeEntry, NodeRole
from logdevice.settings import (
    ChainSettings,
    MetadataSettings,
    NodeReadSettings,
    NodeSettings,
    RebuildSettings,
    RecoverySettings,
    StorageSettings,
    WireSettings,
    WriteSettings,
)
from logdevice.settings.declarations import Settings, changed, declared, instead_of
from logdevice.types import Location, NodeId

NODE_ID_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSettings:
    """The settings of every component of a node. The field names are the group names in a file."""

    node: NodeSettings = field(default_factory=NodeSettings)
    node_read: NodeReadSettings = field(default_factory=NodeReadSettings)
    metadata: MetadataSettings = field(default_factory=MetadataSettings)
    wire: WireSettings = field(default_factory=WireSettings)
    write: WriteSettings = field(default_factory=WriteSettings)
    chain: ChainSettings = field(default_factory=ChainSettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    rebuild: RebuildSettings = field(default_factory=RebuildSettings)


COMPONENTS: Final[Mapping[str, type[Settings]]] = get_type_hints(AllSettings)
GROUPS: Final = tuple(name for name, component in COMPONENTS.items() if declared(component))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """Everything that a node is started with. Raises InvalidArgumentError if a value is wrong."""

    cluster: str
    node: NodeId
    address: str  # where to listen; port 0: any free port
    data_directory: Path
    epoch_store: str
    advertised_address: str = ""  # where other processes reach the node, if not at `address`
    location: Location = Location()
    roles: tuple[NodeRole, ...] = (NodeRole.SEQUENCER, NodeRole.STORAGE)
    weight: float = 1.0
    settings: AllSettings = field(default_factory=AllSettings)

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidArgumentError(f"address {self.address!r} is not of the form host:port")
        if not self.cluster:
            raise InvalidArgumentError("a cluster must have a name")
        if not 0 <= self.node <= NODE_ID_MAX:
            raise InvalidArgumentError(f"node must be a number from 0 to {NODE_ID_MAX}, got {int(self.node)}")
        parse_address(self.epoch_store)
        self.entry(int(port) or 1)

    def entry(self, port: int, generation: int = 1) -> NodeEntry:
        """The entry under which the node registers when it listens on this port."""
        address = self.advertised_address or f"{self.address.rpartition(':')[0]}:{port}"
        try:
            return NodeEntry(
                address=address,
                location=self.location,
                roles=self.roles,
                weight=self.weight,
                generation=generation,
            )
        except ValueError as problem:
            raise InvalidArgumentError(str(problem)) from None


def read_file(path: Path) -> dict[str, Any]:
    """The content of a configuration file: TOML if its name ends in `.toml`, else JSON.

    Raises InvalidArgumentError if the file cannot be read or parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as problem:
        raise InvalidArgumentError(f"{path} cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise InvalidArgumentError(f"{path} cannot be parsed: {problem}") from None
    if not isinstance(content, dict):
        raise InvalidArgumentError(f"{path} must hold an object, not {type(content).__name__}")
    return content


def config_from(content: Mapping[str, Any], flags: Mapping[str, object]) -> NodeConfig:
    """The configuration from a file's content and from flags, which win over the file.

    `flags` are settings by name, of any component. Raises InvalidArgumentError or InvalidSettingError if a
    name is unknown, a value is wrong, or a required value is missing.
    """
    known = {"settings", *get_type_hints(NodeConfig)}
    for name in content:
        if name not in known:
            raise InvalidArgumentError(f"a configuration has no {name!r}; {instead_of(name, sorted(known))}")
    missing = [
        name
        for name in ("cluster", "node", "address", "data_directory", "epoch_store")
        if name not in content
    ]
    if missing:
        raise InvalidArgumentError(f"the configuration lacks: {', '.join(missing)}")
    try:
        return NodeConfig(**_converted(content), settings=_settings(content.get("settings", {}), flags))
    except UsageError:
        raise
    except (TypeError, ValueError) as problem:
        raise InvalidArgumentError(f"the configuration is wrong: {problem}") from None


def _converted(content: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in content.items() if name != "settings"}
    for name in ("cluster", "address", "advertised_address", "data_directory", "epoch_store", "location"):
        if not isinstance(values.get(name, ""), str):
            raise InvalidArgumentError(f"{name} must be text, got {values[name]!r}")
    if type(values["node"]) is not int:
        raise InvalidArgumentError(f"node must be a number, got {values['node']!r}")
    if type(values.get("weight", 1.0)) not in (int, float):
        raise InvalidArgumentError(f"weight must be a number, got {values['weight']!r}")
    values["node"] = NodeId(values["node"])
    values["data_directory"] = Path(values["data_directory"])
    if "location" in values:
        values["location"] = Location.parse(values["location"])
    if "roles" in values:
        values["roles"] = _roles(values["roles"])
    return values


def _roles(given: Any) -> tuple[NodeRole, ...]:
    allowed = [role.value for role in NodeRole]
    if not isinstance(given, list) or any(role not in allowed for role in given):
        raise InvalidArgumentError(
            f"roles must be a list with {' or '.join(allowed)}, or both, got {given!r}"
        )
    return tuple(sorted(map(NodeRole, given), key=lambda role: role.value))


def _settings(groups: Any, flags: Mapping[str, object]) -> AllSettings:
    if not isinstance(groups, dict):
        raise InvalidSettingError(
            f"settings must be groups of settings, one for each component, got {groups!r}"
        )
    for name in groups:
        if name not in COMPONENTS:
            raise InvalidSettingError(f"there is no settings group {name!r}; there are: {', '.join(GROUPS)}")
    made: dict[str, Any] = {}
    for name, component in COMPONENTS.items():
        group = groups.get(name, {})
        if not isinstance(group, dict):
            raise InvalidSettingError(f"settings.{name} must be settings by name, got {group!r}")
        own = {name: value for name, value in flags.items() if name in declared(component)}
        made[name] = changed(component(), {**group, **own})
    return AllSettings(**made)
