"""Chosen ports are free, distinct, and outside of the range for outgoing connections."""

from __future__ import annotations

import socket

import pytest

from logdevice.cli.local.ports import choose_ports, is_free
from logdevice.errors import InvalidArgumentError


def test_chosen_ports_are_free_and_distinct() -> None:
    ports = choose_ports(10)
    assert len(set(ports)) == 10
    assert all(is_free(port) for port in ports)


def test_chosen_ports_are_not_for_outgoing_connections() -> None:
    assert max(choose_ports(50)) < 32_768


def test_a_base_port_gives_the_ports_from_there_on() -> None:
    base = choose_ports(1)[0]
    assert choose_ports(1, base) == [base]


def test_a_base_port_that_is_in_use_is_refused() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(InvalidArgumentError, match=f"port {port} is in use"):
            choose_ports(1, port)


@pytest.mark.parametrize("base", [0, 65_535, 70_000])
def test_a_base_port_without_room_above_it_is_refused(base: int) -> None:
    with pytest.raises(InvalidArgumentError, match="do not fit"):
        choose_ports(2, base)
