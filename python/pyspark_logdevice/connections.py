"""Keeps one client for each cluster in every process: opened at first use, kept until the process ends.

Spark forks its Python workers and uses each for many tasks, so the clients are in a module, not in pickled
objects. A forked process starts without clients. `freeze_gc` also hides imported modules from the garbage
collector, which Spark runs after every task.
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

# Spark is fastest with batches of 1 to 8 MB or some thousand rows, and every batch costs time here. Bodies
# grow when they are unpacked, so the size is at the lower end.
_DELIVERY_BYTES: Final = 4 << 20
_DELIVERY_ENTRIES: Final = 32_768


_lock = threading.Lock()
_clients: dict[Hashable, Client] = {}
_modules_frozen = 0


def client(options: ClusterOptions) -> Client:
    """The client of this process for the cluster that the options name, connected at the first call."""
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
    """Excludes the objects of all imported modules from garbage collection. A worker calls it after its work.

    Spark collects garbage after every task. With a worker's modules, that takes longer than a small task.
    This is repeated if modules were imported later: pyarrow imports pandas when it makes its first array.
    """
    global _modules_frozen
    if len(sys.modules) > _modules_frozen:
        _modules_frozen = len(sys.modules)
        gc.collect()
        gc.freeze()


def _forget() -> None:
    """Drops the parent's clients in a forked child, which cannot use them."""
    global _lock
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_forget)
