"""How options are declared and read, and those that reading and writing share: which cluster, and how."""

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
    """A field of a class of options. `default` is what a user would write; without it the value of an option
    that is not given is `missing`, and `shown` says what that means.
    """
    about = {"name": name, "kind": kind, "text": text, "shown_default": default or shown}
    return field(default=kind.parse(default) if default else missing, metadata=about)


def values_of(given: Mapping[str, str], table: Mapping[str, Knob], *, path_means: str) -> dict[str, Any]:
    """Values by the names of their fields; `path_means` is the option that load(path) stands for."""
    values: dict[str, Any] = {}
    for name, text in given.items():
        # What Spark makes of load("/ads/clicks") and of start("/ads/clicks").
        key = path_means if name.lower() == "path" else name.lower()
        try:
            value = read(table, "option", key if key in table else name, text)
        except ValueError as problem:
            raise InvalidOptionError(str(problem)) from None
        if table[key].field in values:
            raise InvalidOptionError(f"give either a path or option {path_means}, not both")
        values[table[key].field] = value
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    endpoint: str = option(
        "endpoint",
        ENDPOINTS,
        "Some nodes of the cluster; the others are found from these.",
        missing="",
        shown="required",
    )
    cluster: str | None = option(
        "cluster", name_of("the name of the cluster"), "Refuse to talk to any other cluster."
    )
    retry_timeout_ms: int = option(
        "retryTimeout",
        DURATION,
        "How long a question to the cluster is asked again, or an append sent again, before the query fails.",
        "2m",
    )
    surface: str = option(
        "surface",
        choice("auto", "python", "jvm"),
        "Which of the two ways into Spark is taken; auto takes the JVM one when its jar is there.",
        "auto",
    )

    @property
    def location(self) -> str:
        return ""  # an option of those who read

    def client_settings(self) -> dict[str, object]:
        """The settings of the client that these options stand for."""
        return {
            "append_timeout_ms": self.retry_timeout_ms,
            "call_timeout_ms": self.retry_timeout_ms,
        }

    def check(self) -> None:
        """What no single value can say."""
        if not self.endpoint:
            raise InvalidOptionError(f"option endpoint is missing; it must be {ENDPOINTS.allowed}")
