"""Opens the epoch store that an address names: the only module that knows all backends."""

from __future__ import annotations

from logdevice.metadata.addresses import SqliteAddress, parse_address
from logdevice.metadata.epoch_store import EpochStore
from logdevice.metadata.sqlite_epoch_store import SqliteEpochStore
from logdevice.metadata.zookeeper_epoch_store import ZookeeperEpochStore
from logdevice.settings import MetadataSettings


async def open_epoch_store(address: str, settings: MetadataSettings) -> EpochStore:
    """The epoch store at `address`, opened.

    The address is `sqlite:PATH` or `zookeeper://[USER:PASSWORD@]HOST:PORT,.../ROOT`. Raises
    InvalidArgumentError for any other address, and MetadataUnavailableError if the store cannot be reached.
    """
    parsed = parse_address(address)
    if isinstance(parsed, SqliteAddress):
        return await SqliteEpochStore.open(parsed.path, settings)
    return await ZookeeperEpochStore.open(parsed, settings)
