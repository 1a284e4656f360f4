"""Plays every scenario and compares transcripts. `pytest --rewrite` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from logdevice.protocol.cluster.tests.routing_world import RoutingWorld
from logdevice.protocol.metadata_log.tests.metadata_world import MetadataWorld
from logdevice.protocol.read_stream.tests.reader_world import ReaderWorld
from logdevice.protocol.rebuilding.tests.donor_world import DonorWorld
from logdevice.protocol.sequencer.tests.append_world import AppendWorld
from logdevice.protocol.tests.scenario import Arguments, Handler, World, play
from logdevice.protocol.tests.scenario_worlds import CopiesWorld, NodeWorld, VotesWorld

SCENARIOS = Path(__file__).parent / "scenarios"
# The world of each file.
WORLDS: dict[str, type[World]] = {
    "appender_stages": AppendWorld,
    "donor": DonorWorld,
    "f_majority": VotesWorld,
    "local_scd": CopiesWorld,
    "metadata_log": MetadataWorld,
    "primary_recipient": CopiesWorld,
    "rack_majority": ReaderWorld,
    "redirects": RoutingWorld,
    "scd_all_send_all_and_back": ReaderWorld,
    "scd_node_dies": ReaderWorld,
    "server_stream": NodeWorld,
    "seven_nodes_one_rebuilt": ReaderWorld,
    "sliding_window": ReaderWorld,
    "stalled_at_52": ReaderWorld,
}


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_the_scenario_plays_as_written(name: str, rewrite: bool) -> None:
    path = SCENARIOS / f"{name}.txt"
    expected = path.read_text(encoding="utf-8")
    played = play(expected, WORLDS[name]())
    if rewrite:
        path.write_text(played, encoding="utf-8")
    else:
        assert played.splitlines() == expected.splitlines()


def test_every_scenario_has_a_world() -> None:
    assert sorted(path.stem for path in SCENARIOS.iterdir()) == sorted(WORLDS)


class EchoWorld:
    """Prints the argument of its command."""

    def commands(self) -> Mapping[str, Handler]:
        return {"say": self.say}

    def say(self, arguments: Arguments) -> Iterator[str]:
        yield arguments.text("what")


def test_what_was_printed_takes_the_place_of_what_was_expected() -> None:
    text = "# A comment.\nsay what=one\nsay what=two\n----\nthree\n\nsay what=four\n----\n"
    played = "# A comment.\nsay what=one\nsay what=two\n----\none\ntwo\n\nsay what=four\n----\nfour\n"
    assert play(text, EchoWorld()) == played
    assert play(played, EchoWorld()) == played


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("sing what=one", "unknown command 'sing'; the commands are say"),
        ("say one", "arguments are name=value"),
        ("say", "the command needs what="),
        ("say what=one loudly=yes", "unknown arguments: loudly"),
        ("say what=one", "but no ---- follows it"),
    ],
)
def test_a_mistake_in_a_scenario_is_named(line: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        play(line, EchoWorld())
