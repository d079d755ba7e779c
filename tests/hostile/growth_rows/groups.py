"""Pod groups, which users write, and how many there are. Workloads are not read."""

from tests.hostile.growth_rows.row import OBJECTS, of_objects, thing
from tests.hostile.growth_rows.selectors import IMPORTANT, WHOLE_NODE
from tests.hostile.whole_core import pod_document

API = "scheduling.k8s.io/v1alpha2"
MEMBER = {"schedulingGroup": {"podGroupName": "g"}}


def group(name="g", least=1, topology=(), *, mode=None, **more):
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if mode:
        spec["disruptionMode"] = mode
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": key} for key in topology]}
    return thing(API, "PodGroup", name, spec=spec, **more)


def evicted_as_a_whole(n):
    """A group whose pods fill all nodes, and are so many, so that a pod with priority evicts all of them."""
    filling = (pod_document(f"full-{i}", nodeName=f"node-{i}", **WHOLE_NODE, **MEMBER) for i in range(6))
    others = (pod_document(f"small-{i}", nodeName=f"node-{i % 6}", **MEMBER) for i in range(n))
    return [group(mode={"all": {}}), *filling, *others]


ROWS = [
    of_objects(
        "PodGroup",
        "pods evicted as a whole",
        evicted_as_a_whole,
        max_entries=OBJECTS,
        **IMPORTANT,
    ),
    of_objects(
        "PodGroup",
        "topology constraints",
        lambda n: [group(topology=["topology.kubernetes.io/zone", *(f"k{i}" for i in range(n))])],
        max_entries=1,
        **MEMBER,
    ),
    of_objects(
        "PodGroup",
        "conditions",
        lambda n: [group(status={"conditions": [{"type": f"c{i}", "status": "True"} for i in range(n)]})],
        **MEMBER,
    ),
    of_objects(
        "PodGroup",
        "objects",
        lambda n: [group(f"g{i or ''}") for i in range(n)],
        max_entries=OBJECTS,
        **MEMBER,
    ),
]
