"""Which queue a pod is in, and what koordinator's quotas and Queue objects come to as queues."""

import msgspec
import pytest

from berth_queues.koordinator import KOORDINATOR_QUOTAS, PREFIX
from berth_queues.queue_objects import LABEL, MAX_QUEUES, QUEUES
from berth_queues.registry import Registry
from berth_sdk import ObjectKey
from tests.unit.queues.builders import cpu, key

CPU = "cpu"


def encoded(document):
    return msgspec.json.encode(document)


def with_queues(registry, **specs):
    for name, spec in specs.items():
        named = ObjectKey(QUEUES.group, QUEUES.version, QUEUES.resource, "", name)
        registry.objects.put(named, encoded({"spec": spec}))
    registry.changed()


def with_koordinator(registry, *quotas):
    """Quotas (name, parent, min, labels and annotations)."""
    for name, parent, least, more in quotas:
        labels = {PREFIX + "parent": parent, **more.get("labels", {})}
        metadata = {"labels": labels, "annotations": more.get("annotations", {})}
        named = ObjectKey(
            KOORDINATOR_QUOTAS.group, KOORDINATOR_QUOTAS.version, KOORDINATOR_QUOTAS.resource, "kube", name
        )
        spec = {"min": {CPU: least}, "max": {CPU: 100}}
        registry.koordinator.put(named, encoded({"metadata": metadata, "spec": spec}))
    registry.changed()


@pytest.fixture
def registry():
    """A tree of Queues, an ElasticQuota in `quota`, a koordinator quota for `koord`."""
    made = Registry()
    made.offer({CPU: 100_000})
    with_queues(
        made,
        root={"capacity": "Nodes"},
        a={"parent": "root", "namespaces": ["one", "both"]},
        b={"parent": "root", "namespaceSelector": {"matchLabels": {"team": "b"}}, "namespaces": ["both"]},
        deep={"parent": "nowhere", "namespaces": ["lost"]},
    )
    made.quotas.put(key("quota"), encoded(cpu(4)))
    names = encoded(["koord"]).decode()
    with_koordinator(made, ("team", "", 10, {"annotations": {PREFIX + "namespaces": names}}))
    for name, labels in (("picky", {"team": "b", LABEL: "b"}), ("both", {LABEL: "b"})):
        made.objects.put_namespace(name, encoded({"metadata": {"labels": labels}}))
    made.changed()
    return made


@pytest.mark.parametrize(
    ("namespace", "labels", "expected"),
    [
        pytest.param("one", {}, "Queue a", id="a Queue that names the namespace"),
        pytest.param("picky", {}, "Queue b", id="by the namespace's labels"),
        pytest.param("both", {}, "Queue b", id="the one that the namespace names"),
        pytest.param("both", {LABEL: "a"}, "Queue a", id="the one that the pod names"),
        pytest.param("quota", {}, "ElasticQuota quota/quota", id="its ElasticQuota"),
        pytest.param("koord", {}, "ElasticQuota team (koordinator)", id="koordinator's, by namespace"),
        pytest.param(
            "one", {PREFIX + "name": "team"}, "ElasticQuota team (koordinator)", id="koordinator's, by label"
        ),
        pytest.param("one", {PREFIX + "name": "other"}, "Queue a", id="a quota that does not exist"),
        pytest.param("free", {}, "Namespace free", id="none"),
    ],
)
def test_the_queue_of_a_pod(registry, namespace, labels, expected):
    """The pod's own word comes first, then its namespace's, then quotas."""
    assert expected == registry.name_of(namespace, labels)
    assert registry.misplaced(namespace, labels) is None


@pytest.mark.parametrize(
    ("namespace", "label", "why"),
    [
        pytest.param("one", "b", "does not admit pods of namespace one", id="not admitted"),
        pytest.param("one", "none", "does not exist", id="no such queue"),
        pytest.param("lost", "deep", "nowhere does not exist", id="no place in a tree"),
    ],
)
def test_who_can_be_in_no_queue(registry, namespace, label, why):
    """A pod that names a queue for itself waits where it must not have it."""
    assert why in registry.misplaced(namespace, {LABEL: label})


def test_pods_go_to_leaves(registry):
    """A queue with queues below it takes no pods."""
    with_queues(registry, root={"capacity": "Nodes", "namespaces": ["one"]})

    assert "has queues below it" in registry.misplaced("one", {LABEL: "root"})


def test_a_tree_of_koordinator():
    """A quota's min includes its children's, its max is a limit, and shared-weight divides what is left."""
    registry = Registry()
    registry.offer({CPU: 100_000})
    weight = {PREFIX + "shared-weight": '{"cpu": "3"}'}
    keeps = {"labels": {PREFIX + "allow-lent-resource": "false"}}
    with_koordinator(
        registry,
        ("org", "", 40, {}),
        ("web", "org", 10, {"annotations": weight}),
        ("db", "org", 5, keeps),
    )
    queues = registry.tree.queues
    org, web, db = (queues[f"ElasticQuota {name} (koordinator)"] for name in ("org", "web", "db"))

    assert {} == registry.tree.errors
    assert 35_000 == org.subtree[CPU]
    assert (100_000, 3000.0, 5000) == (web.most(CPU), web.weight(CPU), db.kept(CPU))
    assert 95_000 == org.root.subtree[CPU]


def test_more_queues_than_there_may_be():
    """The one beyond the bound is ignored, with the reason, and has its place once another goes."""
    registry = Registry()
    with_queues(registry, **{f"q{number}": {} for number in range(MAX_QUEUES)})
    with_queues(registry, late={})
    assert f"there are {MAX_QUEUES} queues already" == registry.objects.errors["late"]
    registry.objects.remove(ObjectKey(QUEUES.group, QUEUES.version, QUEUES.resource, "", "q0"))
    with_queues(registry, late={})

    assert ({}, MAX_QUEUES) == (registry.objects.errors, len(registry.tree.queues))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"quota": {CPU: "much"}}, "spec.quota.cpu", id="no quantity"),
        pytest.param({"weight": -1}, "spec.weight", id="a weight below zero"),
        pytest.param({"weight": "nan"}, "spec.weight", id="no weight"),
        pytest.param({"parent": "x", "capacity": "Nodes"}, "spec.capacity", id="nodes below the root"),
        pytest.param({"namespaces": [str(i) for i in range(300)]}, "spec.namespaces", id="too many"),
        pytest.param({"parent": 5}, "$.spec.parent", id="no name"),
    ],
)
def test_what_is_no_queue(spec, field):
    """An object that can't be a queue is ignored, and its status will say which field is wrong."""
    registry = Registry()
    with_queues(registry, bad=spec)

    assert field in registry.objects.errors["bad"]
    assert {} == registry.tree.queues


def test_use_follows_a_change():
    """What pods use counts in the queues as they are now."""
    registry = Registry()
    with_queues(registry, root={"quota": {CPU: 10}}, a={"parent": "root"})
    registry.use("Queue a", {CPU: 4000})
    with_queues(registry, root={"quota": {CPU: 6}})
    assert 2000 == registry.queue("Queue a").available(CPU)
    registry.use("Queue a", {CPU: 4000}, -1)

    assert (6000, {}) == (registry.queue("Queue a").available(CPU), registry.own)
