"""Claims that a pod group shares, on a real kube-apiserver with kube-controller-manager (KEP-5729).

The cases are those of kubernetes/kubernetes test/e2e/dra/dra.go (v1.36) that speak of a PodGroup, by their
names there, without kubelets: a pod that has a node would run.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from berth.client.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, Resource
from berth.demo.processes import Child
from tests.e2e.api_servers import api_server_called
from tests.e2e.default_cluster import default_cluster
from tests.e2e.operated_installation import controller_manager
from tests.e2e.seen import LOOK_SECONDS, PATIENCE_SECONDS, items
from tests.unit.scheduler.test_group_claims import ANY_TAINT, DEVICES, TAINT, claim
from tests.unit.scheduler.test_newer_servers import member
from tests.unit.scheduler_at_work import node

pytestmark = pytest.mark.e2e

GATES = "GenericWorkload=true,DRAWorkloadResourceClaims=true,DRADeviceTaintRules=true"
TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", namespaced=True)
RULES = Resource("resource.k8s.io", "v1beta2", "devicetaintrules", namespaced=False)


def devices(name, *made):
    """A class of that name, and a driver's devices that every node reaches."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": f"{name}.test", "allNodes": True, "pool": pool, "devices": list(made)}
    selector = {"cel": {"expression": f"device.driver == '{name}.test'"}}
    return (
        {**DEVICES, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": [selector]}},
        {**DEVICES, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec},
    )


def group(name, entry):
    """A basic group that shares the claim of that entry."""
    metadata = {"name": name, "namespace": "default"}
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [entry]}
    head = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    return head | {"metadata": metadata, "spec": spec}


def template(name, class_name, **exactly):
    """A template for a claim of one device."""
    metadata = {"name": name, "namespace": "default"}
    spec = {"spec": claim(class_name=class_name, **exactly)["spec"]}
    return {**DEVICES, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


@asynccontextmanager
async def control_plane(folder, *documents):
    """kube-apiserver, kube-controller-manager and Berth."""
    manager, flags = controller_manager(), (f"--feature-gates={GATES},GangScheduling=true",)
    server = api_server_called("real")
    async with default_cluster(folder, documents, flags=flags, server=server) as cluster:
        command = [
            str(manager),
            f"--kubeconfig={folder / 'kubeconfig'}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--feature-gates={GATES}",
            "--controllers=*,-node-lifecycle-controller",
        ]
        running = await Child.start("kube-controller-manager", command, folder / "manager.log")
        try:
            yield cluster
        finally:
            await running.stop()


class Pods:
    """The pods of a cluster as the watch shows them."""

    def __init__(self):
        self.found, self.last = {}, {}

    def look(self, kind, document):
        """Take note of one."""
        name = document["metadata"]["name"]
        self.found[name], self.last[name] = {} if kind == "DELETED" else document, document

    def node(self, name):
        """The pod's node, "" where it has none."""
        return self.found.get(name, {}).get("spec", {}).get("nodeName", "")

    def condition(self, name, kind):
        """(reason, message) of the condition that the pod has, or had when it was gone; None for none."""
        found = self.last.get(name, {}).get("status", {}).get("conditions", ())
        return next(((c.get("reason"), c.get("message")) for c in found if c["type"] == kind), None)


async def reserved(cluster, start):
    """What the claim whose name starts like this is reserved for."""
    claims = await items(cluster, RESOURCE_CLAIMS)
    (found,) = [one for one in claims if one["metadata"]["name"].startswith(start)]
    return [(use["resource"], use["name"]) for use in found.get("status", {}).get("reservedFor", ())]


async def test_upstreams_specs_of_pod_groups_with_claims(tmp_path):
    """All of them on one control plane, each with a driver of its own."""
    named = {"name": "c", "resourceClaimName": "named"}
    inline = {case: {"name": "c", "resourceClaimTemplateName": case} for case in ("inline", "kept", "let")}
    documents = (
        node("n1"),
        *devices("named", {"name": "d0"}),
        *devices("inline", {"name": "d0"}),
        *devices("kept", {"name": "d0", "taints": [TAINT]}),
        *devices("let", {"name": "d0", "taints": [TAINT]}),
    )
    pods = Pods()
    async with control_plane(tmp_path, *documents) as cluster, cluster.watching(pods.look):
        await cluster.create(RESOURCE_CLAIMS, [claim("named", class_name="named")])
        await cluster.create(
            TEMPLATES,
            [
                template("inline", "inline"),
                template("kept", "kept"),
                template("let", "let", tolerations=[ANY_TAINT]),
            ],
        )
        entries = {"named": named, **inline}
        await cluster.create(POD_GROUPS, [group(name, entry) for name, entry in entries.items()])
        await cluster.create(
            PODS,
            [
                member(name, name, cpu="10m", resourceClaims=[entry], terminationGracePeriodSeconds=0)
                for name, entry in entries.items()
            ],
        )
        # allocates devices for PodGroups; generates claims from templates for PodGroups
        await cluster.reach(lambda: pods.node("named") and pods.node("inline"))
        # NoSchedule keeps pod with PodGroup claim pending
        await cluster.reach(lambda: pods.condition("kept", "PodScheduled"))
        # NoSchedule can be tolerated for PodGroup claims
        await cluster.reach(lambda: pods.node("let"))
        held = {name: await reserved(cluster, name) for name in entries}

        # DeviceTaintRule evicts pod with PodGroup claim
        taint = {"key": "test.example.com/evict", "value": "now", "effect": "NoExecute"}
        spec = {"deviceSelector": {"driver": "let.test"}, "taint": taint}
        rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "spec": spec}
        await cluster.create(RULES, [rule | {"metadata": {"name": "evict"}}])
        await cluster.reach(lambda: pods.condition("let", "DisruptionTarget"))
        evicted = pods.condition("let", "DisruptionTarget")

        # A claim of a group stays reserved for it when its pods go, and is free when it goes.
        await cluster.delete(PODS, "named", "default", gracePeriodSeconds=0)
        await cluster.reach(lambda: pods.found["named"] == {})
        without_pods = await reserved(cluster, "named")
        await cluster.delete(POD_GROUPS, "named", "default")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await reserved(cluster, "named"):  # noqa: ASYNC110 - what the API has, asked for
                await asyncio.sleep(LOOK_SECONDS)

    assert {
        "named": [("podgroups", "named")],
        "inline": [("podgroups", "inline")],
        "kept": [],
        "let": [("podgroups", "let")],
    } == held
    assert "cannot allocate all claims" in pods.condition("kept", "PodScheduled")[1]
    assert (
        "DeletionByDeviceTaintManager",
        "Device Taint manager: deleting due to NoExecute taint",
    ) == evicted
    assert [("podgroups", "named")] == without_pods
