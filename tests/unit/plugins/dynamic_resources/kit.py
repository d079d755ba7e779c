"""Slices, classes, claims and pods for tests of DynamicResources."""

from inspect import isawaitable

import msgspec
import pytest

from berth.config.plugin_args import DynamicResourcesArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis, Rejections
from berth.framework.mirrors.listers import Listers
from berth.framework.ports.claim_writing import ClaimWriteError
from berth.objects.decode import from_document
from berth.objects.devices.devices import DeviceClass, ResourceSlice
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.plugins.dynamic_resources import DynamicResources
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_handle

DRIVER = "gpu.example"


def device(name, **more):
    return {"name": name, **more}


def make_slice(name, devices, *, node=None, pool=None, generation=1, slices=1, **spec):
    where = {"nodeName": node} if node else {}
    if not node and not spec.keys() & {"nodeSelector", "perDeviceNodeSelection"}:
        where = {"allNodes": True}
    document = {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": slices},
            "devices": devices,
            **where,
            **spec,
        },
    }
    return from_document(document, ResourceSlice)


def make_class(name="gpu", **spec):
    return from_document({"metadata": {"name": name}, "spec": spec}, DeviceClass)


def request(name="r0", **exactly):
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def make_claim(name="c0", requests=None, *, status=None, uid="", owner="", owner_kind="Pod", **devices):
    owners = [{"controller": True, "kind": owner_kind, "name": owner, "uid": owner}] if owner else []
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"claim-{name}",
            "resourceVersion": "1",
            "ownerReferences": owners,
        },
        "spec": {"devices": {"requests": [request()] if requests is None else requests, **devices}},
        "status": status or {},
    }
    return from_document(document, ResourceClaim)


def allocated(name="c0", *picked, reserved=(), selector=None, uid=""):
    """A claim that has those devices, as (pool, device)."""
    results = [{"request": "r0", "driver": DRIVER, "pool": p, "device": d} for p, d in picked]
    allocation = {"devices": {"results": results}}
    if selector:
        allocation["nodeSelector"] = selector
    consumers = [{"resource": "pods", "name": u, "uid": u} for u in reserved]
    return make_claim(name, status={"allocation": allocation, "reservedFor": consumers}, uid=uid)


def on_node(name):
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def claiming(*names, **more):
    entries = tuple(PodResourceClaim(f"e{i}", name) for i, name in enumerate(names))
    return make_pod("p0", uid="p0", resource_claims=entries, **more)


def with_status(pod, *statuses):
    """The pod with claims that were made for it from templates."""
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=statuses)
    return msgspec.structs.replace(pod, status=status)


class FakeClaimWriter:
    """Claims in memory, one version on after each write."""

    def __init__(self):
        self.calls = []
        self.refuses_to_create = False

    async def create(self, claim, generate_name):
        if self.refuses_to_create:
            raise ClaimWriteError("no room for more claims")
        self.calls.append(("create", generate_name))
        meta = msgspec.structs.replace(
            claim.metadata, name=f"{generate_name}x", uid="made", resource_version="1"
        )
        return msgspec.structs.replace(claim, metadata=meta)

    async def reserve(self, claim, consumer, allocation):
        self.calls.append(("reserve", claim.name, allocation is not None))
        status = msgspec.structs.replace(
            claim.status,
            allocation=allocation or claim.allocation,
            reserved_for=(*claim.status.reserved_for, consumer),
        )
        return self._next(claim, status)

    async def unreserve(self, claim, consumer):
        self.calls.append(("unreserve", claim.name))
        kept = tuple(c for c in claim.status.reserved_for if c.uid != consumer.uid)
        return self._next(claim, msgspec.structs.replace(claim.status, reserved_for=kept))

    async def deallocate(self, claim):
        self.calls.append(("deallocate", claim.name))
        return self._next(claim, type(claim.status)())

    async def delete(self, claim):
        self.calls.append(("delete", claim.name))

    async def publish(self, pod, claim_name, mappings):
        del pod
        self.calls.append(("publish", claim_name, [tuple(m.values()) for m in mappings]))

    @staticmethod
    def _next(claim, status):
        version = str(int(claim.metadata.resource_version or 0) + 1)
        meta = msgspec.structs.replace(claim.metadata, resource_version=version)
        return msgspec.structs.replace(claim, metadata=meta, status=status)


def finished(answer):
    """What awaiting it gives, without a loop: nothing that a search awaits here keeps it waiting."""
    if not isawaitable(answer):
        return answer
    with pytest.raises(StopIteration) as end:
        answer.send(None)
    return end.value.value


class Cluster:
    """A plugin over nodes, slices, classes and claims, asked the way a cycle asks."""

    def __init__(self, *, nodes=("n0", "n1"), slices=(), classes=None, claims=(), args=None, **handle):
        made = [make_node(n) if isinstance(n, str) else n for n in nodes]
        self.nodes = table(made)
        self.listers = Listers()
        self.writer = FakeClaimWriter()
        for store, objects in (
            (self.listers.resource_slices, slices),
            (self.listers.device_classes, [make_class()] if classes is None else classes),
            (self.listers.resource_claims, claims),
        ):
            for obj in objects:
                store.put(obj)
        self.handle = make_handle(self.nodes, listers=self.listers, claim_writer=self.writer, **handle)
        self.plugin = DynamicResources(args or DynamicResourcesArgs(), self.handle)
        self.state = CycleState()

    def pre_filter(self, pod):
        self.state = CycleState()
        status = self.plugin.pre_filter(self.state, pod, self.nodes).status
        self.state.skip_filter = frozenset({self.plugin.name} if status.skip else ())
        return status

    def reasons(self, pod):
        """The reasons by node, none where the pod fits."""
        status = self.pre_filter(pod)
        if not status.ok:
            return dict.fromkeys(self.nodes.names, "" if status.skip else status.message)
        codes = self.codes(pod).tolist()
        spell = self.plugin.filter_status
        return {
            name: spell(self.state, code).message if code else ""
            for name, code in zip(self.nodes.names, codes, strict=True)
        }

    def codes(self, pod):
        return finished(self.plugin.filter(self.state, pod, self.nodes))

    def fits(self, pod):
        return [name for name, reason in self.reasons(pod).items() if not reason]

    def reserved(self, pod, node):
        """The devices, as (request, pool, device), after filtering and reserving."""
        self.reasons(pod)
        status = self.plugin.reserve(self.state, pod, node)
        assert status.ok, status.message
        return [
            (result.request, result.pool, result.device)
            for claim in self.handle.listers.claim_tracker.all_in_flight()
            for result in claim.allocation.devices.results
        ]

    async def post_filter(self, pod):
        codes = self.codes(pod)
        diagnosis = Diagnosis(list(self.nodes.names))
        rows = codes.nonzero()[0]
        diagnosis.record(Rejections(rows, codes[rows], lambda c: self.plugin.filter_status(self.state, c)))
        return (await self.plugin.post_filter(self.state, pod, diagnosis)).status
