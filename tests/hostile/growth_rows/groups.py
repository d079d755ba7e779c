"""Pod groups and trees of them, which users write, and how many there are. Workloads are not read."""

from tests.hostile.growth_rows.devices import claim, device_class, resource_slice
from tests.hostile.growth_rows.row import OBJECTS, of_objects, thing
from tests.hostile.growth_rows.selectors import IMPORTANT, WHOLE_NODE
from tests.hostile.whole_core import pod_document

API, TREES = "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1alpha3"
MEMBER = {"schedulingGroup": {"podGroupName": "g"}}


def group(name="g", least=1, topology=(), *, mode=None, below="", claims=(), **more):
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if below:
        spec["parentCompositePodGroupName"] = below
    if claims:
        spec["resourceClaims"] = list(claims)
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


def tree(name, below="", least=1, *, topology=(), mode=None, **more):
    """A group of groups, of which so many have to have a place."""
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": least}}}
    if below:
        spec["parentCompositePodGroupName"] = below
    if mode:
        spec["disruptionMode"] = mode
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": key} for key in topology]}
    return thing(TREES, "CompositePodGroup", name, spec=spec, **more)


def member(name, of="g", **spec):
    return pod_document(name, schedulingGroup={"podGroupName": of}, **spec)


def tree_evicted_as_a_whole(n):
    """A tree whose pods fill all nodes, in as many groups as there are pods beside them."""
    filling = (member(f"full-{i}", nodeName=f"node-{i}", **WHOLE_NODE) for i in range(6))
    others = (member(f"small-{i}", f"g{i}", nodeName=f"node-{i % 6}") for i in range(n))
    groups = (group(f"g{i}", below="c") for i in range(n))
    return [tree("c", mode={"all": {}}), group(below="c"), *groups, *filling, *others]


def at_depth(n):
    """Groups below groups, as deep as a tree may be, of which each row has as many."""
    third = n // 3 or 1
    middle = (tree(f"m{i}", "c") for i in range(third))
    lower = (tree(f"l{i}", f"m{i}") for i in range(third))
    groups = (group(f"g{i or ''}", below=f"l{i}") for i in range(third))
    return [tree("c", least=third), *middle, *lower, *groups]


def chain(n):
    """Groups one below the other: more of them than a tree may have."""
    return [tree("c0"), *(tree(f"c{i + 1}", f"c{i}") for i in range(n)), group(below=f"c{n}")]


def circle(n):
    """Groups of which each is below the next one, and so below itself."""
    return [*(tree(f"c{i}", f"c{(i + 1) % n}") for i in range(n)), group(below="c0")]


BELOW = {
    "groups right below": lambda n: [
        tree("c", least=n),
        group(below="c"),
        *(group(f"g{i}", below="c") for i in range(n - 1)),
    ],
    "groups at depth": at_depth,
    "waiting pods below": lambda n: [
        tree("c", least=n + 1),
        group(below="c"),
        *(group(f"g{i}", below="c") for i in range(n)),
        *(member(f"m{i}", f"g{i}") for i in range(n - 1)),
    ],
    "chain": chain,
    "circle": circle,
    "conditions": lambda n: [
        tree("c", status={"conditions": [{"type": f"c{i}", "status": "True"} for i in range(n)]}),
        group(below="c"),
    ],
    "objects": lambda n: [tree("c"), group(below="c"), *(tree(f"other{i}") for i in range(n))],
}


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
    of_objects(
        "PodGroup",
        "waiting pods",
        lambda n: [group(least=n + 1), *(member(f"m{i}") for i in range(n - 1))],
        max_entries=OBJECTS,
        **MEMBER,
    ),
    of_objects(
        "PodGroup",
        "resourceClaims",
        lambda n: [
            device_class(),
            resource_slice(),
            claim(),
            group(
                claims=[{"name": f"r{i}", "resourceClaimName": "c"} for i in range(n)],
                status={
                    "resourceClaimStatuses": [{"name": f"r{i}", "resourceClaimName": "c"} for i in range(n)]
                },
            ),
        ],
        max_entries=4,
        **MEMBER,
        resourceClaims=[{"name": "r0", "resourceClaimName": "c"}],
    ),
    of_objects(
        "CompositePodGroup",
        "pods evicted as a whole",
        tree_evicted_as_a_whole,
        max_entries=OBJECTS,
        **IMPORTANT,
    ),
    of_objects(
        "CompositePodGroup",
        "topology constraints",
        lambda n: [
            tree("c", topology=["topology.kubernetes.io/zone", *(f"k{i}" for i in range(n))]),
            group(below="c"),
        ],
        max_entries=1,
        **MEMBER,
    ),
    *(
        of_objects(
            "CompositePodGroup",
            field,
            documents,
            max_entries=None if field == "conditions" else OBJECTS,
            **MEMBER,
        )
        for field, documents in BELOW.items()
    ),
]
