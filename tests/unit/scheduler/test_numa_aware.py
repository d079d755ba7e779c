"""The plugin numa-aware as a process, a whole scheduler, and a sandbox that knows NodeResourceTopologies."""

import asyncio

import yaml

from tests.rust_toolchain import ROOT, build, needs_cargo
from tests.sockets import serving
from tests.unit.scheduler_at_work import eventually, node, scheduling

KIND = ROOT / "kustomize/third-party-crds/noderesourcetopologies.yaml"


def topology(name, *free):
    """A node whose kubelet aligns containers, with so many CPUs free on each of its NUMA nodes."""
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": "cpu", "capacity": "4", "allocatable": "4", "available": str(cpus)},
                {"name": "memory", "capacity": "8Gi", "allocatable": "8Gi", "available": "8Gi"},
            ],
        }
        for number, cpus in enumerate(free)
    ]
    policies = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "container"}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [{"name": key, "value": value} for key, value in policies.items()],
        "zones": zones,
    }


def pod(name, cpus):
    """A Guaranteed pod that needs so many CPUs of one NUMA node."""
    resources = {"cpu": str(cpus), "memory": "1Gi"}
    container = {"name": "main", "image": "image", "resources": {"requests": resources, "limits": resources}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "default-scheduler", "containers": [container]},
    }


def placed(sandbox):
    """Each pod's node, None where it has none."""
    pods = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    return {each["metadata"]["name"]: each["spec"].get("nodeName") for each in pods}


@needs_cargo
async def test_pods_go_where_one_numa_node_has_room(tmp_path):
    """A node with room on two NUMA nodes together is passed over; a pod waits for one that has it on one."""
    folder = ROOT / "out-of-tree-plugins/numa-aware"
    program = await asyncio.to_thread(build, "numa-aware", tmp_path / "numa-aware", folder=folder)
    kind = yaml.safe_load(KIND.read_text(encoding="utf-8"))
    documents = [kind, node("whole"), node("split"), topology("whole", 4), topology("split", 2, 2)]
    async with serving(program) as address:
        sidecars = {"numa-aware": address}
        async with scheduling(tmp_path / "kubeconfig", *documents, sidecars=sidecars) as (sandbox, _):
            sandbox.load([pod("first", 3)])
            await eventually(lambda: placed(sandbox)["first"])
            sandbox.load([pod("second", 3)])
            waiting = sandbox.store.collection("pods")
            await eventually(
                lambda: any(
                    condition.get("reason") == "Unschedulable"
                    for entry in waiting.entries()
                    for condition in entry.decode().get("status", {}).get("conditions", ())
                )
            )
            # Its topology comes first: a node without one takes every pod.
            sandbox.load([topology("late", 4)])
            sandbox.load([node("late")])
            await eventually(lambda: placed(sandbox)["second"])

            assert {"first": "whole", "second": "late"} == placed(sandbox)
