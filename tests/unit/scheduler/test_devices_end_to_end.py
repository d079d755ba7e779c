"""Pods with device claims, through an API server."""

from berth.client import Api, load_endpoint
from berth.objects.decode import from_document
from berth.objects.devices.resource_claims import ResourceClaim
from berth.scheduler.writing.claim_writer import ApiClaimWriter
from tests.failures.reporting import reports
from tests.unit.client.conftest import transport_to
from tests.unit.scheduler_at_work import eventually, node, scheduling

DRA = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def slice_of(node_name, *models):
    devices = [{"name": f"gpu-{i}", "attributes": {"model": {"string": m}}} for i, m in enumerate(models)]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": DRA,
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node_name}"},
        "spec": {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": devices},
    }


def device_class(**spec):
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": DRA,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector], **spec},
    }


def claim(name, model):
    expression = f'device.attributes["{DRIVER}"].model == "{model}"'
    wanted = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
    }
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}},
    }


def pod(name, claim_name="", **requests):
    claims = [{"name": "c", "resourceClaimName": claim_name}] if claim_name else []
    resources = {"requests": requests, "limits": requests} if requests else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "m", "image": "app:1", "resources": resources}],
            "resourceClaims": claims,
        },
    }


async def give_back(tmp_path, document):
    """Take a claim's allocation away, as the controller does once its pods are gone."""
    endpoint = load_endpoint(kubeconfig=str(tmp_path / "kubeconfig"), environ={})
    async with transport_to(endpoint) as transport:
        await ApiClaimWriter(Api(transport)).deallocate(from_document(document, ResourceClaim))


async def delete_rule(tmp_path, name):
    endpoint = load_endpoint(kubeconfig=str(tmp_path / "kubeconfig"), environ={})
    async with transport_to(endpoint) as transport:
        await transport.request("DELETE", f"/apis/resource.k8s.io/v1beta2/devicetaintrules/{name}")


def stored(sandbox, plural):
    plural = f"{plural}.resource.k8s.io" if plural == "resourceclaims" else plural
    entries = (entry.decode() for entry in sandbox.store.collection(plural).entries())
    return {document["metadata"]["name"]: document for document in entries}


def places(sandbox):
    pods = stored(sandbox, "pods").items()
    return {name: p["spec"]["nodeName"] for name, p in pods if p["spec"].get("nodeName")}


def results(claim):
    return [(r["pool"], r["device"]) for r in claim["status"]["allocation"]["devices"]["results"]]


@reports("devices-missing", condition="`PodScheduled=False`: `cannot allocate all claims`")
async def test_devices_come_with_the_node(tmp_path):
    """Each pod goes where its device is; one that finds none goes once a claim gives its device back."""
    objects = [node("n0"), node("n1"), device_class(), slice_of("n0", "a"), slice_of("n1", "b", "b")]
    claims = [claim("first", "a"), claim("second", "b"), claim("late", "a")]
    async with scheduling(tmp_path / "kubeconfig", *objects, *claims) as (sandbox, _):
        sandbox.load([pod("x", "first"), pod("y", "second")])
        await eventually(lambda: {"x": "n0", "y": "n1"} == places(sandbox))
        first = stored(sandbox, "resourceclaims")["first"]
        assert [("n0", "gpu-0")] == results(first)
        assert ["x"] == [consumer["name"] for consumer in first["status"]["reservedFor"]]
        assert ["resource.kubernetes.io/delete-protection"] == first["metadata"]["finalizers"]

        sandbox.load([pod("z", "late")])
        await eventually(lambda: "conditions" in stored(sandbox, "pods")["z"]["status"])
        (condition,) = stored(sandbox, "pods")["z"]["status"]["conditions"]
        assert ("PodScheduled", "False") == (condition["type"], condition["status"])
        assert "cannot allocate all claims" in condition["message"]
        assert "still not schedulable" in condition["message"]
        await give_back(tmp_path, first)
        await eventually(lambda: "n0" == places(sandbox).get("z"))


async def test_rules_taint_devices(tmp_path):
    """A device that an administrator's rule taints is given to no pod until the rule is taken back."""
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "repair"},
        "spec": {"deviceSelector": {"pool": "n0"}, "taint": {"key": "broken", "effect": "NoSchedule"}},
    }
    objects = [node("n0"), device_class(), slice_of("n0", "a"), claim("first", "a"), rule]
    gates = {"DRADeviceTaintRules": True}
    async with scheduling(tmp_path / "kubeconfig", *objects, gates=gates) as (sandbox, core):
        sandbox.load([pod("x", "first")])
        await eventually(lambda: "conditions" in stored(sandbox, "pods")["x"]["status"])
        (condition,) = stored(sandbox, "pods")["x"]["status"]["conditions"]
        assert "cannot allocate all claims" in condition["message"]
        assert ["repair"] == [each.name for each in core.listers.device_taint_rules]

        await delete_rule(tmp_path, "repair")
        await eventually(lambda: "n0" == places(sandbox).get("x"))


async def test_extended_resources_get_a_claim(tmp_path):
    """A pod that asks for a resource gets devices of the class behind it, and a claim that says so."""
    gpu_class = device_class(extendedResourceName="example.com/gpu")
    async with scheduling(
        tmp_path / "kubeconfig", node("n0"), node("n1"), gpu_class, slice_of("n1", "a", "a")
    ) as (sandbox, _):
        sandbox.load([pod("x", **{"example.com/gpu": "2"})])
        await eventually(lambda: {"x": "n1"} == places(sandbox))
        ((name, made),) = stored(sandbox, "resourceclaims").items()

        assert name.startswith("x-extended-resources-")
        assert [("n1", "gpu-0"), ("n1", "gpu-1")] == results(made)
        reported = stored(sandbox, "pods")["x"]["status"]["extendedResourceClaimStatus"]
        assert name == reported["resourceClaimName"]


async def test_extended_resources_are_scored_by_devices(tmp_path):
    """The node with fewer devices is filled first where the fullest is best; claims count at once."""
    strategy = {"type": "MostAllocated", "resources": [{"name": "example.com/gpu", "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [fit]}
    objects = [node("n0"), node("n1"), slice_of("n0", *"aaaaa"), slice_of("n1", *"aaaaaa")]
    objects.append(device_class(extendedResourceName="example.com/gpu"))
    async with scheduling(tmp_path / "kubeconfig", *objects, profiles=[profile]) as (sandbox, _):
        for number in range(6):
            name = f"p{number}"
            sandbox.load([pod(name, **{"example.com/gpu": "1"})])
            await eventually(lambda name=name: name in places(sandbox))

        assert {f"p{i}": "n0" if i < 5 else "n1" for i in range(6)} == places(sandbox)
