"""Devices: classes, slices of several kinds, and claims of all forms."""

from tests.chance.draw import ZONE, ZONES, thing
from tests.e2e.side_by_side import labelled

DRIVER, OTHER, CLAIMS = "gpu.example.com", "nic.example.com", 40
API = "resource.k8s.io/v1"
MODELS, NUMAS = ("x", "y", "z"), (0, 1)
OURS = f'device.driver == "{DRIVER}"'
LARGE = f'{OURS} && device.capacity["{DRIVER}"].memory.compareTo(quantity("4Gi")) >= 0'
EXPRESSIONS = (
    f'{OURS} && device.attributes["{DRIVER}"].model == "x"',
    f'{OURS} && device.attributes["{DRIVER}"].model in ["x", "z"] && device.attributes["{DRIVER}"].numa == 1',
    LARGE,
    f'{OURS} && device.attributes["{DRIVER}"].driverVersion.isGreaterThan(semver("1.5.0"))',
    f'has(device.attributes["{DRIVER}"].fast) && device.attributes["{DRIVER}"].fast',
    f'device.driver == "{OTHER}" || device.attributes["{DRIVER}"].model.startsWith("y")',
    "device.allowMultipleAllocations",
)
# Fails on devices that lack it, which fails the attempt.
BROKEN = f'device.attributes["{DRIVER}"].fast'


def devices(chance, names):
    """Classes, slices and claims; `names` are the nodes there are."""
    made = list(_classes())
    for name in names:
        if chance.maybe(0.7):
            made += _pool(chance, f"local-{name}", chance.randint(1, 5), DRIVER, nodeName=name)
    for zone in ZONES:
        terms = {"nodeSelectorTerms": [labelled(ZONE, zone)]}
        made += _pool(chance, f"zone-{zone}", 2, OTHER, nodeSelector=terms)
    made += _pool(chance, "everywhere", 2, OTHER, allNodes=True)
    made += _partitioned(chance, chance.choice(names))
    return made + [_claim(chance, f"d{i}") for i in range(CLAIMS)]


def of_pod(chance, mix):
    """A pod's resource claims; several pods may share one."""
    if not chance.maybe(mix["devices"]):
        return {}
    drawn = chance.sample(range(CLAIMS), chance.choice((1, 1, 1, 2)))
    return {"resourceClaims": [{"name": f"d{i}", "resourceClaimName": f"d{i}"} for i in drawn]}


def _classes():
    def device_class(name, expression, **fields):
        selectors = [{"cel": {"expression": expression}}]
        return thing("DeviceClass", name, API, spec={"selectors": selectors, **fields})

    yield device_class("gpu", OURS)
    yield device_class("nic", f'device.driver == "{OTHER}"')
    yield device_class("any", "true")
    yield device_class("large", LARGE, extendedResourceName="example.com/large")


def _pool(chance, name, count, driver, **where):
    """One pool of one slice or two."""
    made = [_device(chance, f"dev-{i}", driver) for i in range(count)]
    split = chance.choice((count, max(1, count // 2)))
    parts = [part for part in (made[:split], made[split:]) if part]
    pool = {"name": name, "generation": 1, "resourceSliceCount": len(parts)}
    return [
        thing(
            "ResourceSlice",
            f"{name}-{i}",
            API,
            spec={"driver": driver, "pool": pool, "devices": part, **where},
        )
        for i, part in enumerate(parts)
    ]


def _device(chance, name, driver):
    attributes = {
        "model": {"string": chance.choice(MODELS)},
        "numa": {"int": chance.choice(NUMAS)},
        "driverVersion": {"version": chance.choice(("1.2.3", "1.10.0", "2.0.0-beta"))},
    }
    if chance.maybe(0.5):
        attributes["fast"] = {"bool": chance.maybe(0.5)}
    made = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": chance.choice(("2Gi", "8Gi"))}},
    }
    if chance.maybe(0.15):
        effect = chance.choice(("NoSchedule", "NoExecute", "None"))
        made["taints"] = [{"key": chance.choice(("bad", "old")), "value": "v", "effect": effect}]
    if driver == OTHER and chance.maybe(0.5):
        made["allowMultipleAllocations"] = True
        made["capacity"]["bandwidth"] = {"value": "10", "requestPolicy": chance.choice(POLICIES)}
    return made


POLICIES = (
    {"default": "1", "validValues": ["1", "2", "5"]},
    {"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}},
    {"default": "3", "validRange": {"min": "3"}},
)


def _partitioned(chance, node):
    """A pool whose devices are partitions that share counters."""
    pool = {"name": "partitions", "generation": 2, "resourceSliceCount": 2}
    counters = {"name": "whole", "counters": {"slots": {"value": "4"}}}
    devices = []
    for i in range(5):
        device = _device(chance, f"part-{i}", DRIVER)
        taken = {"slots": {"value": str(chance.randint(1, 4))}}
        device["consumesCounters"] = [{"counterSet": "whole", "counters": taken}]
        devices.append(device)
    common = {"driver": DRIVER, "pool": pool, "nodeName": node}
    return [
        thing("ResourceSlice", "partitions-0", API, spec={**common, "sharedCounters": [counters]}),
        thing("ResourceSlice", "partitions-1", API, spec={**common, "devices": devices}),
    ]


def _claim(chance, name):
    requests = [_request(chance, f"r{i}") for i in range(chance.choice((1, 1, 1, 2, 3)))]
    spec = {"requests": requests}
    if chance.maybe(0.3):
        kind = chance.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        constraint = {kind: f"{DRIVER}/{chance.choice(('model', 'numa'))}"}
        if chance.maybe(0.4):
            constraint["requests"] = [chance.choice(requests)["name"]]
        spec["constraints"] = [constraint]
    return thing("ResourceClaim", name, API, "default", spec={"devices": spec})


def _request(chance, name):
    if chance.maybe(0.25):
        choices = [{"name": f"s{i}", **_asked(chance)} for i in range(chance.randint(1, 3))]
        return {"name": name, "firstAvailable": choices}
    exactly = _asked(chance)
    if chance.maybe(0.1):
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def _asked(chance):
    made = {"deviceClassName": chance.choice(("gpu", "gpu", "gpu", "nic", "any", "large"))}
    if chance.maybe(0.12):
        made["allocationMode"] = "All"
    else:
        made |= {"allocationMode": "ExactCount", "count": chance.choice((1, 1, 1, 2, 3))}
    if chance.maybe(0.4):
        made["selectors"] = [{"cel": {"expression": each}} for each in chance.some(EXPRESSIONS, 1, 2)]
    if chance.maybe(0.02):
        made["selectors"] = [{"cel": {"expression": BROKEN}}]
    if chance.maybe(0.25):
        toleration = {"key": "bad", "operator": "Equal", "value": "v"}
        made["tolerations"] = [chance.choice(({"operator": "Exists"}, toleration))]
    if made["deviceClassName"] == "nic" and chance.maybe(0.5):
        made["capacity"] = {"requests": {"bandwidth": chance.choice(("1", "3", "7"))}}
    return made
