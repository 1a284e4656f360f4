"""Declares and reads options, and has those that the source and the sink share, such as the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from logdevice.errors import InvalidOptionError
from logdevice.settings.declarations import Kind, Knob, choice, read
from pyspark_logdevice.options.values import DURATION, ENDPOINTS, name_of


def option(
    name: str, kind: Kind, text: str, default: str = "", *, missing: Any = None, shown: str = ""
) -> Any:
    """A field of a class of options. `default` is the default as a user would write it. Without it, the value
    of an option that is not given is `missing`, and `shown` says in words what that means.
    """
    about = {"name": name, "kind": kind, "text": text, "shown_default": default or shown}
    return field(default=kind.parse(default) if default else missing, metadata=about)


def values_of(given: Mapping[str, str], table: Mapping[str, Knob], *, path_means: str) -> dict[str, Any]:
    """The values of the options, by the names of their fields. `path_means` is the option for load(path)."""
    values: dict[str, Any] = {}
    for name, text in given.items():
        # Spark turns load("/ads/clicks") and start("/ads/clicks") into an option `path`.
        key = path_means if name.lower() == "path" else name.lower()
        try:
            value = read(table, "option", key if key in table else name, text)
        except ValueError as problem:
            raise InvalidOptionError(str(problem)) from None
        if table[key].field in values:
            raise InvalidOptionError(f"give either a path or the option {path_means}, not both")
        values[table[key].field] = value
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options that the source and the sink share."""

    endpoint: str = option(
        "endpoint",
        ENDPOINTS,
        "Addresses of some nodes of the cluster; the client finds the others.",
        missing="",
        shown="required",
    )
    cluster: str | None = option(
        "cluster", name_of("the name of the cluster"), "Refuse to connect to any other cluster."
    )
    retry_timeout_ms: int = option(
        "retryTimeout",
        DURATION,
        "How long a request to the cluster or an append is retried before the query fails.",
        "2m",
    )
    surface: str = option(
        "surface",
        choice("auto", "python", "jvm"),
        "How Spark reads: by Python alone, or through the jar (jvm). auto uses the jar if it is there.",
        "auto",
    )

    @property
    def location(self) -> str:
        return ""  # only the source has this option

    def client_settings(self) -> dict[str, object]:
        """The settings of the client that these options stand for."""
        return {
            "append_timeout_ms": self.retry_timeout_ms,
            "call_timeout_ms": self.retry_timeout_ms,
        }

    def check(self) -> None:
        """Raises InvalidOptionError if a required option is missing."""
        if not self.endpoint:
            raise InvalidOptionError(f"option endpoint is missing; it must be {ENDPOINTS.allowed}")
