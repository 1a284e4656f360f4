"""Who may import whom: the layers of the project, from the plainest nouns up. `test_architecture.py` checks
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
    """What the modules under a path may import; the first layer that fits a module applies to it."""

    path: str | tuple[str, ...]
    ours: tuple[str, ...]  # modules of this project
    others: frozenset[str] | None = PURE  # None: anything but `never`
    never: frozenset[str] = frozenset()


def modules(names: str) -> tuple[str, ...]:
    return tuple(f"logdevice.{name}" for name in names.split())


LAYERS = (
    # The nouns.
    Layer(path="logdevice/types.py", ours=()),
    Layer(path="logdevice/errors.py", ours=("logdevice.types",)),
    Layer(path="logdevice/cuts.py", ours=modules("types errors")),
    Layer(path="logdevice/log_attributes.py", ours=modules("types errors settings.declarations")),
    Layer(path="logdevice/settings/retired.py", ours=()),
    Layer(
        path="logdevice/settings/declarations.py",
        ours=modules("errors settings.retired"),
        others=PURE | {"difflib"},
    ),
    Layer(path="logdevice/settings/", ours=("logdevice.settings",)),
    # A record as bytes.
    Layer(path="logdevice/records/stored.py", ours=()),
    Layer(
        path="logdevice/records/record_header.py",
        ours=modules("types errors records.stored"),
        others=PURE | {"crc32c"},
    ),
    Layer(
        path="logdevice/records/forms.py",
        ours=modules("types errors records.record_header records.stored"),
        others=PURE | {"types", "msgpack"},
    ),
    Layer(
        path="logdevice/records/writer_tags.py",
        ours=modules("types errors"),
        others=PURE | {"hashlib"},
    ),
    Layer(
        path="logdevice/records/batch.py",
        ours=modules("errors settings"),
        others=PURE | {"pyarrow"},
    ),
    Layer(path="logdevice/records/__init__.py", ours=()),
    # The machines.
    Layer(
        path="logdevice/protocol/messages/service.py",
        ours=modules("types cuts protocol.io protocol.lineage protocol.rebuilding.node_status"),
    ),
    Layer(path="logdevice/protocol/", ours=modules("types records.forms settings protocol")),
    # What runs a machine.
    Layer(path="logdevice/runtime/tasks.py", ours=(), others=PURE | {"asyncio"}),
    Layer(path="logdevice/runtime/clock.py", ours=(), others=PURE | {"asyncio", "time"}),
    Layer(
        path="logdevice/runtime/host.py",
        ours=modules("types errors runtime.clock protocol.io protocol.timers"),
        others=PURE | {"asyncio"},
    ),
    Layer(path="logdevice/runtime/__init__.py", ours=()),
    # Disks, the epoch store, the wire.
    Layer(
        path="logdevice/storage/",
        ours=(
            *modules("types errors settings records.record_header records.stored storage"),
            # What machines ask of a store; no machine.
            *modules("protocol.log_state.store_read protocol.log_state.store_write"),
        ),
        others=None,
    ),
    Layer(
        path="logdevice/wire/",
        ours=(
            *modules("types errors settings records.stored records.forms"),
            *modules("runtime.tasks wire"),
            # The messages; who sends them, and when, is not the wire's business.
            *modules("protocol.messages protocol.metadata_log.entries protocol.io"),
        ),
        others=None,
    ),
    Layer(
        path=("logdevice/metadata/log_directory.py", "logdevice/metadata/values.py"),
        ours=modules("types errors settings.declarations log_attributes"),
        others=PURE | {"difflib"},
    ),
    Layer(
        path="logdevice/metadata/",
        ours=(
            *modules("types errors cuts records.forms settings metadata"),
            # The values that the epoch store keeps for the protocol, which computes them.
            *modules("protocol.sequencer.epoch_state protocol.lineage protocol.rebuilding.node_status"),
        ),
        others=None,
    ),
    # The processes.
    Layer(path="logdevice/node/assembly.py", ours=("logdevice",), others=None),
    Layer(
        path="logdevice/node/",
        ours=(
            *modules("types errors settings log_attributes runtime records.writer_tags"),
            *modules("protocol wire node"),
            # What a store and an epoch store promise; only the assembly knows which ones they are.
            *modules("storage.log_store metadata.addresses metadata.epoch_store"),
            *modules("metadata.log_directory metadata.values"),
        ),
        others=None,
        never=frozenset({"grpc", "sqlite3", "kazoo", "rocksdict", "pyarrow"}),
    ),
    Layer(
        path="logdevice/client/",
        # It reaches nodes over connections only: what a node keeps and decides is not its business.
        ours=(
            *modules("types errors cuts settings log_attributes records.batch records.writer_tags"),
            *modules("runtime protocol wire client"),
        ),
        others=None,
    ),
    Layer(
        path="logdevice/compaction/",
        # An application like others: it reads logs by a client, and sees entries, which nodes never do.
        ours=modules("types errors records.batch settings client compaction protocol.dropped_record"),
        others=None,
    ),
    Layer(
        path="logdevice/simulation/",
        ours=modules("types settings protocol storage simulation"),
        others=None,
        never=frozenset({"grpc", "asyncio", "threading", "socket", "time"}),
    ),
    Layer(path="logdevice/cli/commands/etl.py", ours=("logdevice", "pyspark_logdevice"), others=None),
    Layer(
        path="logdevice/cli/",
        # Nodes are started as processes. Spark is imported by the one command that runs it.
        ours=(*modules("types errors cuts settings records.batch client cli bench protocol wire"),),
        others=None,
        never=frozenset({"grpc", "sqlite3", "kazoo", "rocksdict"}),
    ),
    Layer(
        path="logdevice/__init__.py", ours=modules("types errors cuts client"), others=PURE | {"importlib"}
    ),
    # What Spark sees.
    Layer(
        path=(
            "pyspark_logdevice/options/",
            "pyspark_logdevice/plan/admission.py",
            "pyspark_logdevice/plan/consistent_batches.py",
            "pyspark_logdevice/plan/division.py",
            "pyspark_logdevice/plan/first_version.py",
            "pyspark_logdevice/plan/idle_backoff.py",
            "pyspark_logdevice/plan/lag.py",
            "pyspark_logdevice/plan/offsets.py",
            "pyspark_logdevice/plan/pushdown.py",
            "pyspark_logdevice/plan/tasks.py",
            "pyspark_logdevice/read/rows.py",
            "pyspark_logdevice/write/chunks.py",
        ),
        # Nothing that connects: only the shapes of what the client hands out.
        ours=(
            *modules("types errors cuts settings records.batch"),
            *modules("client.config client.client client.read.arrow_batches"),
            "pyspark_logdevice",
        ),
        others=PURE | {"json", "datetime", "difflib", "numpy", "pyarrow", "pyspark"},
    ),
    Layer(
        path="pyspark_logdevice/",
        # Logs are reached by the client, as by any application.
        ours=(
            *modules("types errors cuts client records.writer_tags"),
            *modules("protocol.read_stream.health protocol.messages.service"),
            "pyspark_logdevice",
        ),
        others=None,
        never=frozenset({"grpc", "rocksdict", "kazoo", "sqlite3"}),
    ),
    # What measures and guards all of it.
    Layer(path="logdevice/bench/", ours=("logdevice", "pyspark_logdevice"), others=None),
    Layer(path="tools/", ours=("logdevice", "pyspark_logdevice"), others=None),
)
