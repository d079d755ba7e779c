"""Devices: a driver's slices, claims that are created and allocated by themselves.

Source: test/integration/scheduler_perf/dra.go (Kubernetes v1.36.2). What the scheduler's allocator allocates
there is chosen here request by request, which is all that claims of single devices need.
"""

import random
from fnmatch import fnmatchcase

from berth.client.resources import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from berth.objects.decode import from_document
from berth.objects.devices.devices import ResourceSlice
from berth.plugins.dynamic_resources.devices import Device, DeviceId
from tests.scheduler_perf.errors import NotPlayedError, PerfError
from tests.scheduler_perf.requests import many
from tests.scheduler_perf.templates import ObjectTemplate


async def create_driver(requests, operation):
    """A slice of so many devices for each node whose name fits."""
    names = [node["metadata"]["name"] for node in await requests.items(NODES)]
    chosen = [name for name in names if fnmatchcase(name, operation["nodes"])]
    slices = [
        node_slice(operation["driverName"], name, operation["maxClaimsPerNode"] or 0) for name in chosen
    ]
    await many(len(slices), lambda index: requests.create(RESOURCE_SLICES, "", slices[index]))


def node_slice(driver, node, count):
    """A node's devices."""
    devices = [
        {
            "name": f"instance-{i}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": i},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for i in range(count)
    ]
    pool = {"name": node, "generation": 0, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
    }


async def create_claims(requests, operation):
    """Claims from a file, all alike."""
    template = ObjectTemplate(operation["templatePath"])

    async def create(_):
        await requests.create(RESOURCE_CLAIMS, operation["namespace"], template.document())

    await many(operation["count"] or 0, create)


async def allocate_claims(requests, operation, chance=random):
    """Allocate all claims of a namespace that are not allocated yet, on nodes by chance.

    Raises: PerfError where devices do not suffice; NotPlayedError of a claim for more than single devices.
    """
    everywhere = await requests.items(RESOURCE_CLAIMS)
    free = FreeDevices(await requests.items(RESOURCE_SLICES), everywhere, chance)
    classes = {
        each["metadata"]["name"]: each.get("spec", {}) for each in await requests.items(DEVICE_CLASSES)
    }
    wanted = operation["namespace"] or ""
    for claim in everywhere:
        namespace = claim["metadata"]["namespace"]
        if wanted in ("", namespace) and not claim.get("status", {}).get("allocation"):
            status = {**claim.get("status", {}), "allocation": free.allocate(claim, classes, operation.place)}
            await requests.replace(RESOURCE_CLAIMS, namespace, {**claim, "status": status}, "status")


class FreeDevices:
    """The devices of nodes that no claim has."""

    def __init__(self, slices, claims, chance):
        results = [
            result
            for claim in claims
            for result in (claim.get("status", {}).get("allocation") or {})
            .get("devices", {})
            .get("results", ())
        ]
        taken = {(result["driver"], result["pool"], result["device"]) for result in results}
        self._free = {}
        for document in slices:
            for device in _devices(document):
                if tuple(device.id) not in taken and "nodeName" in document["spec"]:
                    self._free.setdefault(document["spec"]["nodeName"], []).append(device)
        self._nodes = list(self._free)
        chance.shuffle(self._nodes)

    def allocate(self, claim, classes, place):
        """The allocation of a claim; its devices are free no more."""
        asked = [_selectors(each, classes, place) for each in claim["spec"]["devices"]["requests"]]
        for turn, node in enumerate(self._nodes):
            if picks := _picked(self._free[node], asked):
                self._free[node] = [device for device in self._free[node] if device not in picks.values()]
                self._nodes = [*self._nodes[turn + 1 :], *self._nodes[: turn + 1]]
                return _allocation(node, picks)
        raise PerfError(f"{place}: no devices are left for claim {claim['metadata']['name']}")


def _devices(document):
    part = from_document(document, ResourceSlice)
    for spec in part.spec.devices:
        yield Device(DeviceId(part.spec.driver, part.spec.pool.name, spec.name), spec, part.spec.node_name)


def _selectors(request, classes, place):
    """The request's name and the expressions that its device has to match."""
    exactly = request.get("exactly") or {}
    if (
        exactly.get("count", 1) != 1
        or exactly.get("allocationMode", "ExactCount") != "ExactCount"
        or not exactly
    ):
        raise NotPlayedError(f"{place}: a claim with request {request['name']} for more than one device")
    selectors = [*classes[exactly["deviceClassName"]].get("selectors", ()), *exactly.get("selectors", ())]
    return request["name"], [selector["cel"]["expression"] for selector in selectors]


def _picked(devices, asked):
    picks = {}
    for name, expressions in asked:
        found = (each for each in devices if each not in picks.values() and each.matches_all(expressions))
        if (device := next(found, None)) is None:
            return None
        picks[name] = device
    return picks


def _allocation(node, picks):
    results = [
        {"request": name, "driver": each.id.driver, "pool": each.id.pool, "device": each.id.device}
        for name, each in picks.items()
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
