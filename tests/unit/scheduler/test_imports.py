"""What a scheduler has imported when it sends its first request, and when it serves: nothing that it may use
later or never, as it takes time to import and memory for good.
"""

import json
import subprocess
import sys

import pytest

from berth.sandbox.free_port import free_port
from tests.suite import PATIENCE_SECONDS

UNTIL_THE_FIRST_REQUEST = """
import json, os, sys
from berth.cli.scheduler import scheduler
from berth.client.transport import Transport

async def request(self, *arguments, **options):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

Transport.request = request
scheduler.main(sys.argv[1:])
"""
UNTIL_IT_SERVES = """
import json, os, sys
from berth.cli.scheduler import scheduler
from berth.scheduler import process, secure_port
from berth.scheduler.watching import server_kinds
from berth.serving.endpoints import SecureServer

async def every_kind(transport):
    return server_kinds.EVERY_KIND

async def start(*arguments, **options):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

process.server_kinds, SecureServer.start, secure_port.SERVE_WITHIN_SECONDS = every_kind, start, 0.0
scheduler.main(sys.argv[1:])
"""
# Of decisions; of sidecars; of the secure port; of traces; of users with plugins; of others.
LATER = {
    *(
        "numpy",
        "prometheus_client",
        "berth.plugins",
        "berth.cycle",
        "berth.snapshot",
        "berth.scheduler.process",
    ),
    *("grpc", "google.protobuf", "berth_plugin_proto", "berth.out_of_tree.host"),
    *("aiohttp", "cryptography", "berth.serving.endpoints"),
    *("opentelemetry", "importlib.metadata"),
    *("kubernetes", "requests", "urllib3"),
    *("rich", "berth.sandbox", "berth.operator", "berth.replay", "berth.conformance", "berth.demo"),
}
# Of sidecars; of certificates of clients and of its own; of expressions about devices; of traces.
NOT_TO_SERVE = {
    *("grpc", "google.protobuf", "berth_plugin_proto", "berth.out_of_tree.host"),
    *("cryptography", "re2", "opentelemetry"),
}


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """A plain scheduler's: one profile, no sidecars."""
    kubeconfig = tmp_path_factory.mktemp("imports") / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c"}}
    kubeconfig.write_text(
        json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "x"}), encoding="utf-8"
    )
    return f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"


def imported(program, *flags):
    """The modules that the program says, and the packages that they are in."""
    command = [sys.executable, "-c", program, *flags]
    said = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_SECONDS).stdout
    modules = json.loads(said)
    return {name.rsplit(".", depth)[0] for name in modules for depth in range(name.count(".") + 1)}


def test_imported_before_the_first_request(flags):
    """What reads flags and files and asks, and nothing of what decides, which comes after the answer."""
    found = imported(UNTIL_THE_FIRST_REQUEST, *flags, "--secure-port=0")

    assert {"berth.client.transport", "berth.config.command_line"} <= found
    assert set() == LATER & found


def test_imported_to_serve(flags):
    """What answers requests, and nothing of what most schedulers never need."""
    found = imported(UNTIL_IT_SERVES, *flags, "--release=1.36", f"--secure-port={free_port()}")

    assert {"numpy", "aiohttp", "berth.serving.endpoints", "berth.aggregated_api.front_proxy"} <= found
    assert set() == NOT_TO_SERVE & found
