"""A plan carried out on an API server: controllers make the pods anew, and a scheduler binds them."""

import asyncio
import json
import sys

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import NODES
from berth.client.transport import Transport
from berth.sandbox import SandboxOptions
from tests.unit.descheduling.kit import budget, policy
from tests.unit.scheduler_at_work import eventually, node, scheduling
from tests.unit.simulation.kit import written

APP = {"app": "web"}
OLD = {"spec": {"taints": [{"key": "old", "value": "x", "effect": "NoSchedule"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": APP},
        "template": {
            "metadata": {"labels": APP},
            "spec": {
                "containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}]
            },
        },
    },
}


async def descheduled(kubeconfig, policy_file):
    """What the command says, as documents, and its exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "berth.cli", "deschedule", "--execute", "-o", "json"),
        *("--kubeconfig", str(kubeconfig), "--policy", str(policy_file)),
        "--max-evictions-per-minute=6000",
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    decoder, text, found = json.JSONDecoder(), said.decode().strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].strip()
    return found, process.returncode


async def test_evicted_pods_come_back_where_they_should_be(tmp_path):
    """The plan is printed, evictions keep to the budget, and what is made anew is bound as planned."""
    kubeconfig = tmp_path / "kubeconfig"
    policy_file = written(tmp_path / "policy.json", policy("RemovePodsViolatingNodeTaints"))
    options = SandboxOptions(controllers=True, pod_grace_seconds=0.01)
    async with scheduling(kubeconfig, node("n0"), DEPLOYMENT, options=options) as (sandbox, _):
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)))
        api = Api(transport)

        def on_nodes():
            pods = sandbox.api.catalogue.get("", "v1", "pods")
            found = [entry.decode() for entry in sandbox.api.rest.collection(pods).entries("default/")]
            staying = [each for each in found if not each["metadata"].get("deletionTimestamp")]
            # A pod that does not run yet counts against no budget.
            running = [each for each in staying if each["status"].get("phase") == "Running"]
            return sorted(each["spec"]["nodeName"] for each in running)

        try:
            await eventually(lambda: on_nodes() == ["n0"] * 3)
            allowed = budget("web", 2, **APP)
            allowed["metadata"]["namespace"] = "default"
            sandbox.load([node("n1"), allowed])
            await api.patch(NODES, "", "n0", json.dumps(OLD).encode())

            (plan, done), code = await descheduled(kubeconfig, policy_file)
            await eventually(lambda: on_nodes() == ["n0", "n1", "n1"])
            (again, nothing), _ = await descheduled(kubeconfig, policy_file)
        finally:
            await transport.aclose()

    assert 0 == code
    assert [("n0", "n1")] * 2 == [(move["from"], move["to"]) for move in plan["moves"]]
    assert ["Evicted"] * 2 == [each["result"] for each in done["evictions"]]
    assert ([], []) == (again["moves"], nothing["evictions"])
    assert "PodDisruptionBudget default/web allows no more disruptions now" == again["leftAlone"][0]["why"]
