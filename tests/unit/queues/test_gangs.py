"""Groups: room for all pods that have to run together, or for none of them, and who leaves for that."""

from contextlib import asynccontextmanager

import pytest

from berth_queues.making_room import NO_ROOM
from berth_sdk import Code, ObjectKey, Reason
from berth_sdk.testing import Refused, running
from berth_sdk.testing.builders import make_node
from tests.unit.queues.builders import FULL, Queues, cpu, key, pod, refusal, uid

NODES = ("n0", "n1", "n2")
ALL_FULL = dict.fromkeys(NODES, FULL)
LABEL = "scheduling.x-k8s.io/pod-group"


def member(namespace, name, cores, group, *, native=False):
    """A pod of a group of one of the two kinds."""
    document = pod(namespace, name, cores)
    if native:
        document["spec"]["schedulingGroup"] = {"podGroupName": group}
    else:
        document["metadata"]["labels"][LABEL] = group
    return document


def group(host, namespace, name, minimum, *, native=False):
    """Let the plugin know of a group of which so many pods have to run together."""
    if native:
        named = ObjectKey("scheduling.k8s.io", "v1alpha2", "podgroups", namespace, name)
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    else:
        named = ObjectKey("scheduling.x-k8s.io", "v1alpha1", "podgroups", namespace, name)
        spec = {"minMember": minimum}
    host.cluster.put_object(named, {"spec": spec})


@asynccontextmanager
async def crowded(quotas, **arguments):
    """Three nodes of eight cores, full of b's pods of two cores."""
    plugin = Queues(("ElasticQuota", "PodGroup", "CoschedulingPodGroup"))
    async with running(plugin, *map(make_node, NODES), arguments=arguments) as host:
        for namespace, document in quotas.items():
            host.cluster.put_object(key(namespace), document)
        for number in range(12):
            host.cluster.put_pod(pod("b", f"b{number:02}", 2), NODES[number % 3])
        await host.update()
        yield host


def put_back(host, uids, **metadata):
    """Let b's pods of these UIDs be on their nodes, with that in their metadata."""
    for each in uids:
        document = pod("b", each.removeprefix("pod-b-"), 2)
        document["metadata"] |= metadata
        host.cluster.put_pod(document, NODES[int(each[-2:]) % 3])


def nodes_of(uids):
    return sorted(NODES[int(each[-2:]) % 3] for each in uids)


@pytest.mark.parametrize("native", [False, True], ids=["coscheduling", "native"])
async def test_room_on_several_nodes(native):
    """One plan evicts for all pods of the group at once, and the others get their places by it."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 3, native=native)
        pods = [member("a", f"p{i}", 4, "gang", native=native) for i in range(3)]
        await host.sort_keys(*pods)
        first = await host.post_filter(pods[0], ALL_FULL)
        others = [await host.post_filter(each, ALL_FULL) for each in pods[1:]]

    assert 6 == len(set(first.victim_uids))
    assert [[], []] == [list(each.victim_uids) for each in others]
    assert {Code.SUCCESS} == {each.status.code for each in (first, *others)}
    freed = nodes_of(first.victim_uids)
    assert sorted(each.nominated_node_name for each in (first, *others)) == freed[::2] == freed[1::2]


async def test_a_plan_that_did_not_arrive():
    """Victims of which none is leaving by the next attempt are named again, and later those that stay."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 3)
        pods = [member("a", f"p{i}", 4, "gang") for i in range(3)]
        await host.sort_keys(*pods)
        lost = await host.post_filter(pods[0], ALL_FULL)
        _next_attempt(host, *pods)
        again = [await host.post_filter(each, ALL_FULL) for each in pods]
        leaving = pod("b", again[0].victim_uids[0].removeprefix("pod-b-"), 2)
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        host.cluster.put_pod(leaving, NODES[int(uid(leaving)[-2:]) % 3])
        _next_attempt(host, *pods)
        rest = [await host.post_filter(each, ALL_FULL) for each in pods]

    assert [6, 0, 0] == [len(each.victim_uids) for each in again]
    assert set(lost.victim_uids) == set(again[0].victim_uids) == {*rest[0].victim_uids, uid(leaving)}
    assert [5, 0, 0] == [len(each.victim_uids) for each in rest]


def _next_attempt(host, *pods):
    for each in pods:
        host.attempts[uid(each)] += 1


async def test_the_last_pod_of_a_group():
    """The place that was made for it with its group is not held against it once all others have theirs."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 3)
        pods = [member("a", f"p{i}", 4, "gang") for i in range(3)]
        await host.sort_keys(*pods)
        proposals = [await host.post_filter(each, ALL_FULL) for each in pods]
        for each in proposals[0].victim_uids:
            host.cluster.remove_pod(each)
        for each, proposal in zip(pods[:2], proposals, strict=False):
            host.cluster.put_pod(each, proposal.nominated_node_name)
        await host.update()

        assert await refusal(host, pods[2]) is None


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
async def test_a_group_that_is_queued_as_a_unit(version):
    """One proposal makes room for all of its pods; while its victims leave no others are proposed."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        named = ObjectKey("scheduling.k8s.io", version, "podgroups", "a", "gang")
        host.cluster.put_object(named, {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
        pods = [member("a", f"p{i}", 4, "gang", native=True) for i in range(3)]
        await host.sort_keys(*pods)
        (victims,) = await host.pod_group_post_filter("gang", *pods, rejections=ALL_FULL)
        assert 6 == len(victims)
        put_back(host, victims, deletionTimestamp="2026-01-01T00:00:00Z")
        await host.update()

        assert [] == await host.pod_group_post_filter("gang", *pods, rejections=ALL_FULL)


async def test_victims_that_are_gone_for_the_time_of_a_trial():
    """The scheduler tried the group without them and evicted none: the next proposal needs no pause."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 3)
        pods = [member("a", f"p{i}", 4, "gang") for i in range(3)]
        await host.sort_keys(*pods)
        await host.set_time(0.0)
        (victims,) = await host.pod_group_post_filter("gang", *pods, rejections=ALL_FULL)
        for each in victims:
            host.cluster.remove_pod(each)
        await host.update()
        put_back(host, victims)
        await host.update()
        await host.set_time(31.0)

        assert [victims] == await host.pod_group_post_filter("gang", *pods, rejections=ALL_FULL)


async def test_a_group_for_which_there_is_no_room():
    """Where its pods can go to no other node, no pod is proposed."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 3)
        pods = [member("a", f"p{i}", 4, "gang") for i in range(3)]
        await host.sort_keys(*pods)
        taint = Reason("node(s) had untolerated taint(s)", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        with pytest.raises(Refused) as refused:
            await host.pod_group_post_filter("gang", *pods, rejections={**ALL_FULL, "n1": taint, "n2": taint})

    assert NO_ROOM.reasons == refused.value.status.reasons


async def test_all_or_none():
    """Where the last pod of a group finds no place, no pod is evicted for the first."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 3)
        pods = [member("a", f"p{i}", 4, "gang") for i in range(3)]
        await host.sort_keys(*pods)
        taint = Reason("node(s) had untolerated taint(s)", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        answer = await host.post_filter(pods[0], {**ALL_FULL, "n1": taint, "n2": taint})

    assert (Code.UNSCHEDULABLE, []) == (answer.status.code, list(answer.victim_uids))


async def test_more_than_its_quota():
    """A group of which not all pods are within the quota takes nothing back, though the first pods are."""
    async with crowded({"a": cpu(10), "b": cpu(14)}) as host:
        group(host, "a", "gang", 3)
        pods = [member("a", f"p{i}", 4, "gang") for i in range(3)]
        await host.sort_keys(*pods)
        answer = await host.post_filter(pods[0], ALL_FULL)

    assert (Code.UNSCHEDULABLE, []) == (answer.status.code, list(answer.victim_uids))


async def test_pods_that_are_not_there_yet():
    """Pods of a group that did not come yet are planned for as pods like the first."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        group(host, "a", "gang", 4)
        first = await host.post_filter(member("a", "p0", 4, "gang"), ALL_FULL)

    assert 8 == len(first.victim_uids)


async def test_held_back_as_a_whole():
    """The first pod of a group waits where the queue has no room for all that have to run together."""
    async with crowded({"a": cpu(4, 9), "b": cpu(40)}) as host:
        group(host, "a", "gang", 3)
        said = await refusal(host, member("a", "p0", 4, "gang"))
        assert await refusal(host, pod("a", "alone", 4)) is None

    assert "over its limit of cpu for 3 pods of a group together: at most 9 of cpu" in said


async def test_a_group_goes_as_a_whole():
    """A pod of a group that would be too small without it leaves with all of the group, or stays."""
    async with crowded({"a": cpu(8), "b": cpu(18)}) as host:
        for number in (0, 1, 2):
            host.cluster.remove_pod(uid(pod("b", f"b{number:02}")))
            host.cluster.put_pod(member("b", f"g{number:02}", 2, "gang"), NODES[number])
        group(host, "b", "gang", 3)
        for number in range(3, 12):
            host.cluster.put_pod(pod("b", f"b{number:02}", 2, priority=2_000_000_000), NODES[number % 3])
        answer = await host.post_filter(pod("a", "p", 2), ALL_FULL)

    assert {f"pod-b-g{number:02}" for number in range(3)} == set(answer.victim_uids)


async def test_in_vain():
    """Where victims left and the pods did not come, others are evicted for the group only after a pause."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        await host.set_time(0.0)
        waiting = pod("a", "p", 2)
        first = await host.post_filter(waiting, ALL_FULL)
        for each in first.victim_uids:
            host.cluster.remove_pod(each)
            host.cluster.put_pod(pod("other", each, 2), NODES[int(each[-2:]) % 3])
        await host.update()
        await host.set_time(31.0)
        again = await host.post_filter(waiting, ALL_FULL)
        await host.set_time(95.0)
        later = await host.post_filter(waiting, ALL_FULL)

    assert "in vain" in again.status.reasons[0]
    assert (Code.SUCCESS, 1) == (later.status.code, len(later.victim_uids))


async def test_an_eviction_that_does_not_come():
    """Places hold no longer than half a minute where a victim is not deleted."""
    async with crowded({"a": cpu(16), "b": cpu(8)}) as host:
        await host.set_time(0.0)
        first = await host.post_filter(pod("a", "p", 2), ALL_FULL)
        host.cluster.remove_pod("pod-b-b00" if "pod-b-b00" not in first.victim_uids else "pod-b-b01")
        assert await refusal(host, pod("b", "again", 2)) is not None
        await host.set_time(31.0)
        assert await refusal(host, pod("b", "again", 2)) is None
