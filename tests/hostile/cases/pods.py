"""One pod, or a few, with too much of something."""

import asyncio

from tests.hostile.arena import pod
from tests.hostile.playing import Case


def on_node(name, **fields):
    """A pod that names its node itself: such a pod counts there, whichever scheduler it has."""
    return pod(name, nodeName="node-0", schedulerName="another", **fields)


async def nothing(_arena):
    """Do nothing: what the other rows are compared to."""


async def long_quantity(arena):
    huge = {"resources": {"requests": {"cpu": "9" * 5_000}}}
    await arena.write(on_node("long-quantity", container=huge))


def many_labels(count):
    async def write(arena):
        labels = {f"label-{i}": f"value-{i}" for i in range(count)}
        await arena.write(on_node("many-labels", labels=labels))

    return write


async def many_node_selector_keys(arena):
    for number in range(3):
        keys = {f"key-{number}-{i}": "x" for i in range(20_000)}
        await arena.write(pod(f"many-keys-{number}", nodeSelector=keys))


async def many_resources(arena):
    for number in range(5):
        amounts = {f"example.com/thing-{number}-{i}": "0" for i in range(2_000)}
        resources = {"resources": {"requests": amounts, "limits": amounts}}
        await arena.write(pod(f"many-resources-{number}", container=resources))


async def many_host_ports(arena):
    for number in range(2):
        ports = [
            {"containerPort": port, "hostPort": port, "hostIP": f"10.0.{number}.{port % 250}"}
            for port in range(10_000, 18_000)
        ]
        await arena.write(pod(f"many-ports-{number}", container={"ports": ports}))


async def many_tolerations(arena):
    tolerations = [{"key": f"key-{i}", "operator": "Exists"} for i in range(15_000)]
    await arena.write(pod("many-tolerations", tolerations=tolerations))


def tainted(nodes):
    """A few hundred nodes whose taints name their owners, as pools of tenants have them."""
    for number in range(min(nodes, 500)):
        name = f"tainted-{number}"
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        taint = {"key": "owner", "value": f"team-{number}", "effect": "NoSchedule"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"taints": [taint]},
            "status": {"capacity": amounts, "allocatable": amounts},
        }


async def deep_managed_fields(arena):
    """The API server keeps what a writer says of its own fields."""
    document = pod("deep")
    fields = {"manager": "x", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"}
    document["metadata"]["managedFields"] = [{**fields, "fieldsType": "FieldsV1", "fieldsV1": "@deep"}]
    deep = '{"f:a":' * 2_000 + "{}" + "}" * 2_000
    await arena.write(document, {"@deep": f'{{"f:metadata":{{"f:labels":{deep}}}}}'})


async def many_containers(arena):
    containers = [{"name": f"c{i}", "image": f"registry.example.com/image-{i}:1"} for i in range(8_000)]
    document = pod("many-containers")
    document["spec"]["containers"] = containers
    await arena.write(document)


async def many_gates(arena):
    gates = [{"name": f"gate-{i}"} for i in range(15_000)]
    await arena.write(pod("many-gates", schedulingGates=gates))
    for number in range(15_000):
        left = gates[number + 1 :]
        await arena.patch("Pod", "many-gates", {"spec": {"schedulingGates": left}})
        await asyncio.sleep(0)


CASES = (
    Case("none", "no one", "nothing at all", nothing),
    Case("C2", "user", "a pod of 5,000 digits of CPU that names its node", long_quantity),
    Case("C3", "user", "a placed pod of 10,000 labels", many_labels(10_000)),
    Case("C3b", "user", "a placed pod of 40,000 labels", many_labels(40_000)),
    Case("C4", "user", "three pods of 20,000 nodeSelector keys", many_node_selector_keys),
    Case("H1", "user", "five pods of 2,000 extended resources of 0", many_resources),
    Case("H2", "user", "two pods of 8,000 host ports", many_host_ports),
    Case("D2", "user", "a pod with managedFields 2,000 deep (needs --real)", deep_managed_fields),
    Case("P1", "user", "a pod of 15,000 tolerations, 500 tainted nodes", many_tolerations, objects=tainted),
    Case("P2", "user", "a pod of 8,000 containers", many_containers),
    Case("P3", "user", "a pod of 15,000 gates that loses one after the other", many_gates),
)
