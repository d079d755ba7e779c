"""Pods whose volumes are chosen or made with their node, through an API server and a volume controller."""

import asyncio
from contextlib import asynccontextmanager

import msgspec

from berth.client import Api, load_endpoint
from berth.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.unit.client.conftest import transport_to
from tests.unit.scheduler_at_work import eventually, node, scheduling

SELECTED = "volume.kubernetes.io/selected-node"


def storage_class(name, provisioner):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name, class_name):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }


def volume(name, size, on, class_name="local", **spec):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "local": {"path": "/mnt/a"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            **spec,
        },
        "status": {"phase": "Available"},
    }


def pod(name, claim_name):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "app:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}],
        },
    }


class VolumeController:
    """Completes what the scheduler began, as kube-controller-manager and a CSI provisioner do.

    It refuses the first node selected for each claim in `refuses`.
    """

    def __init__(self, sandbox, api, refuses=()):
        self._sandbox, self._api, self._refuses = sandbox, api, set(refuses)
        self.refused = set()

    def stored(self, plural):
        return [entry.decode() for entry in self._sandbox.store.collection(plural).entries()]

    async def run(self):
        while True:
            for volume in self.stored("persistentvolumes"):
                await self._complete(volume)
            for claim in self.stored("persistentvolumeclaims"):
                await self._make(claim)
            await asyncio.sleep(0.02)

    async def _complete(self, volume):
        ref = volume["spec"].get("claimRef")
        if ref is None:
            return
        (claim,) = [c for c in self.stored("persistentvolumeclaims") if c["metadata"]["name"] == ref["name"]]
        if not claim["spec"].get("volumeName"):
            done = {"pv.kubernetes.io/bind-completed": "yes"}
            await self._patch(ref["name"], done, {"volumeName": volume["metadata"]["name"]})

    async def _make(self, claim):
        name, annotations = claim["metadata"]["name"], claim["metadata"].get("annotations", {})
        if claim["spec"]["storageClassName"] != "made" or SELECTED not in annotations:
            return
        if name in self._refuses:
            self._refuses.remove(name)
            self.refused.add(name)
            await self._patch(name, {SELECTED: None, "tried": "yes"})
        elif not claim["spec"].get("volumeName"):
            ref = {"namespace": "default", "name": name, "uid": claim["metadata"]["uid"]}
            document = volume(f"for-{name}", "5Gi", annotations[SELECTED], "made", claimRef=ref)
            if document["metadata"]["name"] not in {
                v["metadata"]["name"] for v in self.stored("persistentvolumes")
            }:
                await self._api.create(PERSISTENT_VOLUMES, "", msgspec.json.encode(document))

    async def _patch(self, name, annotations, spec=None):
        body = {"metadata": {"annotations": annotations}, **({"spec": spec} if spec else {})}
        await self._api.patch(PERSISTENT_VOLUME_CLAIMS, "default", name, msgspec.json.encode(body))


@asynccontextmanager
async def controlled(kubeconfig, sandbox, refuses=()):
    """A volume controller at work on a sandbox."""
    async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
        controller = VolumeController(sandbox, Api(transport), refuses)
        work = asyncio.create_task(controller.run())
        try:
            yield controller
        finally:
            work.cancel()
            (failure,) = await asyncio.gather(work, return_exceptions=True)
            assert isinstance(failure, asyncio.CancelledError), failure


def bound(controller):
    pods = controller.stored("pods")
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if p["spec"].get("nodeName")}


async def test_volumes_come_with_the_node(tmp_path):
    """A claim that waits gets the free volume in reach, or a new one, on the node that its pod goes to."""
    nodes = [node(f"n{i}", **{"kubernetes.io/hostname": f"n{i}"}) for i in range(3)]
    classes = [
        storage_class("local", "kubernetes.io/no-provisioner"),
        storage_class("made", "csi.example.com"),
    ]
    volumes = [volume("small", "1Gi", "n0"), volume("big", "50Gi", "n1"), volume("right", "5Gi", "n1")]
    claims = [claim("disk", "local"), claim("later", "made"), claim("again", "made")]
    kubeconfig = tmp_path / "kubeconfig"
    async with (
        scheduling(kubeconfig, *nodes, *classes, *volumes, *claims) as (sandbox, _),
        controlled(kubeconfig, sandbox, refuses={"again"}) as controller,
    ):
        sandbox.load([pod("a", "disk"), pod("b", "later"), pod("c", "again")])
        await eventually(lambda: {"a", "b", "c"} == bound(controller).keys())

        held = {
            v["metadata"]["name"]: v["spec"]["claimRef"]
            for v in controller.stored("persistentvolumes")
            if "claimRef" in v["spec"]
        }
        on = {
            v["metadata"]["name"]: v["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
            for v in controller.stored("persistentvolumes")
        }
        places = bound(controller)
        assert "n1" == places["a"]
        assert {"right", "for-later", "for-again"} == held.keys()
        assert {"disk"} == {held["right"]["name"]}
        assert [places["b"]] == on["for-later"]["matchExpressions"][0]["values"]
        assert [places["c"]] == on["for-again"]["matchExpressions"][0]["values"]
        assert {"again"} == controller.refused
