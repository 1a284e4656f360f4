from __future__ import annotations

import asyncio
import gc

import pytest

from logdevice.runtime.tasks import Tasks


def test_work_goes_on_although_its_owner_does_not_hold_it() -> None:
    async def scene() -> None:
        tasks, done = Tasks(), asyncio.Event()

        async def work() -> None:
            await asyncio.sleep(0.01)
            done.set()

        tasks.start(work())
        gc.collect()
        await asyncio.wait_for(done.wait(), 5)

    asyncio.run(scene())


def test_stopping_ends_what_runs_and_waits_for_it() -> None:
    async def scene() -> None:
        tasks, ended = Tasks(), []

        async def work(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(name)

        tasks.start(work("started"))
        tasks.keep(asyncio.create_task(work("kept")))
        await asyncio.sleep(0)
        await tasks.stop()
        assert sorted(ended) == ["kept", "started"]

    asyncio.run(scene())


def test_a_failed_task_does_not_fail_the_stop() -> None:
    async def scene() -> None:
        tasks = Tasks()

        async def fail() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("at the end") from None

        tasks.start(fail())
        await asyncio.sleep(0)
        await tasks.stop()

    asyncio.run(scene())


@pytest.mark.filterwarnings("error")
def test_after_the_stop_nothing_is_started() -> None:
    async def scene() -> None:
        tasks, began = Tasks(), []

        async def work() -> None:
            began.append(True)

        await tasks.stop()
        tasks.start(work())
        await asyncio.sleep(0)
        gc.collect()
        assert not began

    asyncio.run(scene())


def test_tasks_can_be_waited_for_without_cancelling_them() -> None:
    async def scene() -> None:
        tasks, done = Tasks(), []

        async def work() -> None:
            await asyncio.sleep(0.01)
            done.append(True)

        tasks.start(work())
        await tasks.ended()
        assert done

    asyncio.run(scene())
