"""Storms: thousands of changes while pods wait. What one costs is counted, however many there are.

Each change is brought as the watch brings it, and then taken over into the snapshot; no pod is tried, for
what that costs is the pod's own.
"""

import pytest

from tests.hostile.arena import node
from tests.hostile.growth_rows.groups import MEMBER, group
from tests.hostile.growth_rows.row import decoded, thing
from tests.hostile.whole_core import WholeCore, pod_document
from tests.hostile.work import calls, growth

MANY = 40
WAITING = 20
LINEAR = 1.2
AMOUNTS = {"requests": {"cpu": "1m"}}


class Storm:
    """A whole core in which pods of two kinds wait, and one is placed."""

    def __init__(self):
        self.core = WholeCore()
        for i in range(WAITING):
            fields = {"nodeSelector": {"no": "node"}} if i % 2 else {"container": {"resources": TOO_MUCH}}
            self.core.schedule(decoded(pod_document(f"waiting-{i}", **fields)))
        self.placed = decoded(placed())
        self.core.bring(self.placed)
        self.core.take_over()

    def update(self, old, new):
        self.core.handlers[type(new)].on_update(old, new)
        self.core.take_over()
        return new


TOO_MUCH = {"requests": {"cpu": "1000"}, "limits": {"cpu": "1000"}}


def placed(name="placed", status=None, metadata=None, **fields):
    """A document of a pod that is on a node."""
    document = pod_document(name, nodeName="node-0", status=status, **fields)
    document["metadata"] |= metadata or {}
    return document


def changed(storm, documents):
    """An object of which one version follows the other."""
    versions = [decoded(each) for each in documents]
    storm.core.bring(versions[0])
    storm.core.take_over()

    def run():
        old = versions[0]
        for new in versions[1:]:
            old = storm.update(old, new)

    return run


def of_one_pod(version):
    def storm(there, n):
        versions = [decoded(placed(**version(i))) for i in range(n)]

        def run():
            old = there.placed
            for new in versions:
                old = there.update(old, new)

        return run

    return storm


def come_and_go(document):
    """Objects that are created one after the other, and deleted so."""

    def storm(there, n):
        objects = [decoded(document(i)) for i in range(n)]

        def run():
            for each in objects:
                there.core.bring(each)
            there.core.take_over()
            for each in objects:
                there.core.take(each)
            there.core.take_over()

        return run

    return storm


def come_and_go_with_a_group(there, n):
    """Pods of a group that waits, of which no pod finds a node."""
    there.core.bring(decoded(group()))
    return come_and_go(lambda i: pod_document(f"member-{i}", nodeSelector={"no": "node"}, **MEMBER))(there, n)


def other_counts(i):
    return group(least=1 + i % 2)


def resized(i):
    resources = {"requests": {"cpu": f"{1 + i % 2}m"}}
    statuses = [{"name": "main", "allocatedResources": {"cpu": "1m"}, "resources": resources}]
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    return {"status": {"phase": "Running", "containerStatuses": statuses, "conditions": pending}}


def tainted(i):
    document = node(0)
    document["metadata"]["uid"] = "node-0"
    return {**document, "spec": {"taints": [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"}]}}


def named_node(i):
    document = node(100 + i)
    document["metadata"]["uid"] = document["metadata"]["name"]
    return document


def budget(i):
    spec = {"selector": {"matchLabels": {"app": f"a{i}"}}, "maxUnavailable": 0}
    return thing("policy/v1", "PodDisruptionBudget", f"b{i}", spec=spec)


def csi_node(i):
    drivers = [{"name": "csi.example.com", "nodeID": "n", "allocatable": {"count": 1 + i}}]
    made = thing("storage.k8s.io/v1", "CSINode", "node-0", spec={"drivers": drivers})
    del made["metadata"]["namespace"]
    return made


EPHEMERAL = [{"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}} for i in range(16)]


def volume_claim(name):
    return thing("v1", "PersistentVolumeClaim", name, spec={"accessModes": ["ReadWriteOnce"]})


def device_claim(name):
    requests = [{"name": "r", "exactly": {"deviceClassName": "none"}}]
    return thing("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": requests}})


def with_claims_of_its_own(i):
    """What a pod has for which claims were made: of a volume each, and of devices."""
    made = [{"name": f"c{j}", "resourceClaimName": f"waiting-{i}-c{j}"} for j in range(16)]
    asked = [{"name": f"c{j}", "resourceClaimTemplateName": "t"} for j in range(16)]
    return {"resourceClaims": asked, "status": {"phase": "Pending", "resourceClaimStatuses": made}}


STORMS = {
    "finalizers": of_one_pod(lambda i: {"metadata": {"finalizers": [f"example.com/f{i}"]}}),
    "resizes": of_one_pod(resized),
    "deletions": come_and_go(lambda i: placed(f"gone-{i}")),
    "deletions that have begun": of_one_pod(
        lambda i: {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"n": f"{i}"}}}
    ),
    "pods that wait, and go": come_and_go(lambda i: pod_document(f"short-{i}")),
    "pod groups": come_and_go(lambda i: group(f"g{i}")),
    "pods of a waiting group": come_and_go_with_a_group,
    "counts of a group": lambda storm, n: changed(storm, [other_counts(i) for i in range(n + 1)]),
    "budgets": come_and_go(budget),
    "nodes": come_and_go(named_node),
    "taints": lambda storm, n: changed(storm, [tainted(i) for i in range(n + 1)]),
    "CSI nodes": lambda storm, n: changed(storm, [csi_node(i) for i in range(n + 1)]),
}
BESIDE_CLAIMS = {
    "claims of volumes": (lambda _: {"volumes": EPHEMERAL}, volume_claim),
    "claims of devices": (with_claims_of_its_own, device_claim),
}
MAX_CALLS_OF_A_CLAIM = 400
MAX_CALLS = {
    "finalizers": 250,
    "resizes": 650,
    "deletions": 400,
    "deletions that have begun": 500,
    "pods that wait, and go": 330,
    "pod groups": 260,
    "pods of a waiting group": 700,
    "counts of a group": 250,
    "budgets": 50,
    "nodes": 950,
    "taints": 400,
    "CSI nodes": 130,
}


@pytest.mark.parametrize("name", STORMS)
def test_a_change_costs_the_same_however_many_there_are(name):
    assert growth(lambda n: STORMS[name](Storm(), n), MANY) < LINEAR


@pytest.mark.parametrize("name", STORMS)
def test_a_change_costs_so_many_calls_at_most(name):
    """With twenty pods waiting: a core makes some millions of calls a second."""
    assert calls(STORMS[name](Storm(), MANY)) < MANY * MAX_CALLS[name]


@pytest.mark.parametrize("name", BESIDE_CLAIMS)
def test_a_claim_of_another_costs_little(name):
    """Each of the waiting pods has sixteen claims of its own; plugins are not asked about each of them."""
    fields, claim = BESIDE_CLAIMS[name]
    core = WholeCore()
    for i in range(WAITING):
        core.schedule(decoded(pod_document(f"waiting-{i}", **fields(i))))
    other = decoded(claim("another"))

    assert calls(lambda: core.bring(other)) < MAX_CALLS_OF_A_CLAIM


def test_a_claim_of_its_own_moves_a_pod():
    """Beside pods alike that wait for theirs, by the claim's owner."""
    core = WholeCore()
    for i in range(WAITING):
        core.schedule(decoded(pod_document(f"waiting-{i}", volumes=EPHEMERAL)))
    claim = volume_claim("waiting-3-v5")
    claim["metadata"]["ownerReferences"] = [{"name": "waiting-3", "uid": "waiting-3", "controller": True}]
    core.bring(decoded(claim))

    assert WAITING - 1 == core.core.queue.sizes().unschedulable
