"""Cuts with real processes: never an effect without its cause, under load and when nodes die.

LOGDEVICE_CUTS=10000 takes that many cuts, as `make soak-cuts` does.
"""

from __future__ import annotations

import asyncio
import os
import random
from bisect import bisect_left
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pytest

from integration_tests.cluster import Cluster
from integration_tests.command_line import CommandLine
from logdevice.client import AsyncClient, LogItem, Passed, RecordsBatch
from logdevice.cuts import Cut, CutKind
from logdevice.errors import LogDeviceError
from logdevice.types import Lsn

CUTS = int(os.environ.get("LOGDEVICE_CUTS", "300"))
AHEAD_MS = 3_000  # nodes on one machine share a clock, so some causes get a later time instead
SETTINGS = {"append_timeout_ms": 30_000}


@dataclass
class Traffic:
    """Causes are appended to one log. Readers of a cause append its effect to another log."""

    causes_log: str
    effects_log: str
    effects: list[tuple[Lsn, Lsn]] = field(default_factory=list)  # each with its cause
    known: tuple[Lsn, Lsn] = (Lsn(0), Lsn(0))  # the last acknowledged cause and effect
    is_over: bool = False

    async def write_causes(self, client: AsyncClient, name: str) -> None:
        number = 0
        while not self.is_over:
            if random.random() < 0.1:
                client.saw(client.clock_ms + random.randrange(10))
            payload = f"{name}-{number}".encode()
            cause = await client.append(self.causes_log, payload)
            self.known = max(self.known[0], cause), self.known[1]
            number += 1

    async def write_effects(self, client: AsyncClient) -> None:
        async with client.read(self.causes_log, follow=True) as reader:
            while not self.is_over:
                try:
                    item = await reader.next(100)
                except TimeoutError:
                    continue
                if isinstance(item, RecordsBatch):
                    cause = list(item.entries())[-1]
                    effect = await client.append(self.effects_log, cause.payload)
                    self.effects.append((effect, cause.lsn))
                    self.known = self.known[0], max(self.known[1], effect)

    def wrong(self, cuts: list[Cut]) -> list[Cut]:
        """The cuts that have an effect without its cause."""
        effects, causes = zip(*sorted(self.effects), strict=True)
        newest = list(accumulate(causes, max))  # the newest cause of all effects up to one

        def is_wrong(cut: Cut) -> bool:
            ends = {end.path: end.end for end in cut.ends}
            inside = bisect_left(effects, ends[self.effects_log])
            return inside > 0 and newest[inside - 1] >= ends[self.causes_log]

        return [cut for cut in cuts if is_wrong(cut)]


async def take_cuts(client: AsyncClient, traffic: Traffic, count: int) -> list[Cut]:
    cuts = []
    for number in range(count):
        known = traffic.known
        kind = CutKind.CONSISTENT if number % 10 else CutKind.FRESH
        cut = await client.barrier([traffic.causes_log, traffic.effects_log], kind)
        assert all(end.end > lsn for end, lsn in zip(cut.ends, known, strict=True)), "all acknowledged"
        cuts.append(cut)
    return cuts


Work = Callable[[AsyncClient, Traffic], Coroutine[Any, Any, None]]


def run_traffic(cluster: Cluster, log: str, work: Work) -> Traffic:
    traffic = Traffic(f"{log}/causes", f"{log}/effects")

    async def everything() -> None:
        clients = [AsyncClient(cluster.endpoint, settings=SETTINGS) for _ in range(4)]
        one, other, third, taker = clients
        for path in (traffic.causes_log, traffic.effects_log):
            await one.create_log(path)
        await one.append(traffic.causes_log, b"first")
        one.saw(one.clock_ms + AHEAD_MS)
        jobs = [
            traffic.write_causes(one, "a"),
            traffic.write_causes(one, "b"),
            traffic.write_causes(other, "c"),
            traffic.write_effects(third),
        ]
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            await work(taker, traffic)
        finally:
            traffic.is_over = True
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(client.close() for client in clients))
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, LogDeviceError):
                raise result

    asyncio.run(everything())
    return traffic


def test_no_effect_without_its_cause(cluster: Cluster, log: str) -> None:
    cuts: list[Cut] = []

    async def work(client: AsyncClient, traffic: Traffic) -> None:
        cuts.extend(await take_cuts(client, traffic, CUTS))

    traffic = run_traffic(cluster, log, work)
    consistent = [cut for cut in cuts if cut.kind is CutKind.CONSISTENT]
    assert len(traffic.effects) > 10, "too few effects for the test to mean anything"
    assert traffic.wrong(consistent) == []
    times = [cut.time_ms for cut in consistent]
    assert times == sorted(times)


def test_cuts_go_on_when_a_sequencer_dies(cluster: Cluster, log: str) -> None:
    cuts: list[Cut] = []

    async def work(client: AsyncClient, traffic: Traffic) -> None:
        cuts.extend(await take_cuts(client, traffic, 10))
        victim = await client.sequencer(traffic.causes_log)
        assert victim is not None
        cluster.kill(victim)
        cuts.extend(await take_cuts(client, traffic, 10))

    traffic = run_traffic(cluster, log, work)
    epochs = {end.end.epoch for cut in cuts for end in cut.ends if end.path == traffic.causes_log}
    assert len(epochs) > 1
    consistent = [cut for cut in cuts if cut.kind is CutKind.CONSISTENT]
    assert traffic.wrong(consistent) == []


def test_a_reader_gets_cookies_back_over_a_failover(cluster: Cluster, log: str) -> None:
    passed: list[str] = []

    async def work(client: AsyncClient, traffic: Traffic) -> None:
        paths = [traffic.causes_log, traffic.effects_log]
        async with await client.read_logs(paths, follow=True) as reader:
            for number in range(6):
                reader.expect(await client.barrier(paths, cookie=str(number)))
                if number == 3:
                    victim = await client.sequencer(traffic.causes_log)
                    assert victim is not None
                    cluster.kill(victim)
            while len(passed) < 6:
                found = await reader.next(60_000)
                if isinstance(found, Passed):
                    passed.append(found.cut.cookie)
                    assert all(end.end <= reader.positions[end.log] for end in found.cut.ends)
                else:
                    assert isinstance(found, LogItem)

    run_traffic(cluster, log, work)
    assert passed == ["0", "1", "2", "3", "4", "5"]


def test_cuts_on_the_command_line(
    cluster: Cluster, log: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    logdevice = CommandLine(cluster, capfdbinary)
    logs = [f"{log}/a", f"{log}/b"]
    for path in logs:
        logdevice.done("logs", "create", path)
    [made] = logdevice.done("cuts", "create", "nightly.1", *logs, "--json").objects
    assert list(made["logs"]) == logs
    assert logdevice.done("cuts", "show", "nightly.1", "--json").objects == [made]
    assert made in logdevice.done("cuts", "list", "--json").objects
    assert b"nightly.1" in logdevice.done("cuts", "list").out
    assert logdevice("cuts", "create", "nightly.1", *logs, "--kind", "fresh").code == 2
    logdevice.done("cuts", "remove", "nightly.1")
    assert logdevice("cuts", "show", "nightly.1").code == 2
