"""A process that takes epochs of one log as fast as it can: python epoch_racer.py ADDRESS OWNER ROUNDS

It prints each epoch as soon as it has it, so that a test that kills it knows which epochs it was given.
"""

from __future__ import annotations

import asyncio
import sys

from logdevice.errors import ConflictError
from logdevice.metadata.opening import open_epoch_store
from logdevice.metadata.tests.values_for_tests import LOG, epochs
from logdevice.metadata.values import ABSENT
from logdevice.settings import MetadataSettings


async def race(address: str, owner: int, rounds: int) -> None:
    async with await open_epoch_store(address, MetadataSettings(sqlite_busy_timeout_ms=60_000)) as store:
        while rounds:
            found = await store.read(LOG)
            epoch = found.value.epoch + 1 if found else 1
            try:
                await store.write(LOG, epochs(epoch, owner=owner), found.version if found else ABSENT)
            except ConflictError:
                continue
            sys.stdout.write(f"{epoch}\n")
            sys.stdout.flush()
            rounds -= 1


if __name__ == "__main__":
    asyncio.run(race(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
