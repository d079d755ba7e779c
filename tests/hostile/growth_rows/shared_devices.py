"""Devices that share counters or are shared themselves, and the lists within claims, slices and classes.

The API server's bounds are those of the validation of resource.k8s.io/v1 (Kubernetes v1.36); of an object
with several lists the smallest bound counts.
"""

from tests.hostile.growth_rows.devices import (
    CLAIMING,
    DRIVER,
    at_nodes,
    cel,
    claim,
    device_class,
    one_device,
    opaque,
    request,
    resource_slice,
    result,
    tolerations,
)
from tests.hostile.growth_rows.row import OBJECTS, lists_of_a_term, of_objects

MEMORY = "memory"


def counting_devices(n, available):
    """Devices of which each takes one of what a set of counters has."""
    taken = [{"counterSet": "s", "counters": {MEMORY: {"value": "1"}}}]
    return resource_slice(
        devices=[{"name": f"d{i}", "consumesCounters": taken} for i in range(n)],
        sharedCounters=[{"name": "s", "counters": {MEMORY: {"value": str(available)}}}],
    )


def shared_device(name, size, **policy):
    """A device that several claims have at once, as long as there is memory."""
    capacity = {"value": str(size), **({"requestPolicy": policy} if policy else {})}
    return {"name": name, "allowMultipleAllocations": True, "capacity": {MEMORY: capacity}}


def wanting(amount="1", name="r", **exactly):
    """A request for a part of a device."""
    return request(name, capacity={"requests": {MEMORY: amount}}, **exactly)


def holding(i, device="d0"):
    """A claim that has a part of a device."""
    share = {"shareID": f"00000000-0000-4000-8000-{i:012d}", "consumedCapacity": {MEMORY: "1"}}
    held = [{**result(), "device": device, **share}]
    return claim(f"held{i}", status={"allocation": {"devices": {"results": held}}})


def taking(i):
    """A claim that has a device which takes of a set of counters."""
    return claim(f"held{i}", status={"allocation": {"devices": {"results": [result(i)]}}})


STEPS = {"default": "1", "validRange": {"min": "1", "step": "1"}}
SHARED = {
    ("ResourceSlice", "devices of one set of counters", 32): lambda n: [
        device_class(),
        counting_devices(n, n),
        claim(requests=[request(count=n)]),
    ],
    ("ResourceSlice", "devices beyond their set of counters", 32): lambda n: [
        device_class(),
        counting_devices(n, n // 2),
        claim(requests=[request(count=n)]),
    ],
    ("ResourceClaim", "claims that took of a set of counters", 64): lambda n: [
        device_class(),
        counting_devices(n + 1, n + 1),
        *(taking(i) for i in range(n)),
        claim(),
    ],
    ("ResourceClaim", "claims that share a device", OBJECTS): lambda n: [
        device_class(),
        resource_slice(devices=[shared_device("d0", n + 1, **STEPS)]),
        *(holding(i) for i in range(n)),
        claim(requests=[wanting()]),
    ],
    ("ResourceClaim", "requests that share a device", 32): lambda n: [
        device_class(),
        resource_slice(devices=[shared_device("d0", n)]),
        claim(requests=[wanting(name=f"r{i}") for i in range(n)]),
    ],
    ("ResourceClaim", "requests beyond a shared device", 32): lambda n: [
        device_class(),
        resource_slice(devices=[shared_device("d0", n - 1)]),
        claim(requests=[wanting(name=f"r{i}") for i in range(n)]),
    ],
    ("ResourceSlice", "shared devices that are full", 128): lambda n: [
        device_class(),
        resource_slice(devices=[shared_device(f"d{i}", 1) for i in range(n)]),
        *(holding(i, f"d{i}") for i in range(n - 1)),
        claim(requests=[wanting()]),
    ],
    ("ResourceClaim", "requests for distinct shared devices", 32): lambda n: [
        device_class(),
        resource_slice(
            devices=[{**shared_device(f"d{i}", 2), "attributes": {"number": {"int": i}}} for i in range(n)]
        ),
        claim(
            requests=[wanting(name=f"r{i}") for i in range(n)],
            constraints=[{"distinctAttribute": f"{DRIVER}/number"}],
        ),
    ],
}


def alternative(n):
    """An alternative each list of which repeats, behind one that no device meets."""
    each = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    full = {
        "selectors": [cel(f'device.driver != "{i}"') for i in range(n)],
        "tolerations": tolerations(n),
        "capacity": {"requests": {f"c{i}": "1" for i in range(n)}},
    }
    listed = [{"name": "a", **each, "selectors": [cel("false")]}, {"name": "b", **each, **full}]
    return {"name": "r", "firstAvailable": listed}


def configuration(n, **more):
    """A configuration for this many requests."""
    return opaque(size=n, requests=[f"r{i}" for i in range(n)], **more)


def allocated_with_lists(n):
    given = {
        "tolerations": tolerations(n),
        "bindingConditions": ["ready"],
        "bindingFailureConditions": [f"c{i}" for i in range(n)],
        "consumedCapacity": {f"c{i}": "1" for i in range(n)},
    }
    return {"allocation": {"devices": {"results": [result(**given)]}}}


def allocated_at(terms):
    """An allocation that the nodes of these terms reach."""
    selector = {"nodeSelectorTerms": terms}
    return {"allocation": {"devices": {"results": [result()]}, "nodeSelector": selector}}


def reported(n):
    """What a driver says of an allocated device."""
    listed = {"ips": [f"10.0.{i}.0/24" for i in range(n)]}
    said = {"driver": DRIVER, "pool": "s", "device": "d0", "data": {f"k{i}": i for i in range(n)}}
    return {"allocation": {"devices": {"results": [result()]}}, "devices": [{**said, "networkData": listed}]}


def of_several_values(n):
    """A device whose attributes have several values each."""
    return one_device(
        attributes={
            "ints": {"ints": list(range(n))},
            "bools": {"bools": [True] * n},
            "strings": {"strings": [f"s{i}" for i in range(n)]},
            "versions": {"versions": [f"1.0.{i}" for i in range(n)]},
        }
    )


def at_nodes_of_its_own(terms):
    """A slice whose device says which nodes reach it."""
    made = resource_slice(
        devices=[{"name": "d0", "nodeSelector": {"nodeSelectorTerms": terms}}], perDeviceNodeSelection=True
    )
    del made["spec"]["allNodes"]
    return made


LISTS = {
    ("ResourceClaim", "lists of an alternative", 16): lambda n: [
        device_class(),
        resource_slice(devices=[{"name": "d0", "capacity": {f"c{i}": {"value": "1"} for i in range(n)}}]),
        claim(requests=[alternative(n)]),
    ],
    ("ResourceClaim", "requests of configurations", 32): lambda n: [
        device_class(),
        resource_slice(devices=[{"name": f"d{i}"} for i in range(n)]),
        claim(requests=[request(f"r{i}") for i in range(n)], config=[configuration(n)]),
    ],
    ("ResourceClaim", "requests of allocated configurations", 32): lambda n: [
        device_class(),
        resource_slice(),
        claim(
            status={
                "allocation": {
                    "devices": {
                        "results": [result()],
                        "config": [configuration(n, source="FromClaim")],
                    }
                }
            }
        ),
    ],
    ("ResourceClaim", "lists of an allocated device", 16): lambda n: [
        device_class(),
        resource_slice(),
        claim(status=allocated_with_lists(n)),
    ],
    ("ResourceClaim", "lists of a term of the allocation", None): lambda n: [
        device_class(),
        resource_slice(),
        claim(status=allocated_at(lists_of_a_term(n))),
    ],
    ("ResourceClaim", "data of an allocated device", None): lambda n: [
        device_class(),
        resource_slice(),
        claim(status=reported(n)),
    ],
    ("ResourceSlice", "values of attributes", 12): lambda n: [
        device_class(),
        of_several_values(n),
        claim(requests=[request(selectors=[cel(f'device.driver == "{DRIVER}"')])]),
    ],
    ("ResourceSlice", "lists of a term", None): lambda n: [
        device_class(),
        at_nodes(lists_of_a_term(n)),
        claim(),
    ],
    ("ResourceSlice", "terms of a device", None): lambda n: [
        device_class(),
        at_nodes_of_its_own(
            [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(n)]
        ),
        claim(),
    ],
    ("ResourceSlice", "lists of a device's term", None): lambda n: [
        device_class(),
        at_nodes_of_its_own(lists_of_a_term(n)),
        claim(),
    ],
    ("DeviceClass", "requests of a configuration", 32): lambda n: [
        device_class(config=[configuration(n)]),
        resource_slice(),
        claim(),
    ],
}

ROWS = [
    of_objects(
        kind,
        field,
        shape,
        max_entries=max_entries,
        **CLAIMING,
    )
    for (kind, field, max_entries), shape in {**SHARED, **LISTS}.items()
]
