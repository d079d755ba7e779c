"""States of a cluster as the API shows them: valid ones, placed by a first-fit of their own."""

import copy
from dataclasses import dataclass, field

from hypothesis import strategies as st

GPU = "gpu-share.berth.dev"


@dataclass
class State:
    """Nodes, pods and events, with finders for the parts that every valid state has."""

    nodes: list = field(default_factory=list)
    pods: list = field(default_factory=list)
    events: list = field(default_factory=list)

    def node(self, name="fixed"):
        return next(node for node in self.nodes if node["metadata"]["name"] == name)

    def pod(self, name):
        return next(pod for pod in self.pods if pod["metadata"]["name"] == name)

    def event(self, name):
        return next(event for event in self.events if event["regarding"]["name"] == name)

    def requests(self, name):
        return self.pod(name)["spec"]["containers"][0]["resources"]["requests"]

    def annotations(self, name):
        return self.pod(name)["metadata"]["annotations"]

    def bind(self, pod, node):
        pod["spec"]["nodeName"] = node
        self.pods.append(pod)
        self.events.append(scheduled(pod, node))


def node_document(name, *, cpu="8", memory="32Gi", pods="20", gpus=0, model="T4", labels=None, taints=()):
    offers = {"cpu": cpu, "memory": memory, "pods": pods}
    labels = {"kubernetes.io/hostname": name, **(labels or {})}
    if gpus:
        offers[f"{GPU}/milli-gpu"] = str(1000 * gpus)
        labels |= {f"{GPU}/count": str(gpus), f"{GPU}/model": model}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": offers},
    }


def pod_document(name, cpu="1", memory="1Gi", **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": {}},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def gpu_pod_document(name, milli, devices, **more):
    """A pod with this share of each of these devices."""
    pod = pod_document(name, **more)
    indices = devices.split(",")
    share = str(milli * len(indices))
    pod["spec"]["containers"][0]["resources"]["requests"][f"{GPU}/milli-gpu"] = share
    pod["metadata"]["annotations"] |= {
        f"{GPU}/count": str(len(indices)),
        f"{GPU}/milli": str(milli),
        f"{GPU}/models": "T4|V100",
        f"{GPU}/devices": devices,
    }
    return pod


def scheduled(pod, node):
    metadata = pod["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    return {
        "metadata": {"name": f"{metadata['name']}.1", "namespace": metadata["namespace"]},
        "reason": "Scheduled",
        "note": f"Successfully assigned {key} to {node}",
        "regarding": {"kind": "Pod", **{f: metadata[f] for f in ("namespace", "name", "uid")}},
    }


def fixed_state():
    """One node with three GPUs, five pods on it, and one that waits."""
    state = State(nodes=[node_document("fixed", gpus=3, labels={"disk": "ssd", "rank": "7"})])
    for pod in (
        pod_document("plain"),
        pod_document("other"),
        gpu_pod_document("whole", 1000, "0"),
        gpu_pod_document("half", 500, "1"),
        gpu_pod_document("third", 333, "1"),
    ):
        state.bind(pod, "fixed")
    state.pods.append(pod_document("waiting"))
    return state


SELECTORS = st.sampled_from([None, {"zone": "a"}, {"zone": "b"}])
TAINT = {"key": "gpu", "value": "only", "effect": "NoSchedule"}
TOLERATIONS = st.sampled_from([(), ({"key": "gpu", "operator": "Exists"},), ({"operator": "Exists"},)])
PORTS = st.sampled_from([None, 80, 443])


@st.composite
def valid_states(draw):
    """The fixed part, and more nodes with pods wherever a first-fit finds room for them."""
    state = fixed_state()
    rooms = []
    for index in range(draw(st.integers(0, 3))):
        zone, taints = draw(st.sampled_from("ab")), draw(st.sampled_from([(), (TAINT,)]))
        cores, gib, slots, gpus = (draw(st.integers(1, 8)) for _ in range(4))
        node = node_document(
            f"n{index}",
            cpu=str(cores),
            memory=f"{gib}Gi",
            pods=str(slots),
            gpus=gpus,
            labels={"zone": zone},
            taints=taints,
        )
        state.nodes.append(node)
        room = {"name": f"n{index}", "zone": zone, "tainted": bool(taints), "ports": set()}
        rooms.append(room | {"cpu": 1000 * cores, "mib": 1024 * gib, "slots": slots, "gpus": [1000] * gpus})
    for index in range(draw(st.integers(0, 12))):
        _place(draw, state, rooms, f"p{index}")
    return state


def _place(draw, state, rooms, name):
    cpu, mib = draw(st.integers(0, 4000)), draw(st.integers(0, 4096))
    selector, tolerations, port = draw(SELECTORS), draw(TOLERATIONS), draw(PORTS)
    milli = draw(st.sampled_from([0, 0, 250, 501, 1000]))
    spec = {"nodeSelector": selector, "tolerations": list(tolerations)}
    for room in rooms:
        device = next((i for i, left in enumerate(room["gpus"]) if left >= milli), None)
        if (
            room["cpu"] >= cpu
            and room["mib"] >= mib
            and room["slots"]
            and (selector is None or selector["zone"] == room["zone"])
            and (tolerations or not room["tainted"])
            and port not in room["ports"]
            and device is not None
        ):
            room["cpu"], room["mib"], room["slots"] = room["cpu"] - cpu, room["mib"] - mib, room["slots"] - 1
            room["ports"] |= {port} - {None}
            room["gpus"][device] -= milli
            amounts = {"cpu": f"{cpu}m", "memory": f"{mib}Mi"}
            pod = (
                gpu_pod_document(name, milli, str(device), **amounts, **spec)
                if milli
                else pod_document(name, **amounts, **spec)
            )
            if port:
                pod["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
            state.bind(pod, room["name"])
            return
    state.pods.append(pod_document(name, **spec))


def changed(state, change):
    """A copy of a state with one thing changed."""
    result = copy.deepcopy(state)
    change(result)
    return result
