"""Which distribution has the packages that a scheduler does without, named where a command lacks one."""

from collections.abc import Iterator
from contextlib import contextmanager

import berth
from berth.cli.failing import fail

DISTRIBUTIONS = {
    "berth.conformance": "berth-conformance",
    "berth.demo": "berth-sandbox",
    "berth.descheduling": "berth-sandbox",
    "berth.observer": "berth-sandbox",
    "berth.operator": "berth-operator",
    "berth.replay": "berth-conformance",
    "berth.sandbox": "berth-sandbox",
    "berth.simulation": "berth-sandbox",
    "berth.simulation_service": "berth-sandbox",
}
"""Packages outside of berth-scheduler, by the distribution to install."""


@contextmanager
def named_where_absent() -> Iterator[None]:
    """End the program with the distribution to install where a package of another distribution is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = ".".join((error.name or "").split(".")[:2])
        if package not in DISTRIBUTIONS:
            raise
        lacking = f"{DISTRIBUTIONS[package]}=={berth.__version__}"
        fail(f"{package} is not installed; it is in {DISTRIBUTIONS[package]}: pip install {lacking}")
