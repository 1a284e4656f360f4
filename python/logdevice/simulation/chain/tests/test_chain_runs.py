"""Runs of a cluster with a chain log: no promise is broken, a seed gives the same run, faults occur."""

from __future__ import annotations

import hashlib

import pytest

from logdevice.protocol.messages.chain import ChainRead
from logdevice.simulation.__main__ import main
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.run import simulate_chain
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.cluster.ledger import Ledger
from logdevice.simulation.reading.oracle import LOG
from logdevice.simulation.world import World
from logdevice.types import Epoch, Location, Lsn, NodeId, Record, RecordFlags

SEEDS = range(15)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_no_promise_is_broken(seed: int) -> None:
    # P1 to P25 hold together: what is acknowledged stays, positions are decided once, readers agree.
    outcome = simulate_chain(seed)
    assert outcome.violations == (), f"replay with: make sim CHAIN=1 SEED={seed}"
    assert outcome.events > 0


def test_the_fixed_seeds_see_deaths_of_clients_wrong_suspicions_holes_and_short_chains() -> None:
    # A simulator without faults proves nothing.
    lines: list[str] = []
    for seed in range(15):
        simulate_chain(seed, lines)
    text = "\n".join(lines)
    for sign in ("dies", "for dead", "boots", "recovers the epochs after", "gets HOLE", "has to purge"):
        assert sign in text, f"{sign!r} never happened"
    assert "replication=Replication(factors=((<Scope.NODE: 0>, 1)" in text, "no chain was ever of one node"


def test_the_same_seed_is_the_same_run() -> None:
    def trace_hash() -> str:
        trace: list[str] = []
        simulate_chain(3, trace)
        return hashlib.sha256("\n".join(trace).encode()).hexdigest()

    assert trace_hash() == trace_hash()
    assert simulate_chain(3, []) == simulate_chain(3)


def test_plans_differ_in_the_settings_of_chains() -> None:
    plans = [ChainPlan.draw(seed) for seed in range(40)]
    assert {plan.chain.chains for plan in plans} == {1, 2, 3}
    assert {plan.chain.min_copies for plan in plans} == {1, 2}


def witness() -> ChainWitness:
    return ChainWitness(Ledger({NodeId(0): Location()}), World(0))


def record(body: bytes, flags: int = 0) -> Record:
    return Record(Lsn.of(1, 3), timestamp_ms=0, copyset=(), body=body, flags=flags)


def test_a_position_that_is_decided_twice_is_noticed() -> None:
    watching = witness()
    assert watching.decided_twice(record(b"one")) is None
    assert watching.decided_twice(record(b"one")) is None
    assert watching.decided_twice(record(b"", RecordFlags.HOLE)) is not None


def test_a_write_to_a_position_that_was_not_given_out_is_noticed() -> None:
    watching = witness()
    assert watching.filled_too_far(record(b"one")) is not None
    watching.sending(ChainRead(LOG, Lsn.of(1, 3)))
    assert watching.filled_too_far(record(b"one")) is None
    assert watching.issued == {Epoch(1): Lsn.of(1, 3)}


def test_the_command_line_knows_chains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--chain", "--seeds", "2", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" events, 0 violations")
