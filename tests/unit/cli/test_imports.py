"""What a program does without at its start: modules that cost each of them CPU and memory, and few need."""

import pytest

from tests.benchmarks.imports import PROGRAMS, ROOT, python

NEVER_AT_FIRST = {
    "aiohttp",
    "cryptography",
    "google.protobuf",
    "grpc",
    "highspy",
    "kubernetes",
    "opentelemetry",
}
OF_A_SCHEDULER = {"numpy", "prometheus_client", "berth.cycle", "berth.plugins", "berth.snapshot"}
OF_SERVING = {"berth.sandbox", "berth.simulation", "berth.descheduling", "berth.operator", "berth.testing"}
OF_SIDECARS = {"berth.out_of_tree.connections.connection", "berth.out_of_tree.host", "berth_plugin_proto"}
UNUSED_SO_FAR = {
    "berth --version": NEVER_AT_FIRST | OF_A_SCHEDULER | OF_SERVING | {"asyncio", "berth.client", "yaml"},
    "berth explain": NEVER_AT_FIRST | OF_A_SCHEDULER | OF_SERVING,
    "berth scheduler, to its process": NEVER_AT_FIRST | OF_SERVING | OF_SIDECARS | {"numpy.ma", "uvloop"},
    "berth sandbox": {"aiohttp", "berth.cycle", "berth.plugins", "grpc", "opentelemetry"},
    "a plugin of the Python SDK": {"berth", "opentelemetry.exporter", "aiohttp", "cryptography", "yaml"},
}


@pytest.mark.parametrize("program", UNUSED_SO_FAR)
def test_a_start_imports_no_more_than_it_needs(program):
    """In a fresh process; what is imported later, where it is needed, stands within functions."""
    modules = python(f"{PROGRAMS[program]}; import sys; print(*sys.modules)", ROOT).split()

    assert not UNUSED_SO_FAR[program] & set(modules)
