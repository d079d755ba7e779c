"""Which pods have to wait: max, borrowing, and what counts as used."""

import asyncio

import msgspec
import pytest

from berth_plugin_proto import queueing_pb2
from berth_queues.amounts import requests_of, room
from berth_queues.elastic_quotas import Quotas, read
from berth_sdk import Action, ClusterEvent, PodStage
from berth_sdk.objects import decode_pod
from berth_sdk.testing import make_pod
from tests.unit.queues.builders import at_work, cpu, key, pod, quota, refusal, uid

MAX = "ElasticQuota a/quota would be over its limit of cpu: at most 0 of cpu"


def over_sum(left):
    """What a pod is refused with where the sum of all min leaves so much."""
    said = "its quota is used and nothing is left to borrow of cpu"
    return f"ElasticQuota a/quota: {said}: at most {left} of cpu"


SUM = over_sum(0)


@pytest.mark.parametrize(
    ("quotas", "used", "expected"),
    [
        pytest.param({}, {"a": 8}, None, id="no quota, no limit"),
        pytest.param({"a": cpu(2, 4)}, {"a": 1}, None, id="within min"),
        pytest.param({"a": cpu(2, 4)}, {"a": 2}, SUM, id="no quota to borrow from"),
        pytest.param({"a": cpu(2, 4), "b": cpu(2)}, {"a": 2}, None, id="borrows what b leaves"),
        pytest.param({"a": cpu(2, 4), "b": cpu(2)}, {"a": 2, "b": 2}, SUM, id="b uses its own"),
        pytest.param({"a": cpu(2, 4), "b": cpu(4)}, {"a": 4}, MAX, id="its own max"),
        pytest.param({"a": cpu(2), "b": cpu(4)}, {"a": 5}, None, id="no max"),
        pytest.param({"a": cpu(2, 4), "b": cpu(2)}, {"a": 2, "free": 6}, None, id="no quota, no use"),
        pytest.param({"a": cpu(2), "b": cpu(2)}, {"a": 1, "b": 3}, SUM, id="guaranteed and lent"),
        pytest.param({"a": quota({"memory": "1Gi"}, {})}, {"a": 8}, None, id="cpu is not governed"),
    ],
)
async def test_filter(quotas, used, expected):
    """A pod waits exactly when its namespace would be over its max, or all together over all min."""
    async with at_work(quotas) as host:
        for namespace, cores in used.items():
            host.cluster.put_pod(pod(namespace, "placed", cores), "n0")

        assert expected == await refusal(host, pod("a", "p"))


async def test_other_resources():
    """Every resource counts by itself, and only those that the pod asks for; `pods` counts pods."""
    quotas = {"a": quota({"cpu": "1", "example.com/gpu": "2", "pods": "2"}, {"memory": "1Gi"})}
    async with at_work(quotas) as host:
        host.cluster.put_pod(pod("a", "placed", 4, **{"example.com/gpu": 1}), "n0")

        assert "borrow of cpu" in await refusal(host, pod("a", "p"))
        assert "borrow of cpu, example.com/gpu" in await refusal(
            host, pod("a", "p", 1, **{"example.com/gpu": 2})
        )
        assert "limit of memory" in await refusal(host, pod("a", "p", memory="2Gi"))
        only_gpu = make_pod("p", namespace="a", requests={"example.com/gpu": 1})
        assert await refusal(host, only_gpu) is None
        host.cluster.put_pod(make_pod("second", namespace="a"), "n0")
        assert "borrow of pods" in await refusal(host, only_gpu)


@pytest.mark.parametrize(
    ("left", "text"),
    [
        ({"cpu": 2500, "memory": 3 * 2**30}, "at most 2500m of cpu, at most 3Gi of memory"),
        ({"cpu": 2000, "memory": 5 * 2**29}, "at most 2 of cpu, at most 2560Mi of memory"),
        ({"cpu": -6500, "memory": 7}, "at most 0 of cpu, at most 7 of memory"),
    ],
)
def test_what_is_left(left, text):
    """It is written as in a manifest, so that a pod's owner may copy it."""
    assert text == room(left)


async def test_reserve_counts_once():
    """Reserving twice takes nothing more, the state's word takes its place, an old attempt frees nothing."""
    async with at_work({"a": cpu(4)}) as host:
        first, other = pod("a", "first", 3), pod("a", "other", 1)
        await host.reserve(first, "n0")
        await host.reserve(first, "n0")
        assert await refusal(host, other) is None
        host.cluster.put_pod(first, "n0", PodStage.ASSUMED, attempt=1)
        assert await refusal(host, other) is None
        assert await refusal(host, pod("a", "big", 2)) == over_sum(1)

        host.cluster.remove_pod(uid(first))
        await host.update()
        host.attempts[uid(first)] = 2
        await host.reserve(first, "n0")
        host.attempts[uid(first)] = 1
        await host.unreserve(first, "n0")
        assert await refusal(host, pod("a", "big", 2)) == over_sum(1)
        await host.unreserve(first, "n0")
        assert await refusal(host, pod("a", "big", 4)) is None


async def test_quotas_come_and_go():
    """A quota counts from its first word to its last, and each change has the waiting pods tried again."""
    async with at_work({"a": cpu(1)}) as host:
        news = host.queueing.Requeue(queueing_pb2.RequeueRequest())
        first = asyncio.create_task(news.read())
        await host.handshake()  # comes after the stream on the same connection
        assert await refusal(host, pod("a", "p", 2)) == over_sum(1)
        host.cluster.put_object(key("a"), cpu(2))
        assert await refusal(host, pod("a", "p", 2)) is None
        message = await first
        assert ("requeue_all", "elasticquotas a/quota changed") == (
            message.WhichOneof("action"),
            message.cause,
        )

        host.cluster.put_object(key("a"), {**cpu(2), "status": {"used": {"cpu": "1"}}})
        host.cluster.remove_object(key("a"))
        assert await refusal(host, pod("a", "p", 8)) is None
        await news.read()
        host.cluster.put_object(key("b"), cpu(3))
        await host.update()
        assert "elasticquotas b/quota changed" == (await news.read()).cause
        news.cancel()


async def test_all_is_sent_again():
    """After a full transfer the same counts, once."""
    async with at_work({"a": cpu(4)}) as host:
        host.cluster.put_pod(pod("a", "placed", 2), "n0")
        await host.update()
        await host.sync()

        assert await refusal(host, pod("a", "p", 2)) is None
        assert await refusal(host, pod("a", "p", 3)) == over_sum(2)


def test_several_quotas():
    """Of several quotas in a namespace the first by name counts; one that can't be read is none."""
    quotas = Quotas()
    assert quotas.put(key("a", "x"), msgspec.json.encode(cpu(1)))
    assert not quotas.put(key("a", "y"), msgspec.json.encode(cpu(2)))
    assert "x" == quotas.counting["a"].name
    assert quotas.put(key("a", "x"), msgspec.json.encode(quota({"cpu": "much"})))
    assert "y" == quotas.counting["a"].name
    assert not quotas.put(key("b"), b'{"spec": []}')
    assert {"a"} == set(quotas.counting)


def test_what_a_pod_asks_for():
    """Requests are those that the scheduler counts: init containers, overhead and pod-level ones included."""
    document = make_pod("p", requests={"cpu": "500m", "memory": "1Ki"})
    document["spec"]["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "2", "x/y": 1}}}]
    document["spec"]["overhead"] = {"cpu": "100m"}

    assert {"cpu": 2100, "memory": 1024, "x/y": 1, "pods": 1} == requests_of(
        decode_pod(msgspec.json.encode(document))
    )


@pytest.mark.parametrize(
    ("gone", "waiting", "expected"),
    [
        pytest.param(pod("a", "gone"), pod("a", "p"), True, id="of its own namespace"),
        pytest.param(pod("b", "gone"), pod("a", "p"), True, id="of a namespace that borrows"),
        pytest.param(pod("free", "gone"), pod("a", "p"), False, id="of one without a quota"),
        pytest.param(pod("b", "gone"), pod("a", "p", 2), False, id="too little"),
        pytest.param(pod("b", "gone"), pod("a", "p", 4), False, id="its own max is in the way"),
    ],
)
async def test_hints(gone, waiting, expected):
    """A pod's end is of interest where the quota has room for the waiting pod then, and not before."""
    async with at_work({"a": cpu(2, 4), "b": cpu(2)}) as host:
        cores = 3 - (gone["metadata"]["namespace"] != "free")
        for each in (pod("a", "placed"), gone, pod("b", "others", cores)):
            host.cluster.put_pod(each, "n0")
        assert await refusal(host, waiting)
        event = ClusterEvent("Pod", Action.DELETE, old=msgspec.json.encode(gone))

        assert [[expected]] == await host.hints([waiting], event)


async def test_arguments():
    """What can't be is refused, all of it at once."""
    async with at_work({}) as host:
        assert [] == await host.configure({"reclaim": False, "sparedPriority": 5})
        errors = await host.configure({"colour": 1, "reclaim": "yes", "sparedPriority": True})
        assert ["colour", "reclaim", "sparedPriority"] == [each.partition(":")[0] for each in errors]


async def test_announced():
    """The plugin asks for quotas and disruption budgets, and says what it reads of a pod."""
    async with at_work({}) as host:
        offered = (await host.handshake()).capabilities

    expected = ["queues", "elasticquotas", "namespaces", "poddisruptionbudgets"]
    assert expected == [each.resource for each in offered.state.resources]
    assert {"Pod"} == {each.resource for each in offered.events}
    assert "/metadata/namespace" in offered.pod_fields.paths


@pytest.mark.parametrize(
    "spec",
    [
        {"min": {"cpu": "1e999999999"}},
        {"min": {"cpu": "-1"}},
        {"max": {f"x/{i}": 1 for i in range(65)}},
    ],
)
def test_what_no_quota_says(spec):
    """A quota whose amounts no cluster can have is refused, with the field."""
    with pytest.raises(ValueError, match=r"spec\.m"):
        read(key("a"), msgspec.json.encode({"spec": spec}))


def test_units():
    """CPU counts in thousandths of a core, all else in units."""
    found = read(key("a"), msgspec.json.encode(quota({"cpu": 1, "memory": "1Ki"}, {"cpu": "1500m"})))

    assert ({"cpu": 1000, "memory": 1024}, {"cpu": 1500}) == (found.min, found.max)
