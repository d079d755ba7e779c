"""Claims of devices, and the slices that a driver writes."""

from tests.hostile.arena import pod
from tests.hostile.playing import Case

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def device_class(_nodes=0, expression=f'device.driver == "{DRIVER}"'):
    """The class of all devices of the driver."""
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def resource_slice(name, devices, **where):
    """A pool of one slice."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": devices, **where}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device(number):
    """A device with an attribute."""
    return {"name": f"d{number}", "attributes": {"number": {"int": number}}}


def cluster(with_devices, each):
    """So many nodes with so many devices each, and their class."""

    def objects(nodes):
        yield device_class()
        for number in range(min(nodes, with_devices)):
            yield resource_slice(
                f"node-{number}", [device(i) for i in range(each)], nodeName=f"node-{number}"
            )

    return objects


def claim(name, *expressions, config=None):
    """A claim with a request for each expression."""
    requests = [
        {
            "name": f"r{i}",
            "exactly": {
                "deviceClassName": "gpu",
                "selectors": [{"cel": {"expression": expression}}],
                "allocationMode": "ExactCount",
                "count": 1,
            },
        }
        for i, expression in enumerate(expressions)
    ]
    devices = {"requests": requests, **({"config": config} if config else {})}
    return {"kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": devices}}


async def use(arena, made, verbatim=None):
    """Write the claim, and a pod that uses it."""
    name = made["metadata"]["name"]
    await arena.write(made, verbatim)
    await arena.write(pod(name, resourceClaims=[{"name": "c", "resourceClaimName": name}]))


async def backtracking_regex(arena):
    text = "a" * 42 + "!"
    await use(arena, claim("regex", f'"{text}".matches("^(a+)+$")'))


async def hard_search(arena):
    await use(arena, claim("search", *["true"] * 9, 'device.attributes["gpu.example.com"].number == 99'))


async def nested_all(arena):
    numbers = ",".join(map(str, range(50)))
    inner = f"[{numbers}].all(c, a + b + c >= 0)"
    await use(arena, claim("nested", f"[{numbers}].all(a, [{numbers}].all(b, {inner}))"))


async def opaque(arena, name, value):
    """Write a claim with that value, JSON as Go reads it, in its parameters, and a pod that uses it."""
    config = [{"opaque": {"driver": DRIVER, "parameters": {"a": "@value"}}}]
    await use(arena, claim(name, "true", config=config), {"@value": value})


async def deep_parameters(arena):
    await opaque(arena, "deep", "[" * 2_000 + "]" * 2_000)


async def half_a_surrogate(arena):
    await opaque(arena, "half", r'{"\ud800":"\udfff"}')


CASES = (
    Case(
        "C1", "user", "a claim whose selector is a backtracking expression", backtracking_regex, cluster(5, 2)
    ),
    Case(
        "C5",
        "user",
        "a claim of 10 requests, the last impossible; 5 nodes of 16",
        hard_search,
        cluster(5, 16),
    ),
    Case("H3", "user", "a claim of three nested loops over 50; 12 devices", nested_all, cluster(1, 12)),
    Case(
        "D1",
        "user",
        "a claim with parameters 2,000 levels deep (needs --real)",
        deep_parameters,
        cluster(1, 1),
    ),
    Case(
        "D3",
        "user",
        "a claim with halves of surrogates in its parameters (needs --real)",
        half_a_surrogate,
        cluster(1, 1),
    ),
)
