"""The settings: one frozen class for each component.

What is made by `setting(...)` is public: flags and docs/settings.md are derived from it, and wrong values are
refused. The plain fields are for tuning: tests and the simulator vary them, and there is one line on why each
has its value. How that works is in `declarations.py`. Times are in milliseconds, sizes in bytes.
"""

from logdevice.settings.client import ClientSettings
from logdevice.settings.declarations import Settings
from logdevice.settings.node import NodeSettings
from logdevice.settings.reading import NodeReadSettings, ReadStreamSettings
from logdevice.settings.rebuilding import RebuildSettings
from logdevice.settings.storage import MetadataSettings, StorageSettings
from logdevice.settings.wire import BatchSettings, WireSettings
from logdevice.settings.writing import ChainSettings, RecoverySettings, WriteSettings

__all__ = [
    "BatchSettings",
    "ChainSettings",
    "ClientSettings",
    "MetadataSettings",
    "NodeReadSettings",
    "NodeSettings",
    "ReadStreamSettings",
    "RebuildSettings",
    "RecoverySettings",
    "Settings",
    "StorageSettings",
    "WireSettings",
    "WriteSettings",
]
