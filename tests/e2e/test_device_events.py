"""Which events bring pods back that wait for devices: as many attempts after each by either scheduler."""

import asyncio
from functools import partial

import pytest

from berth.client.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.e2e.default_cluster import default_cluster
from tests.e2e.in_turn import WithoutKubelets
from tests.e2e.random_groups import CONFIGURATION
from tests.e2e.seen import Seen, until
from tests.e2e.side_by_side import HOST, device_claim, devices, node, pod, thing, with_device
from tests.e2e.waiting import ATTEMPTS
from tests.kube_scheduler import WITHOUT, kube_scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)]

QUIET_SECONDS, LOOK_SECONDS = 0.6, 0.05
SLICE_GOES = "a slice goes"
"""The event that brings pods back here alone (docs/upstream-faults.md, 140831)."""
DRIVER_IS = 'device.driver == "gpu.example.com"'


def device_class(name):
    """A class of all devices of the driver."""
    spec = {"selectors": [{"cel": {"expression": DRIVER_IS}}]}
    return thing("DeviceClass", name, "resource.k8s.io/v1", spec=spec)


def holding(name, on, device):
    """A claim that has a device, reserved for no pod."""
    result = {"request": "one", "driver": "gpu.example.com", "pool": on, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [on]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
    used_by = [
        {"resource": "pods", "name": "gone", "uid": "1"},
        {"resource": "pods", "name": "too", "uid": "2"},
    ]
    return device_claim(name) | {"status": {"allocation": allocation, "reservedFor": used_by}}


OBJECTS = [
    node("a"),
    node("b"),
    device_class("gpu"),
    devices("a", 2),
    holding("held-0", "a", "d0"),
    holding("held-1", "a", "d1"),
    device_claim("three", 3),
    device_claim("x", selector='device.attributes["gpu.example.com"].model == "x"'),
    device_claim("late-class", device_class="late"),
    device_claim("other"),
    device_claim("free"),
]
WAITING = [
    pod("wants-three", resourceClaims=with_device("three")),
    pod("wants-x", resourceClaims=with_device("x"), nodeSelector={HOST: "a"}),
    pod("wants-class", resourceClaims=with_device("late-class")),
    pod("held-on-another-node", resourceClaims=with_device("held-0"), nodeSelector={HOST: "b"}),
    pod("plain", nodeSelector={"disk": "ssd"}),
]
GATED = pod("no-claim", resourceClaims=with_device("comes-later"))


def labelled(resource, name, namespace="", **values):
    """A change of an object's labels."""
    return lambda cluster: cluster.patch(resource, name, {"metadata": {"labels": values}}, namespace)


def made(resource, document):
    """An object that comes."""
    return lambda cluster: cluster.create(resource, [document])


def status(name, **values):
    """A change of a claim's status."""
    return lambda cluster: cluster.patch(
        RESOURCE_CLAIMS, name, {"status": values}, "default", subresource="status"
    )


EVENTS = {
    "label of a pod's claim": labelled(RESOURCE_CLAIMS, "three", "default", a="b"),
    "label of another claim": labelled(RESOURCE_CLAIMS, "other", "default", a="b"),
    "another claim comes": made(RESOURCE_CLAIMS, device_claim("new")),
    "the missing claim comes": made(RESOURCE_CLAIMS, device_claim("comes-later", 9)),
    "another claim is reserved": status("other", reservedFor=None),
    "label of a node": labelled(NODES, "b", disk="hdd"),
    "a taint": lambda cluster: cluster.patch(
        NODES, "b", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    ),
    "no taint": lambda cluster: cluster.patch(NODES, "b", {"spec": {"taints": None}}),
    "label of a class": labelled(DEVICE_CLASSES, "gpu", a="b"),
    "another class": made(DEVICE_CLASSES, device_class("another")),
    "label of a slice": labelled(RESOURCE_SLICES, "devices-a", a="b"),
    "a slice of a node": made(RESOURCE_SLICES, devices("b", 1)),
    "a class that is waited for": made(DEVICE_CLASSES, device_class("late")),
    "a device is free": status("held-1", allocation=None, reservedFor=None),
    "a pod comes": made(PODS, pod("passer-by", nodeSelector={HOST: "a"})),
    "a pod goes": lambda cluster: cluster.delete(PODS, "passer-by", "default", gracePeriodSeconds=0),
    SLICE_GOES: lambda cluster: cluster.delete(RESOURCE_SLICES, "devices-b"),
    "a claim goes": lambda cluster: cluster.delete(RESOURCE_CLAIMS, "free", "default"),
    "a node comes": made(NODES, node("c")),
}


async def attempts(cluster):
    """How many attempts there were of each result."""
    counts = await cluster.metrics(ATTEMPTS)
    return {name: count for name, count in counts.items() if name.startswith(ATTEMPTS)}


async def at_rest(cluster):
    """The attempts, once there are no more of them."""
    count, quiet = await attempts(cluster), 0.0
    while quiet < QUIET_SECONDS:
        await asyncio.sleep(LOOK_SECONDS)
        now = await attempts(cluster)
        count, quiet = now, quiet + LOOK_SECONDS if now == count else 0.0
    return count


async def caused(folder, scheduler):
    """The attempts that each event causes, by result."""
    folder.mkdir()
    seen, found = Seen(), {}
    which = {"scheduler": scheduler, "server": WithoutKubelets()}
    async with (
        default_cluster(folder, OBJECTS, CONFIGURATION, **which) as cluster,
        cluster.watching(seen.look),
    ):
        for each in WAITING:
            await cluster.create(PODS, [each])
            await until(partial(seen.decided, each["metadata"]["name"]), each["metadata"]["name"])
        await cluster.create(PODS, [GATED])
        before = await at_rest(cluster)
        for name, happens in EVENTS.items():
            await happens(cluster)
            after = await at_rest(cluster)
            found[name] = {
                key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)
            }
            before = after
        return found, seen.on


async def test_events(tmp_path):
    """Each event causes as many attempts with either, which come to the same; but for one that is mended."""
    theirs, theirs_on = await caused(tmp_path / "kube", (kube_scheduler(),))
    ours, ours_on = await caused(tmp_path / "berth", ("berth", "scheduler"))
    more = ours.pop(SLICE_GOES)

    assert ({}, True) == (theirs.pop(SLICE_GOES), all('result="unschedulable"' in each for each in more))
    assert more
    assert (theirs, theirs_on) == (ours, ours_on)
