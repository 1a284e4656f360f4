"""Everything a client is told at birth: where the cluster is, where it is itself, and all its settings.

A value: frozen, complete, valid. It can be pickled, so a client can be sent to another process and
connect from there.
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
    endpoints: tuple[str, ...]  # addresses of some nodes; the others are learnt from these
    cluster: str | None = None  # None: whichever answers
    location: Location = Location()  # of the client, for logs that are read from close by
    client: ClientSettings = field(default_factory=ClientSettings)
    stream: ReadStreamSettings = field(default_factory=ReadStreamSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    wire: WireSettings = field(default_factory=WireSettings)

    @classmethod
    def of(
        cls, endpoints: str, *, cluster: str | None, location: str, settings: Mapping[str, object] | None
    ) -> ClientConfig:
        """From what a person writes: `host:port,host:port`, and settings by name, whosever they are."""
        try:
            place = Location.parse(location)
        except ValueError as problem:
            raise InvalidArgumentError(str(problem)) from None
        given = settings or {}
        known = [name for component in COMPONENTS.values() for name in declared(component)]
        for name in given:
            if name not in known:
                raise InvalidSettingError(no_setting(name, known))
        # No two components share a name.
        parts: dict[str, Any] = {
            part: changed(component(), {name: given[name] for name in given if name in declared(component)})
            for part, component in COMPONENTS.items()
        }
        return cls(endpoints=parse_endpoints(endpoints), cluster=cluster, location=place, **parts)


def parse_endpoints(text: str) -> tuple[str, ...]:
    addresses = tuple(address.strip() for address in text.split(",") if address.strip())
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidArgumentError(f"{address!r} is not an address of the form host:port")
    if not addresses:
        raise InvalidArgumentError("no address of a node was given; write host:port,host:port")
    return tuple(dict.fromkeys(addresses))
