"""The options that reading and writing share: which cluster, and which of the two ways into Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdevice.errors import InvalidOptionError
from pyspark_logdevice import option_values as values
from pyspark_logdevice.option_values import option

TIME: Final = "a time, such as 500ms, 30s or 5m; a plain number is milliseconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    endpoint: str = option(
        "endpoint",
        values.endpoint,
        "host:port,host:port",
        "Some nodes of the cluster; the others are found from these.",
        default="",
        shown="required",
    )
    cluster: str | None = option(
        "cluster", values.text, "the name of the cluster", "Refuse to talk to any other cluster."
    )
    retry_timeout_ms: int = option(
        "retryTimeout",
        values.duration_ms,
        TIME,
        "How long a question to the cluster is asked again, or an append sent again, before the query fails.",
        default=120_000,
        shown="2m",
    )
    surface: str = option(
        "surface",
        values.choice("auto", "python", "jvm"),
        "auto, python or jvm",
        "Which of the two ways into Spark is taken; auto takes the JVM one when its jar is there.",
        default="auto",
        shown="auto",
    )

    def check(self) -> None:
        """What no single value can say."""
        if not self.endpoint:
            raise InvalidOptionError("option endpoint is missing; it must be host:port,host:port")
