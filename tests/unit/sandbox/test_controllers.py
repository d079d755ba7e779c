"""Deployments' pods, and what goes with its owner."""

import asyncio
import json

import pytest

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.sandbox import SandboxOptions, serve
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import eventually

BASE = "/apis/apps/v1/namespaces/default/deployments"
RECREATE = {"strategy": {"type": "Recreate"}}


class Running:
    """A sandbox with controllers, and a client of it; pods are put on a node at once."""

    def __init__(self, sandbox, api):
        self.sandbox, self.api = sandbox, api

    def objects(self, name):
        return [entry.decode() for entry in self.sandbox.store.collection(name).entries()]

    @property
    def pods(self):
        return self.objects("pods")

    def deployment(self):
        return self.objects("deployments.apps")[0]

    async def send(self, method, path, body=None, media="application/merge-patch+json"):
        kind = media if method == "PATCH" else "application/json"
        return json.loads(
            await self.api.call(method, path, json.dumps(body or {}).encode(), content_type=kind)
        )

    async def bind_all(self):
        for pod in self.pods:
            if not pod["spec"].get("nodeName"):
                name = pod["metadata"]["name"]
                body = {"metadata": {"name": name}, "target": {"name": "n1"}}
                await self.send("POST", f"/api/v1/namespaces/default/pods/{name}/binding", body)

    async def settle(self, claim):
        """Bind what comes until the claim holds."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not claim():
                await self.bind_all()
                await asyncio.sleep(0.01)


@pytest.fixture
async def running(tmp_path):
    options = SandboxOptions(controllers=True, pod_grace_seconds=0.02)
    async with await serve(options) as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        transport = Transport(load_endpoint(kubeconfig=str(tmp_path / "kubeconfig")))
        yield Running(sandbox, Api(transport))
        await transport.aclose()


def deployment(replicas=2, image="x:1", **rolling):
    labels = {"app": "a"}
    container = {"name": "c", "image": image}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling or {"maxSurge": 1, "maxUnavailable": 0}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": template,
        "strategy": strategy,
    }
    return {"metadata": {"name": "web"}, "spec": spec}


def images(pods):
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


def settled(running, image, replicas):
    status = running.deployment().get("status", {})
    return images(running.pods) == [image] * replicas and status.get("readyReplicas", 0) == replicas


async def test_kept(running):
    """A deployment has as many pods as it asks for, and makes up for one that goes."""
    await running.send("POST", BASE, deployment())
    await running.settle(lambda: settled(running, "x:1", 2))
    gone = running.pods[0]["metadata"]["name"]
    await running.send("DELETE", f"/api/v1/namespaces/default/pods/{gone}")
    await running.settle(lambda: settled(running, "x:1", 2) and gone not in str(running.pods))

    conditions = {one["type"]: one["status"] for one in running.deployment()["status"]["conditions"]}
    assert {"Available": "True", "Progressing": "True"} == conditions


async def test_rolled_out(running):
    """Pods are replaced one by one: never fewer ready than asked for, never more than the surge allows."""
    await running.send("POST", BASE, deployment())
    await running.settle(lambda: settled(running, "x:1", 2))
    counts = []
    running.sandbox.store.collection("pods").subscribe(
        lambda: counts.append((ready(running.pods), len(staying(running.pods))))
    )
    await running.send("PATCH", f"{BASE}/web", {"spec": deployment(image="x:2")["spec"]})
    await running.settle(lambda: settled(running, "x:2", 2))

    assert 2 == min(count for count, _ in counts)
    assert 3 == max(total for _, total in counts)
    assert 2 == running.deployment()["status"]["updatedReplicas"]


def staying(pods):
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def ready(pods):
    return sum(
        any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))
        for pod in staying(pods)
    )


async def test_recreated(running):
    """With the strategy Recreate no new pod is made while an old one is still ending."""
    first, second = (deployment(image=image)["spec"] | RECREATE for image in ("x:1", "x:2"))
    await running.send("POST", BASE, deployment() | {"spec": first})
    await running.settle(lambda: settled(running, "x:1", 2))
    seen = []
    running.sandbox.store.collection("pods").subscribe(lambda: seen.append(set(images(running.pods))))
    await running.send("PATCH", f"{BASE}/web", {"spec": second})
    await running.settle(lambda: settled(running, "x:2", 2))

    assert {"x:1", "x:2"} not in seen


async def test_scaled(running):
    """Scaling down takes pods away."""
    await running.send("POST", BASE, deployment(replicas=3))
    await running.settle(lambda: settled(running, "x:1", 3))
    await running.send("PATCH", f"{BASE}/web", {"spec": {"replicas": 1}})
    await running.settle(lambda: settled(running, "x:1", 1))

    assert 1 == running.deployment()["status"]["replicas"]


async def test_refused(running):
    """A deployment whose pods are refused says so."""
    wrong = deployment()
    wrong["spec"]["template"]["spec"]["priorityClassName"] = "missing"
    await running.send("POST", BASE, wrong)
    await eventually(lambda: "ReplicaFailure" in str(running.deployment().get("status")))

    assert "no PriorityClass with name missing" in str(running.deployment()["status"]["conditions"])


async def test_collected(running):
    """What has lost its owner goes, and what it owned; others of that name do not count as the owner."""
    made = await running.send("POST", BASE, deployment())
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": made["metadata"]["uid"]}
    maps = "/api/v1/namespaces/default/configmaps"
    await running.send("POST", maps, {"metadata": {"name": "kept"}})
    await running.send("POST", maps, {"metadata": {"name": "owned", "ownerReferences": [owner]}})
    await running.send(
        "POST", maps, {"metadata": {"name": "other", "ownerReferences": [{**owner, "uid": "u"}]}}
    )
    await running.settle(lambda: settled(running, "x:1", 2))
    assert ["kept", "owned"] == config_maps(running)

    await running.send("DELETE", f"{BASE}/web")
    await running.settle(lambda: not running.pods)
    assert ["kept"] == config_maps(running)


def config_maps(running):
    """The names of those in the default namespace."""
    found = [one["metadata"] for one in running.objects("configmaps")]
    return [one["name"] for one in found if one["namespace"] == "default"]
