"""Devices: claims that users write, slices that drivers write, classes and taints that administrators write.

The API server bounds most lists: validation of resource.k8s.io/v1 (Kubernetes v1.36). Beyond its bounds
the rows count all the same: what grows faster than its input is a fault at any bound.
"""

from tests.hostile.growth_rows.row import OBJECTS, of_objects, thing

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
CLAIMING = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}


def cel(expression="true"):
    return {"cel": {"expression": expression}}


def at_cluster(made):
    """The same object of no namespace."""
    del made["metadata"]["namespace"]
    return made


def device_class(name="gpu", **spec):
    return at_cluster(thing(API, "DeviceClass", name, spec=spec))


def resource_slice(name="s", devices=None, **spec):
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"d{i}"} for i in range(4)] if devices is None else devices
    said = {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": listed, **spec}
    return at_cluster(thing(API, "ResourceSlice", name, spec=said))


def request(name="r", **exactly):
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly},
    }


def claim(name="c", requests=None, status=None, **devices):
    listed = [request()] if requests is None else requests
    return thing(
        API, "ResourceClaim", name, spec={"devices": {"requests": listed, **devices}}, status=status or {}
    )


def tolerations(n):
    return [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]


def opaque(i=0, size=1, **more):
    return {"opaque": {"driver": DRIVER, "parameters": {f"p{j}": i for j in range(size)}}, **more}


def allocated(results, **more):
    """The status of a claim that has these devices."""
    return {"allocation": {"devices": {"results": results, **more}}, "reservedFor": []}


def result(i=0, **more):
    return {"request": "r", "driver": DRIVER, "pool": "s", "device": f"d{i}", **more}


def consumers(n):
    return [{"resource": "pods", "name": f"p{i}", "uid": f"u{i}"} for i in range(n)]


def derived(n):
    return [{"name": f"a/{i}", "expression": str(i)} for i in range(n)]


def sets(n):
    """A compatibility group of each of so many counter sets."""
    return {f"s{i}": ["g"] for i in range(n)}


def with_devices(n):
    """A slice of so many devices, each with an attribute of its own."""
    return resource_slice(
        devices=[
            {"name": f"d{i}", "attributes": {"model": {"string": "m"}, "number": {"int": i}}}
            for i in range(n)
        ]
    )


CLAIMS = {
    "requests": (32, lambda n: [with_devices(n), claim(requests=[request(f"r{i}") for i in range(n)])]),
    "requests that no device meets": (
        32,
        lambda n: [
            with_devices(n),
            claim(
                requests=[*(request(f"r{i}") for i in range(n - 1)), request("z", selectors=[cel("false")])]
            ),
        ],
    ),
    "firstAvailable": (
        8,
        lambda n: [
            resource_slice(),
            claim(
                requests=[
                    {
                        "name": "r",
                        "firstAvailable": [
                            {
                                "name": f"s{i}",
                                "deviceClassName": "gpu",
                                "allocationMode": "ExactCount",
                                "count": 1,
                                "selectors": [cel("false")],
                            }
                            for i in range(n)
                        ],
                    }
                ]
            ),
        ],
    ),
    "selectors": (
        32,
        lambda n: [
            resource_slice(),
            claim(requests=[request(selectors=[cel(f'device.driver != "{i}"') for i in range(n)])]),
        ],
    ),
    "bytes of an expression": (
        2_500,
        lambda n: [
            resource_slice(),
            claim(requests=[request(selectors=[cel("true" + " && true" * (n // 2))])]),
        ],
    ),
    "constraints": (
        32,
        lambda n: [
            with_devices(4),
            claim(constraints=[{"requests": ["r"], "matchAttribute": f"{DRIVER}/model"}] * n),
        ],
    ),
    "requests of a constraint": (
        32,
        lambda n: [
            with_devices(n),
            claim(
                requests=[request(f"r{i}") for i in range(n)],
                constraints=[{"requests": [f"r{i}" for i in range(n)], "matchAttribute": f"{DRIVER}/model"}],
            ),
        ],
    ),
    "derivedAttributes": (
        8,
        lambda n: [
            resource_slice(),
            claim(
                requests=[
                    request(derivedAttributes=derived(n)),
                    {
                        "name": "s",
                        "firstAvailable": [
                            {"name": "s0", "deviceClassName": "gpu", "derivedAttributes": derived(n)}
                        ],
                    },
                ]
            ),
        ],
    ),
    "compatibility groups of an allocation": (
        None,
        lambda n: [
            resource_slice(),
            claim(
                status=allocated(
                    [result(compatibilityGroups={"s": [f"g{i}" for i in range(n)], **sets(n)})],
                )
            ),
        ],
    ),
    "config": (32, lambda n: [resource_slice(), claim(config=[opaque(i) for i in range(n)])]),
    "opaque parameters": (1_000, lambda n: [resource_slice(), claim(config=[opaque(size=n)])]),
    "tolerations": (16, lambda n: [resource_slice(), claim(requests=[request(tolerations=tolerations(n))])]),
    "capacity": (
        32,
        lambda n: [
            resource_slice(devices=[{"name": "d0", "capacity": {f"c{i}": {"value": "1"} for i in range(n)}}]),
            claim(requests=[request(capacity={"requests": {f"c{i}": "1" for i in range(n)}})]),
        ],
    ),
    "count": (32, lambda n: [with_devices(n), claim(requests=[request(count=n)])]),
    "allocated devices": (
        32,
        lambda n: [with_devices(n), claim(status=allocated([result(i) for i in range(n)]))],
    ),
    "node selector of the allocation": (
        None,
        lambda n: [
            resource_slice(),
            claim(
                status={
                    "allocation": {
                        "devices": {"results": [result()]},
                        "nodeSelector": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]}
                                for i in range(n)
                            ]
                        },
                    }
                }
            ),
        ],
    ),
    "configuration of the allocation": (
        64,
        lambda n: [
            resource_slice(),
            claim(status=allocated([result()], config=[opaque(i, source="FromClaim") for i in range(n)])),
        ],
    ),
    "conditions of a device": (
        8,
        lambda n: [
            resource_slice(),
            claim(
                status={
                    **allocated([result(bindingConditions=[f"c{i}" for i in range(n)])]),
                    "devices": [
                        {
                            "driver": DRIVER,
                            "pool": "s",
                            "device": "d0",
                            "conditions": [{"type": f"c{i}", "status": "True"} for i in range(n)],
                        }
                    ],
                }
            ),
        ],
    ),
    "reservedFor": (
        256,
        lambda n: [
            resource_slice(),
            claim(status={**allocated([result()]), "reservedFor": consumers(n)}),
        ],
    ),
    "objects": (OBJECTS, lambda n: [resource_slice(), *(claim(f"c{i or ''}") for i in range(n))]),
    "allocated objects": (
        OBJECTS,
        lambda n: [
            resource_slice(devices=[{"name": f"d{i}"} for i in range(4)]),
            claim(),
            *(claim(f"held{i}", status=allocated([{**result(i), "pool": "other"}])) for i in range(n)),
        ],
    ),
}


def one_device(**more):
    """A slice of a device that says this."""
    return resource_slice(devices=[{"name": "d0", **more}])


SLICES = {
    "devices": (128, with_devices),
    "attributes": (
        32,
        lambda n: one_device(attributes={f"a{i}": {"int": i} for i in range(n)}),
    ),
    "capacities": (32, lambda n: one_device(capacity={f"c{i}": {"value": "1"} for i in range(n)})),
    "valid values of a capacity": (
        10,
        lambda n: one_device(
            allowMultipleAllocations=True,
            capacity={
                "c": {
                    "value": str(n),
                    "requestPolicy": {"default": "1", "validValues": [str(i + 1) for i in range(n)]},
                }
            },
        ),
    ),
    "taints": (
        16,
        lambda n: one_device(
            taints=[{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(n)]
        ),
    ),
    "consumesCounters": (
        2,
        lambda n: resource_slice(
            devices=[
                {
                    "name": "d0",
                    "consumesCounters": [
                        {"counterSet": f"s{i}", "counters": {"c": {"value": "1"}}} for i in range(n)
                    ],
                }
            ],
            sharedCounters=[{"name": f"s{i}", "counters": {"c": {"value": "4"}}} for i in range(n)],
        ),
    ),
    "compatibilityGroups": (
        None,
        lambda n: resource_slice(
            devices=[
                {
                    "name": "d0",
                    "consumesCounters": [
                        {
                            "counterSet": "s",
                            "counters": {"c": {"value": "1"}},
                            "compatibilityGroups": [f"g{i}" for i in range(n)],
                        }
                    ],
                }
            ],
            sharedCounters=[{"name": "s", "counters": {"c": {"value": "4"}}}],
        ),
    ),
    "counters of a set": (
        32,
        lambda n: resource_slice(
            devices=[
                {
                    "name": "d0",
                    "consumesCounters": [
                        {"counterSet": "s", "counters": {f"c{i}": {"value": "1"} for i in range(n)}}
                    ],
                }
            ],
            sharedCounters=[{"name": "s", "counters": {f"c{i}": {"value": "4"} for i in range(n)}}],
        ),
    ),
    "sharedCounters": (
        8,
        lambda n: resource_slice(
            devices=[{"name": "d0"}],
            sharedCounters=[{"name": f"s{i}", "counters": {"c": {"value": "4"}}} for i in range(n)],
        ),
    ),
    "node selector": (
        None,
        lambda n: at_nodes(
            [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(n)]
        ),
    ),
    "bindingConditions": (
        4,
        lambda n: one_device(
            bindingConditions=[f"c{i}" for i in range(n)],
            bindingFailureConditions=[f"f{i}" for i in range(n)],
        ),
    ),
}


def at_nodes(terms):
    """A slice that the nodes of these terms reach."""
    made = resource_slice(nodeSelector={"nodeSelectorTerms": terms})
    del made["spec"]["allNodes"]
    return made


def rule(i):
    spec = {
        "deviceSelector": {"driver": DRIVER, "device": f"d{i}"},
        "taint": {"key": f"k{i}", "value": "v", "effect": "NoSchedule"},
    }
    return at_cluster(thing("resource.k8s.io/v1beta2", "DeviceTaintRule", f"rule{i}", spec=spec))


ROWS = [
    *(
        of_objects(
            "ResourceClaim",
            field,
            lambda n, shape=shape: [device_class(), *shape(n)],
            max_entries=max_entries,
            **CLAIMING,
        )
        for field, (max_entries, shape) in CLAIMS.items()
    ),
    *(
        of_objects(
            "ResourceSlice",
            field,
            lambda n, shape=shape: [device_class(), shape(n), claim()],
            max_entries=max_entries,
            **CLAIMING,
        )
        for field, (max_entries, shape) in SLICES.items()
    ),
    of_objects(
        "ResourceSlice",
        "objects",
        lambda n: [device_class(), claim(), *(resource_slice(f"s{i}") for i in range(n))],
        max_entries=OBJECTS,
        **CLAIMING,
    ),
    of_objects(
        "DeviceClass",
        "selectors",
        lambda n: [
            device_class(selectors=[cel(f'device.driver != "{i}"') for i in range(n)]),
            resource_slice(),
            claim(),
        ],
        max_entries=32,
        **CLAIMING,
    ),
    of_objects(
        "DeviceClass",
        "config",
        lambda n: [device_class(config=[opaque(i) for i in range(n)]), resource_slice(), claim()],
        max_entries=32,
        **CLAIMING,
    ),
    of_objects(
        "DeviceClass",
        "objects, each with an extended resource",
        lambda n: [
            device_class(),
            resource_slice(),
            claim(),
            *(device_class(f"c{i}", extendedResourceName=f"example.com/r{i}") for i in range(n)),
        ],
        max_entries=OBJECTS,
        **CLAIMING,
    ),
    of_objects(
        "DeviceTaintRule",
        "objects",
        lambda n: [device_class(), resource_slice(), claim(), *(rule(i) for i in range(n))],
        max_entries=OBJECTS,
        **CLAIMING,
    ),
]
