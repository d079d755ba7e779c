"""Claims that a pod group shares (KEP-5729)."""

import pytest

from berth.config.releases.rules import RULES
from berth.framework.status import Code
from berth.objects.decode import from_document
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_spec import PodResourceClaim, SchedulingGroup
from berth.snapshot.pod_group_states import PodGroupStates
from berth.testing.builders import make_pod
from tests.unit.plugins.dynamic_resources.kit import (
    Cluster,
    device,
    make_claim,
    make_slice,
    on_node,
    with_status,
)

GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
RELEASES = sorted(RULES)
BY_NAME = PodResourceClaim("e0", resource_claim_name="c0")
BY_TEMPLATE = PodResourceClaim("e0", resource_claim_template_name="t0")


def group(*entries, name="g"):
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "resourceClaims": [
                {
                    "name": one.name,
                    "resourceClaimName": one.resource_claim_name,
                    "resourceClaimTemplateName": one.resource_claim_template_name,
                }
                for one in entries
            ],
        },
    }
    return from_document(document, PodGroup)


def member(name, *entries):
    return make_pod(name, uid=name, resource_claims=entries, scheduling_group=SchedulingGroup("g"))


def cluster(*claims, groups=(), gates=GATES, slices=None, release=(1, 36), **more):
    slices = [make_slice("s0", [device("a")])] if slices is None else slices
    made = Cluster(claims=claims, slices=slices, gates=gates, release=release, **more)
    for one in groups:
        made.listers.pod_groups.put(one)
    return made


def consumers(made, name="c0"):
    stored = made.listers.claim_tracker.get(name, "default")
    return [(one.api_group, one.resource, one.name, one.uid) for one in stored.status.reserved_for]


OF_GROUP = ("scheduling.k8s.io", "podgroups", "g", "uid-g")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("entry", "of", "gates", "expected"),
    [
        pytest.param(BY_NAME, BY_NAME, GATES, OF_GROUP, id="the group's entry"),
        pytest.param(BY_NAME, PodResourceClaim("e1", "c0"), GATES, ("", "pods", "a", "a"), id="another name"),
        pytest.param(BY_NAME, BY_TEMPLATE, GATES, ("", "pods", "a", "a"), id="named and not a template"),
        pytest.param(BY_NAME, BY_NAME, {"GenericWorkload": True}, ("", "pods", "a", "a"), id="gate off"),
    ],
)
async def test_what_a_claim_is_reserved_for(entry, of, gates, expected, release):
    """An entry that the group has, too, is the group's; any other one is the pod's own."""
    gates = gates if release > (1, 36) else {**gates, "GangScheduling": True}
    made, pod = cluster(make_claim(), groups=[group(of)], gates=gates, release=release), member("a", entry)
    made.reserved(pod, "n0")

    assert (await made.plugin.pre_bind(made.state, pod, "n0")).ok
    assert [expected] == consumers(made)


async def test_one_write_for_all_pods_of_the_group():
    """The second pod finds the claim reserved for its group, and writes nothing."""
    made = cluster(make_claim(), groups=[group(BY_NAME)])
    first, second = member("a", BY_NAME), member("b", BY_NAME)
    made.reserved(first, "n0")
    of_first = made.state
    made.reserved(second, "n1")
    of_second = made.state
    for pod, state, node in ((first, of_first, "n0"), (second, of_second, "n1")):
        assert (await made.plugin.pre_bind(state, pod, node)).ok

    assert [("reserve", "c0", True)] == made.writer.calls
    assert [OF_GROUP] == consumers(made)


NOT_OWNED = (
    "ResourceClaim default/c0 was not created for Pod default/a (neither Pod nor PodGroup g is the owner)"
)


def owned_by(kind, name):
    owners = [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": kind,
            "name": name,
            "uid": "x",
            "controller": True,
        }
    ]
    claim = make_claim()
    return from_document(
        {"metadata": {"name": "c0", "namespace": "default", "uid": "c", "ownerReferences": owners}},
        type(claim),
    )


@pytest.mark.parametrize(
    ("claim", "gates", "text"),
    [
        pytest.param(owned_by("PodGroup", "g"), GATES, "", id="of the pod's group"),
        pytest.param(
            owned_by("PodGroup", "h"),
            GATES,
            NOT_OWNED,
            id="of another group",
        ),
        pytest.param(
            owned_by("Job", "g"),
            GATES,
            NOT_OWNED,
            id="of something else of that name",
        ),
        pytest.param(
            owned_by("PodGroup", "g"),
            {},
            "ResourceClaim default/c0 was not created for Pod default/a (Pod is not owner)",
            id="gate off",
        ),
    ],
)
def test_claims_that_were_made_for_a_group(claim, gates, text):
    """The pod's status names the claim that was made from the group's template."""
    pod = with_status(member("a", BY_TEMPLATE), {"name": "e0", "resourceClaimName": "c0"})
    made = cluster(claim, groups=[group(BY_TEMPLATE)], gates=gates)

    assert text == made.plugin.pre_enqueue(pod).message


def test_without_its_group_a_pod_waits():
    """Which claims are the group's is not known."""
    made = cluster(make_claim())
    status = made.pre_filter(member("a", BY_NAME))

    assert (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 'podgroup.scheduling.k8s.io "g" not found') == (
        status.code,
        status.message,
    )


def kept(*uids, selector="other-node"):
    results = [{"request": "r0", "driver": "gpu.example", "pool": "s0", "device": "a"}]
    reserved = [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": u} for u in uids
    ]
    allocation = {"devices": {"results": results}, "nodeSelector": on_node(selector)}
    return make_claim(status={"allocation": allocation, "reservedFor": reserved})


@pytest.mark.parametrize(
    ("release", "code", "text", "calls"),
    [
        (
            (1, 36),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "ResourceClaim unreserved for PodGroup",
            [("unreserve", "c0")],
        ),
        ((1, 37), Code.UNSCHEDULABLE, "deallocation of ResourceClaim completed", [("deallocate", "c0")]),
        ((1, 38), Code.UNSCHEDULABLE, "deallocation of ResourceClaim completed", [("deallocate", "c0")]),
    ],
)
async def test_an_idle_group_gives_its_claim_up(release, code, text, calls):
    """Up to 1.36 in two attempts, from 1.37 on in one."""
    gates = GATES if release > (1, 36) else {**GATES, "GangScheduling": True}
    made, pod = (
        cluster(kept("uid-g"), groups=[group(BY_NAME)], gates=gates, release=release),
        member("a", BY_NAME),
    )
    made.reasons(pod)
    status = await made.post_filter(pod)

    assert (code, text, calls) == (status.code, status.message, made.writer.calls)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("busy", ["a mate with a node", "another consumer"])
async def test_a_claim_in_use_is_kept(release, busy):
    """Devices that any other pod may use stay."""
    gates = GATES if release > (1, 36) else {**GATES, "GangScheduling": True}
    uids = ("uid-g",) if busy == "a mate with a node" else ("uid-g", "uid-h")
    made = cluster(kept(*uids), groups=[group(BY_NAME)], gates=gates, release=release)
    if busy == "a mate with a node":
        made.handle.pod_groups.add(member("b").placed_on("n0"))
    made.reasons(member("a", BY_NAME))
    await made.post_filter(member("a", BY_NAME))

    assert "deallocate" not in [call[0] for call in made.writer.calls]


@pytest.mark.parametrize(
    ("release", "mate", "in_trial", "expected"),
    [
        pytest.param((1, 36), False, False, [OF_GROUP], id="1.36 keeps it"),
        pytest.param((1, 37), False, False, [], id="the last pod"),
        pytest.param((1, 37), True, False, [OF_GROUP], id="another pod has a node"),
        pytest.param((1, 37), False, True, [OF_GROUP], id="a trial changes nothing"),
    ],
)
async def test_unreserve(release, mate, in_trial, expected):
    """A group of which no pod has a node has its claims reserved no more, from 1.37 on."""
    gates = GATES if release > (1, 36) else {**GATES, "GangScheduling": True}
    made, pod = (
        cluster(make_claim(), groups=[group(BY_NAME)], gates=gates, release=release),
        member("a", BY_NAME),
    )
    made.reserved(pod, "n0")
    await made.plugin.pre_bind(made.state, pod, "n0")
    if mate:
        made.handle.pod_groups.add(member("b").placed_on("n1"))
    if in_trial:
        made.state.write(PodGroupStates, PodGroupStates())
    await made.plugin.unreserve(made.state, pod, "n0")

    assert expected == consumers(made)
