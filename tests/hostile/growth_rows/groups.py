"""Pod groups, which users write, and how many there are. Workloads are not read."""

from tests.hostile.growth_rows.row import OBJECTS, of_objects, thing

API = "scheduling.k8s.io/v1alpha2"
MEMBER = {"schedulingGroup": {"podGroupName": "g"}}


def group(name="g", least=1, topology=(), **more):
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": key} for key in topology]}
    return thing(API, "PodGroup", name, spec=spec, **more)


ROWS = [
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
