"""Every way in which a pod waits for its group or for a claim, and the condition that says so.

A pod that was tried has its condition at once; one that is held back before it is tried has it within half a
minute, as one that merely comes before its group or claim would have one for nothing.
"""

from datetime import UTC, datetime

import msgspec
import pytest

from berth.config.releases.rules import RULES
from berth.objects.decode import from_document
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_spec import PodResourceClaim
from tests.failures.reporting import reports
from tests.scenarios.pod_groups.kit import Groups
from tests.unit.plugins.dynamic_resources.kit import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    on_node,
    request,
    with_status,
)

RELEASES = sorted(RULES)
BY_NAME = PodResourceClaim("shared", resource_claim_name="c0")
BY_TEMPLATE = PodResourceClaim("shared", resource_claim_template_name="t0")
GATED, UNSCHEDULABLE = "SchedulingGated", "Unschedulable"
NO_NODE = "0/1 nodes are available: 1 {}. "


def gates(release):
    gang = {"GangScheduling": True} if release == (1, 36) else {}
    return {"GenericWorkload": True, "DRAWorkloadResourceClaims": True, **gang}


def group(entry, size=2):
    of = {"resourceClaimName": entry.resource_claim_name}
    if entry.resource_claim_template_name:
        of = {"resourceClaimTemplateName": entry.resource_claim_template_name}
    spec = {
        "schedulingPolicy": {"gang": {"minCount": size}},
        "resourceClaims": [{"name": entry.name, **of}],
    }
    metadata = {"name": "g", "namespace": "default", "uid": "uid-g"}
    return from_document({"metadata": metadata, "spec": spec}, PodGroup)


def cluster(release, *objects):
    made = Groups(gates=gates(release), release=release)
    made.add_node("n0")
    made.add(make_class())
    for one in objects:
        made.add(one)
    return made


async def waiting(made, *entries, made_of="", pods=("a", "b")):
    """The conditions of the group's pods in the end: {(reason, message)}."""
    for name in pods:
        pod = made.add_member(name, resource_claims=entries, uid=name)
        if made_of:
            made.add(with_status(pod, {"name": entries[0].name, "resourceClaimName": made_of}))
    await made.run()
    await made.tick(2)
    assert all(made.condition(name) for name in pods)
    await made.tick(360)
    assert {} == made.bound
    found = [made.condition(name, "PodScheduled") for name in pods]
    return {(one.reason, one.message) for one in found}


def deleted(claim):
    gone = msgspec.structs.replace(claim.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    return msgspec.structs.replace(claim, metadata=gone)


HELD_BACK = [
    pytest.param(BY_NAME, [], "", 'could not find ResourceClaim "default/c0"', id="no such claim"),
    pytest.param(BY_TEMPLATE, [], "", "ResourceClaim not created yet", id="not made of its template"),
    pytest.param(BY_TEMPLATE, [], "c0", 'could not find ResourceClaim "default/c0"', id="made and deleted"),
    pytest.param(
        BY_NAME, [deleted(make_claim())], "", 'resourceclaim "c0" is being deleted', id="being deleted"
    ),
    pytest.param(
        BY_TEMPLATE,
        [make_claim(owner="another")],
        "c0",
        "(neither Pod nor PodGroup g is the owner)",
        id="made for something else",
    ),
]


@reports(
    "group-claim-held",
    condition="`PodScheduled`: `SchedulingGated`, such as `ResourceClaim not created yet`",
)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("entry", "objects", "made_of", "text"), HELD_BACK)
async def test_pods_that_are_held_back_for_a_claim(release, entry, objects, made_of, text):
    """Each pod of the group says what it, or its group, waits for."""
    made = cluster(release, group(entry), *objects)
    found = await waiting(made, entry, made_of=made_of)

    assert {GATED} == {reason for reason, _ in found}
    assert all(text in message for _, message in found), found


@reports(
    "group-absent",
    condition="`PodScheduled`: `SchedulingGated`, `waiting for pod group default/g to be created`",
)
@pytest.mark.parametrize("release", RELEASES)
async def test_pods_whose_group_is_not_there(release):
    """From 1.37 on they are in no entity of the queue."""
    found = await waiting(cluster(release, make_claim()), BY_NAME)
    text = "waiting for pod group default/g to be created"
    if release == (1, 36):
        text = 'waiting for pods\'s pod group "g" to appear in scheduling queue'

    assert {(GATED, text)} == found


@reports(
    "gang-incomplete",
    condition="`PodScheduled`: `SchedulingGated`, "
    "`waiting for minCount pods from a gang to appear in scheduling queue`",
)
@pytest.mark.parametrize("release", RELEASES)
async def test_pods_of_a_gang_that_is_too_small(release):
    """Two of three are there."""
    found = await waiting(cluster(release, group(BY_NAME, 3), make_claim()), BY_NAME)

    assert {(GATED, "waiting for minCount pods from a gang to appear in scheduling queue")} == found


@pytest.mark.parametrize("release", RELEASES)
async def test_a_pod_that_waits_with_another_one(release):
    """From 1.37 on a gate of one pod holds its whole group back; the other pod says for what."""
    made = cluster(release, group(BY_NAME), make_claim())
    made.add_member("a", uid="a", resource_claims=(BY_TEMPLATE,))
    made.add_member("b", uid="b", resource_claims=(BY_NAME,))
    await made.run()
    await made.tick(400)

    assert {} == made.bound
    assert "ResourceClaim not created yet" in made.condition("a").message
    if release > (1, 36):
        assert made.condition("a").message == made.condition("b").message


TAINTED = make_slice("s0", [device("a", taints=[{"key": "k", "effect": "NoSchedule"}])])
TRIED = [
    pytest.param(
        [make_claim(requests=[request(deviceClassName="none")])],
        "request r0: device class none does not exist",
        id="no such class",
    ),
    pytest.param([make_claim()], "cannot allocate all claims", id="no device"),
    pytest.param([make_claim(), TAINTED], "cannot allocate all claims", id="a tainted device"),
    pytest.param(
        [make_claim(), make_slice("s0", [device("a")]), allocated("c1", ("s0", "a"), reserved=("x",))],
        "cannot allocate all claims",
        id="a device in use",
    ),
    pytest.param(
        [allocated("c0", ("s0", "a"), reserved=("x",), selector=on_node("other"))],
        "resourceclaim not available on the node",
        id="in use on another node",
    ),
]


@reports(
    "group-claim-unmet",
    condition="`PodScheduled`: `Unschedulable`, as `cannot allocate all claims`; the PodGroup's, the same",
)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("objects", "text"), TRIED)
async def test_pods_whose_claim_gets_no_device(release, objects, text):
    """The group's condition, and each pod that was tried, say so."""
    made = cluster(release, group(BY_NAME), *objects)
    found = await waiting(made, BY_NAME)

    assert {UNSCHEDULABLE} == {reason for reason, _ in found}
    assert any(text in message for _, message in found), found
    assert ("False", "Unschedulable") == made.group_condition()[:2]


@pytest.mark.parametrize("release", RELEASES)
async def test_a_claim_of_all_nodes_does_not_hide_where_another_one_is(release):
    """The group's claim is in use on every node, the pod's own has a device on the second node alone."""
    own = PodResourceClaim("own", resource_claim_name="c1")
    by_network = make_slice("s0", [device("a")])
    made = cluster(release, group(BY_NAME, 1), allocated("c0", ("s0", "a"), reserved=("x",)), by_network)
    made.add_node("n1")
    made.add(make_slice("s1", [device("b")], node="n1"))
    made.add(make_claim("c1"))
    made.add_member("a", resource_claims=(BY_NAME, own), uid="a")
    await made.run()

    assert {"a": "n1"} == made.bound


@pytest.mark.parametrize("release", RELEASES)
async def test_pods_that_come_one_after_the_other_say_nothing(release):
    """A gang whose pods come within a second of each other costs no write of a condition."""
    made = cluster(release, group(BY_NAME, size=3))
    for name in ("a", "b"):
        made.add_member(name, cpu="99")
        await made.tick(0.4)

    assert [] == made.calls("patch_status")
