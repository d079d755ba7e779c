"""A scheduler that dies between any two writes of a binding; the next one finishes what it began."""

import asyncio
import json
import re

import pytest

from berth.client.api import MERGE_PATCH
from tests.e2e.fault_rules import Fault
from tests.e2e.faults import PATHS, faulty_cluster, node, pod

pytestmark = pytest.mark.e2e

ROOM = 20
MAX_STEPS = 12

# The writes of a binding of a pod with a volume and a device, in whatever order they come.
WRITES = {
    "volume": r"PATCH /api/v1/persistentvolumes/",
    "device claim": r"PATCH /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/[^/]+$",
    "allocation": r"PATCH /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/[^/]+/status",
    "nomination": r"PATCH /api/v1/namespaces/default/pods/[^/]+/status",
    "binding": r"POST /api/v1/namespaces/default/pods/[^/]+/binding",
    "event": r"POST /apis/events.k8s.io/v1/namespaces/default/events",
}


def storage_class():
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n0"]}]}
    spec = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/mnt/a"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def volume_claim(name):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "5Gi"}},
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def devices(count):
    """A class of devices, and so many of them on one node."""
    version, driver = "resource.k8s.io/v1", "gpu.example.com"
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"gpu-{i}"} for i in range(count)]
    return (
        {
            "apiVersion": version,
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [selector]},
        },
        {
            "apiVersion": version,
            "kind": "ResourceSlice",
            "metadata": {"name": "slice"},
            "spec": {"driver": driver, "nodeName": "n0", "pool": pool, "devices": found},
        },
    )


def device_claim(name):
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}},
    }


def pod_with_both(name):
    """A pod with a volume and a device of its own, and the claims to both."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    claims = [{"name": "c", "resourceClaimName": name}]
    return volume_claim(name), device_claim(name), pod(name, volumes=volumes, resourceClaims=claims)


class VolumeController:
    """Completes the binding of volumes that the scheduler began, as kube-controller-manager does."""

    def __init__(self, cluster):
        self._cluster = cluster

    async def run(self):
        while True:
            for volume in (await self._cluster.get(PATHS["PersistentVolume"]))["items"]:
                name, ref = volume["metadata"]["name"], volume["spec"].get("claimRef")
                if volume["status"]["phase"] == "Pending":
                    status = {"status": {"phase": "Available"}}
                    await self._patch(f"{PATHS['PersistentVolume']}/{name}/status", status)
                elif ref:
                    await self._complete(f"{PATHS['PersistentVolumeClaim']}/{ref['name']}", name)
            await asyncio.sleep(0.05)

    async def _complete(self, path, volume_name):
        if not (await self._cluster.get(path))["spec"].get("volumeName"):
            done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
            await self._patch(path, {"metadata": done, "spec": {"volumeName": volume_name}})

    async def _patch(self, path, patch):
        body = json.dumps(patch).encode()
        await self._cluster.api.call("PATCH", path, body, content_type=MERGE_PATCH)


async def one_step(cluster, number):
    """Kill a scheduler before its write of that number for a new pod; that write, None if it had no more."""
    name, pod_name = f"s{number}", f"p{number}"
    await cluster.ready(name)
    await cluster.until(lambda: len(cluster.witness.bound) == number, "the pods from before are bound")
    await cluster.until(lambda: all_with_events(cluster, name), "it has reported those that it bound")
    hold = {"fault": Fault.HOLD, "via": name, "method": "(?!GET)", "skip": number, "times": 1}
    await cluster.proxy.rules(hold)
    await cluster.create(*pod_with_both(pod_name))

    async def held_or_done():
        held = await cluster.proxy.ask("held")
        return held or (pod_name in await with_events(cluster) and ["done"])

    found = await cluster.until(held_or_done, "the write comes, or the binding is done")
    if found == ["done"]:
        return None
    await cluster.kill(name)
    await cluster.proxy.ask("let_go", forward=False)
    await cluster.proxy.rules()
    await cluster.start_scheduler(f"s{number + 1}")
    return f"{found[0]['method']} {found[0]['path']}"


async def with_events(cluster):
    """The pods of whose binding there is an event."""
    events = (await cluster.get("/apis/events.k8s.io/v1/events"))["items"]
    return {event["regarding"]["name"] for event in events if event["reason"] == "Scheduled"}


async def all_with_events(cluster, name):
    """Whether there is an event for each binding of that scheduler."""
    bindings = await cluster.proxy.bindings(name)
    return {entry["path"].split("/")[-2] for entry in bindings} <= await with_events(cluster)


async def test_killed_before_each_write(tmp_path):
    """Every pod is bound once, with its own volume and device, and nothing is left in cache or queue."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        await cluster.create(
            *(node(name, pods=ROOM) for name in ("n0", "n1")),
            *(storage_class(), *devices(MAX_STEPS), *(volume(f"v{i}") for i in range(MAX_STEPS))),
        )
        controlling = asyncio.create_task(VolumeController(cluster).run())
        await cluster.start_scheduler("s0")
        killed_before = []
        while (write := await one_step(cluster, len(killed_before))) is not None:
            killed_before.append(write)
        count = len(killed_before) + 1
        controlling.cancel()

        missing = {n for n, p in WRITES.items() if not any(re.match(p, write) for write in killed_before)}
        assert set() == missing
        assert [] == cluster.witness.wrongs
        assert count == len(cluster.witness.bound) == len(cluster.pods())
        volumes = (await cluster.get(PATHS["PersistentVolume"]))["items"]
        taken = [v["spec"]["claimRef"]["name"] for v in volumes if v["spec"].get("claimRef")]
        assert sorted(f"p{i}" for i in range(count)) == sorted(taken)
        claims = (await cluster.get(PATHS["ResourceClaim"]))["items"]
        given = {claim["status"]["allocation"]["devices"]["results"][0]["device"] for claim in claims}
        assert count == len(given)
        assert all([c["metadata"]["name"]] == [r["name"] for r in c["status"]["reservedFor"]] for c in claims)
        report = json.loads(await cluster.show(f"s{count - 1}", "/debug/cache"))
        assert [[], [], 0, {}] == [
            report[field] for field in ("differences", "inFlight", "assumed", "nominated")
        ]
        assert not any(report["queue"].values())
