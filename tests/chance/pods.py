"""Pods that are put together of all of it, those to be decided on and those that are on nodes already."""

from tests.chance import devices, volumes
from tests.chance.affinity import affinity, spreading, tolerations
from tests.chance.draw import APPS, NAMESPACES, TIERS, VERSIONS, node_expression, thing
from tests.chance.requests import containers

PRIORITIES = {"none": 5, "low": 2, "high": 3, "polite": 1}


def pods(chance, mix, count, names):
    """So many pods, called p0 and so on; `names` are the nodes there are."""
    return [pod(chance, mix, f"p{i}", names) for i in range(count)]


def placed(chance, mix, count, names):
    """Pods that a client has put on nodes, without a look at what they ask for."""
    made, taken = [], set()
    for i in range(count):
        new = pod(chance, {**mix, "volumes": 0, "devices": 0}, f"q{i}", names)
        new["spec"]["nodeName"] = chance.choice(names)
        new["spec"]["schedulerName"] = "another-scheduler"
        _open_ports_once(new["spec"], taken)
        new["status"] = {"phase": "Running", "startTime": f"2026-01-{chance.randint(1, 28):02d}T00:00:00Z"}
        made.append(new)
    return made


def _open_ports_once(spec, taken):
    """Drop host ports that another pod of the node has: kube-scheduler does not count how many have one."""
    for container in spec["containers"]:
        for port in container.pop("ports", ()):
            key = spec["nodeName"], port["hostPort"], port["protocol"]
            if key not in taken:
                taken.add(key)
                container["ports"] = [port]


def pod(chance, mix, name, names):
    """A pod with some of what makes a decision hard."""
    spec = containers(chance, mix)
    spec |= spreading(chance, mix) | tolerations(chance, mix)
    spec |= volumes.of_pod(chance, mix) | devices.of_pod(chance, mix)
    among = affinity(chance, mix, names)
    if among:
        spec["affinity"] = among
    if chance.maybe(mix["node_selector"]):
        spec["nodeSelector"] = _node_selector(chance)
    if chance.maybe(mix["profiles"]):
        spec["schedulerName"] = f"other-{chance.randrange(3)}"
    if chance.maybe(mix["priorities"]) and (priority := chance.one_in(PRIORITIES)) != "none":
        spec["priorityClassName"] = priority
    plain = "volumes" not in spec and "resourceClaims" not in spec
    namespace = chance.choice(NAMESPACES) if plain and chance.maybe(0.3) else "default"
    made = thing("Pod", name, namespace=namespace, spec=spec)
    made["metadata"]["labels"] = _labels(chance)
    return made


def _labels(chance):
    labels = {"app": chance.choice(APPS)}
    if chance.maybe(0.6):
        labels["version"] = chance.choice(VERSIONS)
    if chance.maybe(0.4):
        labels["tier"] = chance.choice(TIERS)
    return labels


def _node_selector(chance):
    while True:
        drawn = node_expression(chance)
        if drawn["operator"] == "In":
            return {drawn["key"]: drawn["values"][0]}
