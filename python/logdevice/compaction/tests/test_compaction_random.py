"""Keyed logs under crashes, missed orders, lost disks and moved copies: the newest of every key is there."""

from __future__ import annotations

import asyncio

import pytest

from logdevice.compaction import run as compaction_run
from logdevice.compaction.newest import Newest
from logdevice.compaction.tests.keyed_world import KeyedWorld
from logdevice.errors import LogDeviceError
from logdevice.protocol import compaction
from logdevice.storage import memory_log_store
from logdevice.types import Record

SEEDS = 60
STEPS = 60


def runs(seeds: int = SEEDS) -> list[KeyedWorld]:
    worlds = [KeyedWorld(seed) for seed in range(seeds)]
    for world in worlds:
        asyncio.run(world.run(STEPS))
    return worlds


def is_noticed() -> bool:
    """Whether some run of those with a broken rule fails."""
    try:
        runs(3 * SEEDS)
    except (AssertionError, KeyError, LogDeviceError):
        return True
    return False


def test_the_newest_of_every_key_is_there_whatever_happens() -> None:
    """K21, K23, K28, K30 to K32; and all of it happens in these runs."""
    worlds = runs()
    assert sum(world.purged for world in worlds) > 20
    assert sum(world.consumer.rebuilds for world in worlds) > 5


def test_dropping_the_newest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K30."""
    usual = Newest.superseded
    monkeypatch.setattr(Newest, "superseded", lambda self: usual(self) + self.records[-1:].tolist())
    assert is_noticed()


def test_removing_deletions_that_not_everybody_confirmed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K32: an older entry that a node still has comes back to life."""

    async def drop(self: compaction_run.Compaction, spans: object, marks: object) -> None:
        await self._client.drop(self._log, spans, marks)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction_run.Compaction, "_drop", drop)
    assert is_noticed()


def test_removing_deletions_while_copies_are_on_their_way_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K32: what is being restored may be what was not dropped."""

    async def world(self: compaction_run.Compaction) -> compaction_run._World:
        return compaction_run._World(1, 1, True)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction_run.Compaction, "_world", world)
    assert is_noticed()


def test_forgetting_what_was_dropped_before_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K31: a node that was away then still has it."""

    class Forgetful(dict[object, object]):
        def setdefault(self, key: object, default: object = None) -> object:
            return []

    usual = compaction_run.Compaction.__init__

    def begin(self: compaction_run.Compaction, *arguments: object, **options: object) -> None:
        usual(self, *arguments, **options)  # type: ignore[arg-type]
        self._earlier = Forgetful()  # type: ignore[assignment]

    monkeypatch.setattr(compaction_run.Compaction, "__init__", begin)
    assert is_noticed()


def test_taking_over_what_others_say_about_bodies_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K23."""
    monkeypatch.setattr(memory_log_store, "amended_flags", lambda held, amended: amended)
    assert is_noticed()


def test_not_saying_that_deletions_are_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K28: a consumer that is behind keeps what was deleted."""
    usual = compaction.dropped

    def dropped(record: Record, marks: compaction.Marks) -> Record | None:
        return usual(record, compaction.Marks(marks.superseded_end, compaction.NO_MARKS.purged_end))

    monkeypatch.setattr("logdevice.protocol.log_drops.dropped", dropped)
    assert is_noticed()
