"""What a scheduler has imported when it sends its first request: nothing that it may use later or never."""

import json
import subprocess
import sys

import pytest

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
# Of sidecars; of the secure port; of traces; of users with plugins; of the sandbox and of those who look on.
LATER = {
    *("grpc", "google.protobuf", "berth_plugin_proto", "berth.out_of_tree.host"),
    *("aiohttp", "cryptography", "berth.serving.endpoints"),
    *("opentelemetry", "importlib.metadata"),
    *("kubernetes", "requests", "urllib3"),
    *("rich", "berth.sandbox", "berth.operator", "berth.replay", "berth.conformance", "berth.demo"),
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The modules of a plain scheduler: one profile, the default port, no sidecars."""
    kubeconfig = tmp_path_factory.mktemp("imports") / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c"}}
    kubeconfig.write_text(
        json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "x"}), encoding="utf-8"
    )
    flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
    command = [sys.executable, "-c", UNTIL_THE_FIRST_REQUEST, *flags, "--secure-port=0"]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout))


def test_not_imported_before_the_first_request(imported):
    """What takes long to import, and a plain scheduler uses later or never, is not there yet."""
    packages = {name.rsplit(".", depth)[0] for name in imported for depth in range(name.count(".") + 1)}

    assert set() == LATER & packages


def test_imported_before_the_first_request(imported):
    """What decisions need is: the test sees a process that gets that far."""
    assert {"numpy", "berth.plugins.registry", "berth.client.reflector"} <= imported
