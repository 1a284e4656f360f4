"""Copysets: choice by weight and scope, sticky blocks, and nodes that are passed over for a while."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer.copysets import (
    Candidates,
    Cause,
    NodeHealth,
    StickyCopysets,
    choose_copyset,
)
from logdevice.settings import WriteSettings
from logdevice.types import Location, NodeId, Replication, nodes

FIVE = Candidates(locations=dict.fromkeys(nodes(range(5)), Location()))
THREE_COPIES = Replication.parse("3")
N0, N1, N2, N3, N4 = nodes(range(5))


def sticky(
    candidates: Candidates = FIVE,
    *,
    replication: Replication = THREE_COPIES,
    extras: int = 0,
    settings: WriteSettings | None = None,
) -> StickyCopysets:
    settings = settings or WriteSettings()
    health = NodeHealth(len(candidates.locations), settings)
    return StickyCopysets(candidates, replication, extras, health, settings, random.Random(1))


RACKS = st.lists(st.integers(0, 3), min_size=1, max_size=9)


@given(RACKS, st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 999))
def test_a_copyset_satisfies_the_replication_wherever_that_is_possible(
    racks: list[int], copies: int, rack_count: int, extras: int, seed: int
) -> None:
    """K1, K4: compared with the definition."""
    replication = Replication.parse(f"node: {max(copies, rack_count)}, rack: {rack_count}")
    locations = {NodeId(index): Location.parse(f"r.d.c.w.k{rack}") for index, rack in enumerate(racks)}
    chosen = choose_copyset(Candidates(locations=locations), replication, extras, (), random.Random(seed))
    if not can_replicate(locations, replication):
        assert chosen is None
        return
    assert chosen is not None
    assert len(set(chosen)) == len(chosen) == min(len(racks), replication.copies + extras)
    members = chosen[: replication.copies]
    assert can_replicate({node: locations[node] for node in members}, replication)


def test_any_member_may_come_first() -> None:
    """K2: the first sends to readers, so the load is spread."""
    rng = random.Random(1)
    firsts = Counter(
        copyset[0] for _ in range(500) if (copyset := choose_copyset(FIVE, THREE_COPIES, 0, (), rng))
    )
    assert min(firsts[node] for node in FIVE.locations) > 50


def test_a_heavier_node_is_chosen_more_often() -> None:
    """K1."""
    candidates = Candidates(locations=FIVE.locations, weights={N0: 8.0})
    rng = random.Random(1)
    one = Replication.parse("1")
    chosen = Counter(choose_copyset(candidates, one, 0, (), rng) for _ in range(300))
    assert chosen[N0,] > 150


def test_a_node_without_weight_and_one_to_avoid_are_not_chosen() -> None:
    """K3."""
    candidates = Candidates(locations=FIVE.locations, weights={N0: 0.0})
    rng = random.Random(1)
    for _ in range(20):
        copyset = choose_copyset(candidates, THREE_COPIES, 1, (N1,), rng)
        assert copyset is not None
        assert set(copyset) == {N2, N3, N4}
    assert choose_copyset(candidates, THREE_COPIES, 0, (N1, N2), rng) is None


def test_a_copyset_stays_until_enough_bytes_went_to_it() -> None:
    """K7."""
    copysets = sticky(settings=WriteSettings(sticky_bytes_max=100))
    block = [copysets.current(50, 0), copysets.current(50, 0)]
    assert block[0] == block[1]
    later = {copysets.current(100, 0) for _ in range(20)}
    assert len(later) > 1


def test_a_copyset_stays_until_enough_time_has_passed() -> None:
    """K7."""
    copysets = sticky(settings=WriteSettings(sticky_ms_max=100))
    first = copysets.current(1, 0)
    assert copysets.current(1, 99) == first
    assert {copysets.current(1, time_ms) for time_ms in range(100, 3000, 100)} != {first}


def test_a_failed_wave_ends_the_block_it_belonged_to() -> None:
    """K7: and no other block."""
    copysets = sticky()
    first = copysets.current(1, 0)
    assert first is not None
    copysets.has_failed(tuple(reversed(first)))
    assert copysets.current(1, 0) == first
    seen = set()
    for _ in range(20):
        current = copysets.current(1, 0)
        assert current is not None
        seen.add(current)
        copysets.has_failed(current)
    assert len(seen) > 1


def test_a_block_ends_when_a_member_becomes_unavailable() -> None:
    """K7."""
    copysets = sticky()
    first = copysets.current(1, 0)
    assert first is not None
    copysets.health.penalise(first[0], Cause.OVERLOADED, 0)
    second = copysets.current(1, 0)
    assert second is not None
    assert first[0] not in second


def test_a_penalty_lasts_as_long_as_its_cause_says() -> None:
    """K5."""
    settings = WriteSettings()
    for cause, penalty_ms in (
        (Cause.TIMEOUT, settings.slow_store_penalty_ms),
        (Cause.OVERLOADED, settings.overloaded_penalty_ms),
        (Cause.NO_SPACE, settings.no_space_penalty_ms),
        (Cause.REBUILDING, settings.rebuilding_penalty_ms),
        (Cause.UNREACHABLE, settings.unreachable_penalty_ms),
    ):
        health = NodeHealth(5, settings)
        health.penalise(N1, cause, 1000)
        assert health.avoided(1000 + penalty_ms - 1) == [N1]
        assert health.avoided(1000 + penalty_ms) == []


def test_the_longer_of_two_penalties_counts() -> None:
    """K5."""
    health = NodeHealth(5, WriteSettings())
    health.penalise(N1, Cause.REBUILDING, 0)
    health.penalise(N1, Cause.OVERLOADED, 10)
    assert health.avoided(20_000) == [N1]


def test_when_many_nodes_were_slow_all_are_forgiven() -> None:
    """K6: then the cause is not the nodes."""
    health = NodeHealth(8, WriteSettings())
    for node in (N1, N2):
        health.penalise(node, Cause.TIMEOUT, 0)
    assert health.avoided(0) == [N1, N2]
    health.penalise(N3, Cause.TIMEOUT, 0)
    assert health.avoided(0) == []


def test_a_node_that_is_back_is_forgiven() -> None:
    """K5."""
    health = NodeHealth(5, WriteSettings())
    health.penalise(N1, Cause.NO_SPACE, 0)
    health.forgive(N1)
    assert health.avoided(0) == []


def test_a_slow_node_is_taken_before_a_record_waits() -> None:
    """K4: a slow node is better than none; a node that cannot store is not used."""
    three = Candidates(locations=dict.fromkeys(nodes(range(3)), Location()))
    copysets = sticky(three, settings=WriteSettings(slow_nodes_share_max=1.0))
    copysets.health.penalise(N1, Cause.TIMEOUT, 0)
    assert sorted(copysets.current(1, 0) or ()) == [N0, N1, N2]
    copysets.health.penalise(N1, Cause.OVERLOADED, 0)
    assert copysets.current(1, 0) is None


def test_a_node_that_is_away_is_not_chosen_while_others_are_enough() -> None:
    """K9: however long it is away, and however many records have tried it before."""
    copysets = sticky(FIVE)
    first = copysets.current(1, 0)
    assert first is not None
    copysets.health.away = frozenset(first[:2])
    for now_ms in range(0, 10_000_000, 100_000):
        assert copysets.health.away.isdisjoint(copysets.current(1, now_ms) or first)
    copysets.health.away = frozenset(first)
    assert len(copysets.current(1, 0) or ()) == 3


def test_full_disks_are_distinguished_from_other_reasons() -> None:
    """K8."""
    three = Candidates(locations=dict.fromkeys(nodes(range(3)), Location()))
    copysets = sticky(three)
    assert not copysets.is_out_of_space(0)
    copysets.health.penalise(N1, Cause.REBUILDING, 0)
    assert not copysets.is_out_of_space(0)
    copysets.health.penalise(N1, Cause.NO_SPACE, 0)
    assert copysets.is_out_of_space(0)
    five = sticky()
    five.health.penalise(N1, Cause.NO_SPACE, 0)
    assert not five.is_out_of_space(0)
