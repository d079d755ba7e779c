"""A port for a server that cannot choose its own."""

import itertools
import random
import runpy
import socket

import pytest

from berth.sandbox import free_port as module
from berth.sandbox.free_port import LOOPBACK, PORTS, free_port


def test_another_each_time():
    """A port is not given again while others are left, and is none of those of outgoing connections."""
    given = [free_port() for _ in range(100)]

    assert 100 == len(set(given))
    assert all(port in PORTS for port in given)


def test_used_ones_are_passed_over(monkeypatch):
    """A port that has a listener is not given."""
    used = free_port()
    free = free_port()
    monkeypatch.setattr(module, "_UNTRIED", itertools.cycle([used, free]))

    with socket.create_server((LOOPBACK, used)):
        assert [free, free] == [free_port(), free_port()]


def test_none_left(monkeypatch):
    """Where every port is used, the error says which were tried."""
    used = free_port()
    monkeypatch.setattr(module, "_UNTRIED", itertools.cycle([used]))

    with (
        socket.create_server((LOOPBACK, used)),
        pytest.raises(OSError, match=r"every port of 127\.0\.0\.1 from 20000"),
    ):
        free_port()


def test_processes_that_are_seeded_alike_try_ports_in_another_order():
    """Workers of a test run share a seed; with one order, two servers at a time would get the same port."""

    def first_ports():
        random.seed(1)
        give = runpy.run_path(module.__file__)["free_port"]
        return [give() for _ in range(3)]

    assert first_ports() != first_ports()
