"""`berth record` follows a cluster as a process of its own, and what was bound there is decided again."""

import asyncio
import json
import signal
import sys

import pytest

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.config.loading import load
from berth.demo.submission import create_all
from berth.observer.replay import replay_observed
from berth.sandbox import SandboxOptions, serve
from berth.simulation.reading.packed_lines import unpacked
from tests.e2e.observed_cluster import observed
from tests.kube_scheduler import EITHER
from tests.unit.observer.kit import a_node, a_pod
from tests.unit.scheduler_at_work import eventually

pytestmark = pytest.mark.e2e

BERTH = (sys.executable, "-m", "berth.cli")


async def bind(api, name, node):
    """What another scheduler does: `name` gets a node."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": "default"},
        "target": {"kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    await api.call("POST", path, json.dumps(body).encode())


def written(folder):
    """The text of the files so far, as far as it is on the disk."""
    text = b""
    for path in folder.glob("*"):
        with path.open("rb") as file:
            text += b"".join(unpacked(file))
    return text


async def test_what_was_bound_in_a_recorded_cluster_is_compared(tmp_path):
    recordings, kubeconfig = tmp_path / "recordings", tmp_path / "kubeconfig"
    async with await serve(SandboxOptions(kubelets=False)) as sandbox:
        sandbox.write_kubeconfig(kubeconfig)
        transport = Transport(load_endpoint(master=sandbox.url))
        api = Api(transport)
        await create_all(api, [a_node("small", cpu="2"), a_node("large", cpu="64")])
        command = (*BERTH, "record", recordings, "--kubeconfig", kubeconfig)
        recorder = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        try:
            await eventually(lambda: recorder.returncode is not None or list(recordings.glob("*")))
            await create_all(api, [a_pod("p"), a_pod("q")])
            await bind(api, "p", "large")
            await bind(api, "q", "small")
            await eventually(lambda: written(recordings).count(b'"nodeName"') >= 2)
        finally:
            recorder.send_signal(signal.SIGTERM)
            _, said = await recorder.communicate()
            await transport.aclose()
    (file,) = recordings.iterdir()
    assert recorder.returncode == 0
    assert said.decode() == f"4 events in 1 files in {recordings}\n"

    replayed = await asyncio.create_subprocess_exec(
        *BERTH, "simulate", "replay", file, "-o", "json", stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await replayed.communicate()
    found = json.loads(answer)
    assert replayed.returncode == 1
    assert found["outcomes"] == {"same": 1, "a better node": 1}
    (different,) = found["differences"]
    assert (different["pod"], different["recordedNode"], different["node"]) == ("default/q", "small", "large")
    assert different["scores"].keys() == {"small", "large"}


async def test_a_cluster_that_cannot_be_reached_is_named(tmp_path):
    command = (*BERTH, "record", tmp_path, "--kubeconfig", tmp_path / "none")
    recorder = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await recorder.communicate()
    assert recorder.returncode == 2
    assert said.decode().startswith("Error: ")
    assert str(tmp_path / "none") in said.decode()


@pytest.mark.parametrize("scheduler", EITHER)
async def test_what_a_scheduler_decides_pod_by_pod_is_decided_the_same(tmp_path, scheduler):
    """Each pod is bound, or known to have no node, before the next one comes."""
    file = await observed(tmp_path, scheduler, 12, in_turn=True)
    found = await asyncio.to_thread(replay_observed, file, load(None))
    assert (found.compared, found.differences) == (12, [])
