"""Namespaces, and selectors of services, controllers and disruption budgets: users write them all."""

from berth.objects.label_selector import MAX_VALUES
from tests.hostile.growth_rows.row import OBJECTS, of_objects, thing
from tests.hostile.whole_core import pod_document

BY_NAMESPACE = {
    "affinity": {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "namespaceSelector": {"matchLabels": {"k0": "v"}},
                        "labelSelector": {},
                    },
                }
            ]
        }
    }
}
"""A term that looks at namespaces."""
OWNERS = ("ReplicaSet", "StatefulSet")
WHOLE_NODE = {"container": {"resources": {"requests": {"cpu": "31"}}}}
IMPORTANT = {"priority": 100, **WHOLE_NODE}


def labels(n):
    return {f"k{i}": "v" for i in range(n)}


def absent(n):
    return [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(n)]


def values(n):
    return [{"key": "app", "operator": "In", "values": [f"v{i}" for i in range(n)]}]


def namespace(name, **more):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, **more}}


def service(name, selector):
    return thing("v1", "Service", name, spec={"selector": selector})


def owned(kind, **selector):
    return thing("apps/v1", kind, "s", spec={"selector": selector})


def controllers(name):
    """One of each kind that owns pods, all meaning the same pods."""
    selector = {"app": "x"}
    return [
        thing("v1", "ReplicationController", name, spec={"selector": selector}),
        *(thing("apps/v1", kind, name, spec={"selector": {"matchLabels": selector}}) for kind in OWNERS),
    ]


def like_all_of(n):
    """A pod that a selector of so many labels means."""
    return {"labels": labels(n)}


def owned_by(kind):
    """A pod that a controller of that kind owns and means."""
    return lambda n: {"labels": {**labels(n), "app": "v0"}, "owner": kind}


def protected(*budgets):
    """Budgets, and a node's worth of victims on each node."""
    labelled = {"app": "v0", "k0": "v"}
    victims = (
        pod_document(f"victim{i}", nodeName=f"node-{i}", labels=labelled, **WHOLE_NODE) for i in range(6)
    )
    return [*victims, *budgets]


def budget(name, status=None, **selector):
    spec = {"minAvailable": 1, "selector": selector}
    return thing("policy/v1", "PodDisruptionBudget", name, spec=spec, status=status or {})


BOUNDED = dict.fromkeys(("matchLabels", "matchExpressions", "values of an expression"), MAX_VALUES)
SELECTORS = {
    "matchLabels": lambda n: {"matchLabels": labels(n)},
    "matchExpressions": lambda n: {
        "matchExpressions": [{**each, "key": f"a{i}"} for i, each in enumerate(absent(n))]
    },
    "values of an expression": lambda n: {"matchExpressions": values(n)},
}

ROWS = [
    of_objects(
        "Namespace",
        "labels",
        lambda n: [namespace("default", labels=labels(n))],
        **BY_NAMESPACE,
    ),
    of_objects(
        "Namespace",
        "objects",
        lambda n: [namespace(f"n{i}", labels={"k0": "v"}) for i in range(n)],
        max_entries=OBJECTS,
        **BY_NAMESPACE,
    ),
    of_objects(
        "Service",
        "selector",
        lambda n: [service("s", labels(n))],
        max_entries=MAX_VALUES,
        asks=like_all_of,
    ),
    of_objects(
        "Service",
        "objects that mean one pod",
        lambda n: [service(f"s{i}", {"app": "x"}) for i in range(n)],
        max_entries=OBJECTS,
        labels={"app": "x"},
    ),
    of_objects(
        "ReplicationController",
        "selector",
        lambda n: [thing("v1", "ReplicationController", "s", spec={"selector": labels(n)})],
        max_entries=MAX_VALUES,
        asks=owned_by("ReplicationController"),
    ),
    *(
        of_objects(
            kind,
            field,
            lambda n, kind=kind, shape=shape: [owned(kind, **shape(n))],
            max_entries=BOUNDED.get(field),
            asks=owned_by(kind),
        )
        for kind in OWNERS
        for field, shape in SELECTORS.items()
    ),
    of_objects(
        "ReplicaSet",
        "objects, and other controllers, that mean one pod",
        lambda n: [each for i in range(n) for each in controllers(f"c{i}")],
        max_entries=OBJECTS,
        labels={"app": "x"},
        owner="ReplicaSet",
    ),
    *(
        of_objects(
            "PodDisruptionBudget",
            field,
            lambda n, shape=shape: protected(budget("b", **shape(n))),
            max_entries=BOUNDED.get(field),
            **IMPORTANT,
        )
        for field, shape in SELECTORS.items()
    ),
    of_objects(
        "PodDisruptionBudget",
        "disruptedPods",
        lambda n: protected(
            budget(
                "b", {"disruptedPods": {f"p{i}": "2026-01-01T00:00:00Z" for i in range(n)}}, matchLabels={}
            )
        ),
        **IMPORTANT,
    ),
    of_objects(
        "PodDisruptionBudget",
        "objects",
        lambda n: protected(*(budget(f"b{i}", matchExpressions=values(10)) for i in range(n))),
        max_entries=OBJECTS,
        **IMPORTANT,
    ),
]
