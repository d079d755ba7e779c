"""Pods that a PodDisruptionBudget protects are evicted only where nothing else makes room."""

import pytest

from berth_sdk import ObjectKey
from tests.unit.queues.builders import FULL, at_work, cpu, evicted, pod, uid

QUOTAS = {"a": cpu(4, 8), "b": cpu(4, 8)}
WEB = {"matchLabels": {"app": "web"}}


def budget(allowed=0, selector=WEB, **status):
    """A budget that lets so many more pods be disrupted."""
    return {"spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed, **status}}


def web(name, priority=0, namespace="b"):
    """A pod of two cores that the budget means."""
    document = pod(namespace, name, 2, priority)
    document["metadata"]["labels"] = {"app": "web"}
    return document


async def protect(host, document, namespace="b", name="budget"):
    """Let the plugin know of the budget."""
    host.cluster.put_object(ObjectKey("policy", "v1", "poddisruptionbudgets", namespace, name), document)
    await host.update()


def place(host, *pods, node="n0"):
    for each in pods:
        host.cluster.put_pod(each, node)


async def test_another_goes():
    """A more important pod goes in the place of one that is protected."""
    for protected, expected in ((False, "pod-b-web"), (True, "pod-b-plain")):
        async with at_work(QUOTAS) as host:
            place(host, web("web", 0), pod("b", "plain", 2, 5), pod("b", "top", 4, 9))
            if protected:
                await protect(host, budget())

            assert ("n0", {expected}) == await evicted(host, pod("a", "p", 2))


async def test_no_other_way():
    """Where only protected pods make room, they go."""
    async with at_work(QUOTAS) as host:
        place(host, *(web(f"web{i}", i) for i in range(4)))
        await protect(host, budget())

        assert ("n0", {"pod-b-web0", "pod-b-web1"}) == await evicted(host, pod("a", "p", 4))


async def test_allowance():
    """What a budget allows goes, the least important first; the others are protected."""
    async with at_work(QUOTAS) as host:
        place(host, web("low", 1), web("high", 2), pod("b", "plain", 2, 5), pod("b", "top", 2, 9))
        await protect(host, budget(1))

        assert ("n0", {"pod-b-low", "pod-b-plain"}) == await evicted(host, pod("a", "p", 4))


async def test_another_node():
    """The node is chosen where no budget is violated, whatever the victims' priorities."""
    async with at_work({"a": cpu(8), "b": cpu(8)}, "n0", "n1") as host:
        place(host, *(web(f"web{i}") for i in range(4)))
        place(host, pod("b", "plain", 8, 100), node="n1")
        await protect(host, budget())

        assert ("n1", {"pod-b-plain"}) == await evicted(host, pod("a", "p", 2))


async def test_own_namespace():
    """Among a quota's own less important pods the protected ones stay, too."""
    async with at_work({"a": cpu(4, 4)}) as host:
        place(host, web("web", 1, "a"), pod("a", "plain", 2, 2))
        await protect(host, budget(), "a")

        assert ("n0", {"pod-a-plain"}) == await evicted(host, pod("a", "p", 2, 9), FULL)


@pytest.mark.parametrize(
    ("document", "protects"),
    [
        pytest.param(budget(), True, id="none allowed"),
        pytest.param(budget(1), False, id="one allowed"),
        pytest.param(budget(selector={}), False, id="everything selected"),
        pytest.param(budget(selector=None), False, id="no selector"),
        pytest.param(budget(selector={"matchLabels": {"app": "db"}}), False, id="other labels"),
        pytest.param(budget(disruptedPods={"web": "2026-01-01T00:00:00Z"}), False, id="counted already"),
        pytest.param({"spec": {"selector": 5}}, False, id="can't be read"),
        *(
            pytest.param(budget(selector={"matchExpressions": [requirement]}), protects, id=str(requirement))
            for requirement, protects in (
                ({"key": "app", "operator": "In", "values": ["web", "db"]}, True),
                ({"key": "app", "operator": "In", "values": ["db"]}, False),
                ({"key": "app", "operator": "NotIn", "values": ["db"]}, True),
                ({"key": "tier", "operator": "NotIn", "values": ["db"]}, True),
                ({"key": "app", "operator": "Exists"}, True),
                ({"key": "tier", "operator": "Exists"}, False),
                ({"key": "tier", "operator": "DoesNotExist"}, True),
                ({"key": "app", "operator": "DoesNotExist"}, False),
            )
        ),
    ],
)
async def test_whom_it_protects(document, protects):
    """A budget that allows no more protects the pods that it means; one that can't be read protects none."""
    async with at_work(QUOTAS) as host:
        place(host, web("web"), pod("b", "plain", 2, 5), pod("b", "top", 4, 9))
        await protect(host, document)
        _, victims = await evicted(host, pod("a", "p", 2))

    assert ({"pod-b-plain"} if protects else {uid(web("web"))}) == victims


async def test_a_budget_that_goes():
    """A budget that is deleted protects no pod any more."""
    async with at_work(QUOTAS) as host:
        place(host, web("web"), pod("b", "plain", 2, 5), pod("b", "top", 4, 9))
        await protect(host, budget())
        host.cluster.remove_object(ObjectKey("policy", "v1", "poddisruptionbudgets", "b", "budget"))
        await host.update()

        assert ("n0", {"pod-b-web"}) == await evicted(host, pod("a", "p", 2))
