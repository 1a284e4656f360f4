"""Clients, one for each process and cluster: opened when they are first needed, kept as long as the process.

Spark forks its Python workers and uses each for many tasks, so connections live in a module, not in what is
pickled; a process that was forked starts with none. Kept too: everything that was imported, out of the way of
the garbage collector, which Spark runs after every task.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Hashable
from dataclasses import replace
from typing import Final

from logdevice.client.blocking import Client
from logdevice.client.config import ClientConfig
from pyspark_logdevice.options.cluster import ClusterOptions

# Between 1 and 8 MB, or some thousand rows, is what Spark takes fastest, and every batch has its price here;
# but bodies grow when they are unpacked.
_DELIVERY_BYTES: Final = 4 << 20
_DELIVERY_ENTRIES: Final = 32_768


_lock = threading.Lock()
_clients: dict[Hashable, Client] = {}
_modules_frozen = 0


def client(options: ClusterOptions) -> Client:
    """The client of this process for the cluster that the options name."""
    settings = options.client_settings()
    key = (os.getpid(), options.endpoint, options.cluster, options.location, *settings.items())
    with _lock:
        if key not in _clients:
            config = ClientConfig.of(
                options.endpoint,
                cluster=options.cluster,
                location=options.location,
                settings={"delivery_bytes": _DELIVERY_BYTES, **settings},
            )
            own = replace(config.client, delivery_entries=_DELIVERY_ENTRIES)
            _clients[key] = Client(replace(config, client=own))
        return _clients[key]


def freeze_gc() -> None:
    """In a worker, after its work: what modules made stays, so that the garbage collector passes it over.

    Spark collects garbage after every task; over the modules of a worker that takes longer than a small task.
    Modules are imported late, too: pyarrow imports pandas for the first array that it makes.
    """
    global _modules_frozen
    if len(sys.modules) > _modules_frozen:
        _modules_frozen = len(sys.modules)
        gc.collect()
        gc.freeze()


def _forget() -> None:
    """In a child: what the parent had connected is of no use here."""
    global _lock
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_forget)
