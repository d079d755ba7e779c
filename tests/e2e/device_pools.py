"""Device classes and pools drawn by chance: local, of a zone, of all nodes, in parts, out of date, shared."""

from tests.e2e.side_by_side import HOST, ZONE, labelled, thing

API = "resource.k8s.io/v1"
DRIVER, NIC = "gpu.example.com", "nic.example.com"
POLICIES = (
    {"default": "1", "validValues": ["1", "2", "5"]},
    {"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}},
    {"default": "3", "validRange": {"min": "3"}},
    None,
)
VRAM = (
    {"default": "1Gi", "validRange": {"min": "1Gi", "step": "512Mi"}},
    {"default": "512Mi", "validRange": {"min": "512Mi", "max": "6Gi"}},
    {"default": "500M", "validValues": ["500M", "1536Mi", "6G"]},
)


def classes(chance):
    """Classes: by driver, of everything, with configuration, for extended resources."""

    def made(name, expression, **fields):
        return thing(
            "DeviceClass", name, API, spec={"selectors": [{"cel": {"expression": expression}}], **fields}
        )

    config = [{"opaque": {"driver": DRIVER, "parameters": {"from": "class"}}}]
    yield made("gpu", f'device.driver == "{DRIVER}"', extendedResourceName="example.com/gpu")
    yield made("nic", f'device.driver == "{NIC}"')
    yield made("any", "true", config=config if chance.random() < 0.5 else [])
    yield made("fast", f'has(device.attributes["{DRIVER}"].fast)', config=config)
    yield made("plugin", f'device.driver == "{DRIVER}"', extendedResourceName="example.com/plugin")


def pools(chance, names):
    """Slices of pools; `names` are the nodes there are."""
    for name in names:
        if chance.random() < 0.85:
            yield from _pool(chance, f"local-{name}", chance.randint(1, 6), DRIVER, nodeName=name)
        if chance.random() < 0.4:
            yield from _partitioned(chance, name)
    zone = {"nodeSelectorTerms": [labelled(ZONE, chance.choice("ab"))]}
    yield from _pool(chance, "zone", chance.randint(1, 3), NIC, nodeSelector=zone)
    yield from _pool(chance, "everywhere", chance.randint(1, 3), NIC, allNodes=True)
    if chance.random() < 0.5:
        yield from _each_its_own(chance, names)


def _pool(chance, name, count, driver, **where):
    """One pool of one slice or two, perhaps with a slice left from before, perhaps with one missing."""
    made = [_device(chance, f"d{i}", driver) for i in range(count)]
    split = chance.randint(0, count)
    parts = [part for part in (made[:split], made[split:]) if part]
    missing = chance.random() < 0.08
    pool = {"name": name, "generation": 2, "resourceSliceCount": len(parts) + missing}
    if len(parts) > 1 and chance.random() < 0.06:
        parts[1][0]["name"] = parts[0][0]["name"]
    for i, part in enumerate(parts):
        yield _slice(f"{name}-{i}", driver, pool, devices=part, **where)
    if chance.random() < 0.2:
        old = {"name": name, "generation": 1, "resourceSliceCount": 1}
        yield _slice(f"{name}-old", driver, old, devices=[_device(chance, "d0", driver)], **where)


def _slice(name, driver, pool, **fields):
    return thing("ResourceSlice", name, API, spec={"driver": driver, "pool": pool, **fields})


def _device(chance, name, driver):
    attributes = {
        "model": {"string": chance.choice("xyz")},
        "numa": {"int": chance.choice((0, 1))},
        "version": {"version": chance.choice(("1.2.3", "1.10.0", "2.0.0-beta"))},
    }
    if chance.random() < 0.5:
        attributes["fast"] = {"bool": chance.random() < 0.5}
    if chance.random() < 0.6:
        attributes["shared.example.com/rack"] = {"string": chance.choice(("r1", "r2"))}
    if driver == NIC:
        attributes = {
            f"{DRIVER}/{key}" if "/" not in key else key: value for key, value in attributes.items()
        }
    memory = chance.choice(("2Gi", "8Gi"))
    capacity = {"memory" if driver == DRIVER else f"{DRIVER}/memory": {"value": memory}}
    made = {"name": name, "attributes": attributes, "capacity": capacity}
    if chance.random() < 0.15:
        effect = chance.choice(("NoSchedule", "NoExecute", "None"))
        made["taints"] = [{"key": chance.choice(("bad", "old")), "value": "v", "effect": effect}]
    if driver == NIC and chance.random() < 0.6:
        made["allowMultipleAllocations"] = True
        made["capacity"]["bandwidth"] = {"value": "10"}
        vram = {"value": chance.choice(("8Gi", "8G")), "requestPolicy": chance.choice(VRAM)}
        made["capacity"]["vram"] = vram
        if policy := chance.choice(POLICIES):
            made["capacity"]["bandwidth"]["requestPolicy"] = policy
    return made


def _partitioned(chance, node):
    """A pool whose devices are partitions that share counters."""
    pool = {"name": f"partitions-{node}", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "whole", "counters": {"slots": {"value": "4"}, "memory": {"value": "8Gi"}}}]
    devices = []
    for i in range(chance.randint(2, 6)):
        device = _device(chance, f"part-{i}", DRIVER)
        taken = {
            "slots": {"value": str(chance.randint(1, 4))},
            "memory": {"value": f"{chance.randint(1, 4)}Gi"},
        }
        device["consumesCounters"] = [{"counterSet": "whole", "counters": taken}]
        devices.append(device)
    yield _slice(f"partitions-{node}-0", DRIVER, pool, nodeName=node, sharedCounters=counters)
    yield _slice(f"partitions-{node}-1", DRIVER, pool, nodeName=node, devices=devices)


def _each_its_own(chance, names):
    """A pool whose devices say one by one which nodes reach them."""
    pool = {"name": "each", "generation": 1, "resourceSliceCount": 1}
    places = (
        {"nodeName": chance.choice(names)},
        {"allNodes": True},
        {"nodeSelector": {"nodeSelectorTerms": [labelled(HOST, *names[:2])]}},
        {"nodeSelector": {"nodeSelectorTerms": [labelled(ZONE, "a")]}},
    )
    devices = [
        {**_device(chance, f"e{i}", DRIVER), **chance.choice(places)} for i in range(chance.randint(2, 5))
    ]
    yield _slice("each", DRIVER, pool, perDeviceNodeSelection=True, devices=devices)
