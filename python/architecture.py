"""Who may import whom: the layers of the project, from the plainest nouns up. `test_architecture.py` holds
every module against them; ARCHITECTURE.md has the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass

# Parts of the standard library that reach no clock, disk, network or thread.
PURE = frozenset(
    {
        "__future__",
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "heapq",
        "itertools",
        "math",
        "operator",
        "random",
        "re",
        "struct",
        "typing",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What the modules under one path may import; the first layer that fits a module holds for it."""

    path: str
    ours: tuple[str, ...]  # modules of this project
    others: frozenset[str] | None = PURE  # None: anything but `never`
    never: frozenset[str] = frozenset()


def modules(names: str) -> tuple[str, ...]:
    return tuple(f"logdevice.{name}" for name in names.split())


LAYERS = (
    Layer(path="logdevice/types.py", ours=()),
    Layer(path="logdevice/errors.py", ours=("logdevice.types",)),
    Layer(path="logdevice/knobs.py", ours=("logdevice.errors",), others=PURE | {"difflib"}),
    Layer(path="logdevice/settings.py", ours=("logdevice.knobs",)),
    Layer(path="logdevice/rebuild_settings.py", ours=("logdevice.knobs",)),
    Layer(path="logdevice/client_settings.py", ours=("logdevice.knobs",)),
    Layer(path="logdevice/node_settings.py", ours=("logdevice.knobs",)),
    Layer(path="logdevice/write_settings.py", ours=("logdevice.knobs",)),
    Layer(path="logdevice/log_attributes.py", ours=modules("types errors knobs")),
    Layer(path="logdevice/tasks.py", ours=(), others=PURE | {"asyncio"}),
    Layer(path="logdevice/clock.py", ours=(), others=PURE | {"asyncio", "time"}),
    Layer(
        path="logdevice/host.py",
        ours=modules("types errors clock protocol.io protocol.timers"),
        others=PURE | {"asyncio"},
    ),
    Layer(path="logdevice/stored_record.py", ours=("logdevice.types",)),
    Layer(
        path="logdevice/record_format.py",
        ours=("logdevice.types", "logdevice.errors", "logdevice.stored_record"),
        others=PURE | {"crc32c"},
    ),
    Layer(
        path="logdevice/forms.py",
        ours=modules("types errors record_format stored_record"),
        others=PURE | {"types", "msgpack"},
    ),
    Layer(path="logdevice/cuts.py", ours=("logdevice.types", "logdevice.errors")),
    Layer(
        path="logdevice/writer_tags.py",
        ours=("logdevice.types", "logdevice.errors"),
        others=PURE | {"hashlib"},
    ),
    Layer(
        path="logdevice/batch.py",
        ours=("logdevice.errors", "logdevice.settings"),
        others=PURE | {"pyarrow"},
    ),
    Layer(
        path="logdevice/protocol/",
        ours=(
            "logdevice.types",
            "logdevice.forms",
            "logdevice.settings",
            "logdevice.write_settings",
            "logdevice.client_settings",
            "logdevice.node_settings",
            "logdevice.rebuild_settings",
            "logdevice.protocol",
        ),
    ),
    Layer(
        path="logdevice/storage/",
        ours=(
            "logdevice.types",
            "logdevice.errors",
            "logdevice.settings",
            "logdevice.record_format",
            "logdevice.stored_record",
            "logdevice.storage",
            # What a node's stream asks of a store, and the filter it hands along; no other machine.
            "logdevice.protocol.copy_selection",
            "logdevice.protocol.server_read_stream",
            "logdevice.protocol.store_read",
            "logdevice.protocol.store_write",
        ),
        others=None,
    ),
    Layer(
        path="logdevice/wire/",
        ours=(
            *modules("types errors cuts settings record_format stored_record forms tasks wire"),
            # What is said; who says it, and when, is not the wire's business.
            *modules("protocol.messages protocol.write_messages protocol.chain.messages"),
            *modules("protocol.rebuilding_messages protocol.metadata_entries protocol.node_status"),
            *modules("protocol.io protocol.lineage"),
        ),
        others=None,
    ),
    *(
        Layer(
            path=f"logdevice/metadata/{module}.py",
            ours=modules("types errors knobs log_attributes metadata"),
            others=PURE | {"difflib"},
        )
        for module in ("log_directory", "values")
    ),
    Layer(
        path="logdevice/metadata/",
        ours=(
            "logdevice.types",
            "logdevice.forms",
            "logdevice.errors",
            "logdevice.cuts",
            "logdevice.knobs",
            "logdevice.log_attributes",
            "logdevice.settings",
            "logdevice.metadata",
            # What became of nodes, and of histories, is summed up there; kept by compare-and-set like
            # everything else here.
            "logdevice.protocol.epoch_state",
            "logdevice.protocol.lineage",
            "logdevice.protocol.node_status",
        ),
        others=None,
    ),
    Layer(path="logdevice/node/assembly.py", ours=("logdevice",), others=None),
    Layer(
        path="logdevice/node/",
        ours=(
            *modules("types errors knobs log_attributes tasks clock host writer_tags settings"),
            *modules("write_settings node_settings rebuild_settings protocol wire node"),
            # What a store and an epoch store promise; which ones they are only the assembly knows.
            "logdevice.storage.log_store",
            "logdevice.metadata.addresses",
            "logdevice.metadata.epoch_store",
            "logdevice.metadata.log_directory",
            "logdevice.metadata.values",
        ),
        others=None,
        never=frozenset({"grpc", "sqlite3", "kazoo", "rocksdict", "pyarrow"}),
    ),
    Layer(
        path="logdevice/client/",
        # Reached over connections only: what a node keeps and how it decides is not the client's business.
        ours=modules(
            "types errors cuts knobs log_attributes settings client_settings batch tasks clock host "
            "writer_tags protocol wire client"
        ),
        others=None,
    ),
    Layer(
        path="logdevice/compaction/",
        # An application like others: it reads logs by a client, and sees entries, which nodes never do.
        ours=modules("types errors batch node_settings client compaction protocol.compaction"),
        others=None,
    ),
    Layer(
        path="logdevice/simulation/",
        ours=(
            "logdevice.types",
            "logdevice.settings",
            "logdevice.write_settings",
            "logdevice.client_settings",
            "logdevice.rebuild_settings",
            "logdevice.protocol",
            "logdevice.storage",
            "logdevice.simulation",
        ),
        others=None,
        never=frozenset({"grpc", "asyncio", "threading", "socket", "time"}),
    ),
    *(
        Layer(
            path=f"pyspark_logdevice/{module}.py",
            # Nothing that connects: only the shapes of what the client hands out.
            ours=(
                *modules(
                    "types errors cuts knobs batch client_settings "
                    "client.config client.client client.arrow_batches"
                ),
                "pyspark_logdevice",
            ),
            others=PURE | {"json", "datetime", "difflib", "numpy", "pyarrow", "pyspark"},
        )
        for module in (
            "admission",
            "chunks",
            "cutting",
            "division",
            "first_version",
            "idle_backoff",
            "lag",
            "offsets",
            "cluster_options",
            "option_values",
            "options",
            "planning",
            "pushdown",
            "rows",
            "write_options",
        )
    ),
    Layer(
        path="pyspark_logdevice/",
        # Logs are reached by the client, as by any application.
        ours=(
            *modules("types errors cuts client writer_tags cli"),
            *modules("protocol.read_stream.health wire.service_messages"),
            "pyspark_logdevice",
        ),
        others=None,
        never=frozenset({"grpc", "rocksdict", "kazoo", "sqlite3"}),
    ),
)
