"""What pods ask for: containers of all kinds, overhead, requests of the pod, ports, images."""

from tests.chance.nodes import IMAGE_NAMES

CPU, MEMORY = ("0", "10m", "100m", "250m", "500m", "1", "1500m"), ("0", "64Mi", "200Mi", "500M", "1Gi", "2Gi")
STORAGE, ADDRESSES = ("0", "1Gi", "3G"), ("", "0.0.0.0", "127.0.0.1", "10.0.0.1")


def containers(chance, mix):
    """The part of a pod's spec that is about containers and resources."""
    rich = chance.maybe(mix["containers"])
    made = {"containers": [_container(chance, mix, f"c{i}") for i in range(chance.randint(1, 1 + 2 * rich))]}
    if rich and chance.maybe(0.6):
        made["initContainers"] = [_init(chance, mix, f"i{i}") for i in range(chance.randint(1, 3))]
    if rich and chance.maybe(0.3):
        made["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    if rich and chance.maybe(0.3):
        made["resources"] = {"requests": _pod_level(made)}
    _ports(chance, mix, made)
    return made


def _container(chance, mix, name):
    requests = {}
    for resource, amounts, often in (
        ("cpu", CPU, 0.8),
        ("memory", MEMORY, 0.8),
        ("ephemeral-storage", STORAGE, 0.2),
    ):
        if chance.maybe(often):
            requests[resource] = chance.choice(amounts)
    limits = {}
    if chance.maybe(mix["extended"]):
        limits["example.com/gpu"] = requests["example.com/gpu"] = chance.choice(("0", "1", "2"))
    if chance.maybe(mix["extended"] / 2):
        limits["hugepages-2Mi"] = requests["hugepages-2Mi"] = "16Mi"
        requests.setdefault("cpu", "10m")
    made = {"name": name, "image": chance.choice(IMAGE_NAMES), "resources": {"requests": requests}}
    if limits:
        made["resources"]["limits"] = limits
    return made


def _init(chance, mix, name):
    made = _container(chance, mix, name)
    return made | ({"restartPolicy": "Always"} if chance.maybe(0.5) else {})


def _pod_level(spec):
    """Requests of the whole pod: more than its containers can add up to, as the API wants it."""
    count = len(spec["containers"]) + len(spec.get("initContainers", ()))
    return {"cpu": f"{1500 * count + 100}m", "memory": f"{2 * count}Gi"}


def _ports(chance, mix, spec):
    """Host ports, none of them twice in a pod."""
    drawn = set()
    for container in spec["containers"]:
        if not chance.maybe(mix["ports"]):
            continue
        port, protocol = chance.choice((8080, 8081)), chance.choice(("TCP", "TCP", "UDP", "SCTP"))
        if (port, protocol) in drawn:
            continue
        drawn.add((port, protocol))
        opened = {"containerPort": 80, "hostPort": port, "protocol": protocol}
        address = chance.choice(ADDRESSES)
        container["ports"] = [opened | ({"hostIP": address} if address else {})]
