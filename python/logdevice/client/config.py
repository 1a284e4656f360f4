"""The configuration of a client: where the cluster is, where the client is, and all its settings.

It is an immutable, checked value and can be pickled, so a client can be sent to another process and connect
from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from logdevice.errors import InvalidArgumentError, InvalidSettingError
from logdevice.settings import BatchSettings, ClientSettings, ReadStreamSettings, WireSettings
from logdevice.settings.declarations import Settings, changed, declared, no_setting
from logdevice.types import Location

COMPONENTS: Final[Mapping[str, type[Settings]]] = {
    "client": ClientSettings,
    "stream": ReadStreamSettings,
    "batch": BatchSettings,
    "wire": WireSettings,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Everything that a client needs to connect, and all its settings."""

    endpoints: tuple[str, ...]  # addresses of some nodes; the client learns the other nodes from these
    cluster: str | None = None  # the only cluster to accept; None: the cluster of the first node that answers
    location: Location = Location()  # of the client: in a log with `local_scd`, the closest node sends
    client: ClientSettings = field(default_factory=ClientSettings)
    stream: ReadStreamSettings = field(default_factory=ReadStreamSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    wire: WireSettings = field(default_factory=WireSettings)

    @classmethod
    def of(
        cls, endpoints: str, *, cluster: str | None, location: str, settings: Mapping[str, object] | None
    ) -> ClientConfig:
        """The configuration with these endpoints, `host:port,host:port`, and settings, given by name alone.

        InvalidArgumentError or InvalidSettingError if an argument or a setting is not allowed.
        """
        try:
            place = Location.parse(location)
        except ValueError as problem:
            raise InvalidArgumentError(str(problem)) from None
        given = settings or {}
        known = [name for component in COMPONENTS.values() for name in declared(component)]
        for name in given:
            if name not in known:
                raise InvalidSettingError(no_setting(name, known))
        # No two components have a setting of the same name.
        parts: dict[str, Any] = {
            part: changed(component(), {name: given[name] for name in given if name in declared(component)})
            for part, component in COMPONENTS.items()
        }
        return cls(endpoints=parse_endpoints(endpoints), cluster=cluster, location=place, **parts)


def parse_endpoints(text: str) -> tuple[str, ...]:
    """The addresses in `host:port,host:port`, each once. InvalidArgumentError for other text."""
    addresses = tuple(address.strip() for address in text.split(",") if address.strip())
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidArgumentError(f"{address!r} is not an address of the form host:port")
    if not addresses:
        raise InvalidArgumentError("no node address was given, expected host:port,host:port")
    return tuple(dict.fromkeys(addresses))
