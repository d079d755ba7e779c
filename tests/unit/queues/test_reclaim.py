"""Whom a pod may evict, and where."""

import msgspec
import pytest

from berth_sdk import Action, ClusterEvent, Code, Reason
from tests.unit.queues.builders import FULL, at_work, cpu, evicted, pod, refusal, uid

NO_ROOM = "no node where evicting pods that queues let go makes room"
QUOTAS = {"a": cpu(4, 8), "b": cpu(4, 8)}


def place(host, *pods, node="n0"):
    """Count pods on a node."""
    for each in pods:
        host.cluster.put_pod(each, node)


def borrowing(cores=6, priority=0):
    """Single-core pods of b that borrow from a's min."""
    return [pod("b", f"b{i}", 1, priority) for i in range(cores)]


async def test_reclaims():
    """What a quota guarantees is taken back from who borrowed it, in spite of their priority, and no more."""
    async with at_work(QUOTAS) as host:
        owners = borrowing(8, priority=100)
        place(host, *owners)
        node, victims = await evicted(host, pod("a", "p", 2))

    assert ("n0", 2) == (node, len(victims))
    assert victims <= {uid(each) for each in owners}


@pytest.mark.parametrize(
    ("cores", "least", "expected"),
    [
        pytest.param(4, 4, {"b0", "b1", "b2", "b3"}, id="all that b borrowed"),
        pytest.param(4, 5, NO_ROOM, id="b borrowed less than that"),
        pytest.param(5, 4, NO_ROOM, id="more than its min: no reclaiming"),
    ],
)
async def test_no_further_than_their_min(cores, least, expected):
    """Borrowers lose what they borrowed, the least important pods first, and nothing of their own min."""
    quotas = {"a": cpu(4, 8), "b": cpu(least, 8)}
    async with at_work(quotas) as host:
        place(host, *(pod("b", f"b{i}", 1, i) for i in range(8)))
        found = await evicted(host, pod("a", "p", cores), FULL)

    named = {f"pod-b-{name}" for name in expected} if isinstance(expected, set) else expected
    assert named == (found[1] if isinstance(expected, set) else found)


async def test_own_namespace():
    """Over its min a quota makes room among its own less important pods only."""
    async with at_work(QUOTAS) as host:
        place(host, pod("a", "low", 2, 1), pod("a", "equal", 2, 5), *borrowing(4))
        preemptor = pod("a", "p", 2, 5)

        assert ("n0", {"pod-a-low"}) == await evicted(host, preemptor)
        assert NO_ROOM == await evicted(host, pod("a", "q", 2, 1))
        assert NO_ROOM == await evicted(host, pod("a", "r", 3, 5))


async def test_its_own_and_borrowed():
    """Less important pods of its own queue go as far as the rest can be taken back from others."""
    async with at_work(QUOTAS) as host:
        place(host, pod("a", "low", 1, 1), pod("a", "lower", 1), *borrowing(6, priority=100))
        node, victims = await evicted(host, pod("a", "p", 3, 5))

        assert ("n0", 3) == (node, len(victims))
        assert "pod-a-lower" in victims
        assert "pod-a-low" not in victims


async def test_its_own_and_borrowed_kept():
    """What was made free for it, of its own queue and of others, no other queue may borrow meanwhile."""
    async with at_work(QUOTAS) as host:
        place(host, pod("a", "low", 4, 1), *borrowing(4))
        _, victims = await evicted(host, pod("a", "p", 4, 5))
        for each in victims:
            host.cluster.remove_pod(each)

        assert {"pod-a-low"} == victims
        assert "nothing is left to borrow" in await refusal(host, pod("b", "greedy"))


async def test_under_its_max_again():
    """A pod that its own max turns down gets room where a less important one of its namespace goes."""
    async with at_work({"a": cpu(2, 2), "b": cpu(6)}) as host:
        place(host, pod("a", "low", 2, 1), pod("a", "beside", 1, 1), node="n0")
        assert "limit" in await refusal(host, pod("a", "p", 2, 9))
        assert ("n0", {"pod-a-low", "pod-a-beside"}) == await evicted(host, pod("a", "p", 2, 9))


async def test_without_a_quota():
    """A pod without a quota evicts less important ones without a quota, whatever quotas there are."""
    async with at_work({"b": cpu(4)}) as host:
        place(host, pod("b", "b0", 4), pod("free", "low", 2), pod("other", "high", 2, 9))

        assert ("n0", {"pod-free-low"}) == await evicted(host, pod("free", "p", 2, 5), FULL)
        assert NO_ROOM == await evicted(host, pod("free", "p", 3, 5), FULL)


async def test_who_stays():
    """Pods of the cluster itself are spared, as is everybody where nothing is reclaimed."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8, priority=2_000_000_000))
        assert NO_ROOM == await evicted(host, pod("a", "p"))
    async with at_work(QUOTAS, arguments={"reclaim": False}) as host:
        place(host, *borrowing(8))
        assert NO_ROOM == await evicted(host, pod("a", "p"))


async def test_never():
    """A pod that must not preempt does not."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8))
        shy = pod("a", "p")
        shy["spec"]["preemptionPolicy"] = "Never"

        assert "not eligible due to preemptionPolicy=Never." == await evicted(host, shy)


async def test_least_harm():
    """Of several nodes the one is chosen whose most important victim matters least, then the fewest go."""
    async with at_work({"a": cpu(8), "b": cpu(8)}, "n0", "n1", "n2") as host:
        place(host, pod("b", "important", 5, 7), node="n0")
        place(host, pod("b", "x", 2, 1), pod("b", "y", 2, 1), node="n1")
        place(host, pod("b", "z", 7, 1), node="n2")

        assert ("n1", {"pod-b-z"}) == await evicted(host, pod("a", "p", 4))
        assert ("n0", {"pod-b-important"}) == await evicted(host, pod("a", "p", 4), n1=_no(), n2=_no())


def _no():
    """A reason that evicting pods does not change."""
    return Reason("node(s) had untolerated taint(s)", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@pytest.mark.parametrize(
    ("reason", "helps"),
    [
        pytest.param(FULL, True, id="cpu"),
        pytest.param(Reason("Insufficient cpu; Too many pods"), True, id="cpu and pods"),
        pytest.param(Reason("node(s) didn't have free ports"), False, id="a port"),
        pytest.param(Reason("Insufficient cpu; node(s) didn't have free ports"), False, id="cpu and a port"),
        pytest.param(_no(), False, id="a taint"),
    ],
)
async def test_where_it_helps(reason, helps):
    """No pod is evicted from a node where something is in the way that the plugin knows nothing of."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8))

        assert helps == (NO_ROOM != await evicted(host, pod("a", "p"), reason))


async def test_no_second_time():
    """While victims leave no other pod is evicted for the pod, nor are they evicted for another."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8))
        preemptor = pod("a", "p", 2)
        _, first = await evicted(host, preemptor)
        _, second = await evicted(host, pod("a", "q", 2))
        assert not first & second

        for gone in borrowing(8):
            if uid(gone) in first:
                host.cluster.put_pod(leaving(gone), "n0")
        assert "pods that are leaving make room for the pod" == await evicted(host, preemptor)


async def test_in_shadow():
    """No pod leaves on the word of a plugin in shadow, so it counts none as leaving."""
    async with at_work(QUOTAS) as host:
        await host.configure(shadow=True)
        place(host, *borrowing(8))
        _, first = await evicted(host, pod("a", "p", 2))
        _, second = await evicted(host, pod("a", "q", 2))

        assert (2, first) == (len(first), second)


def leaving(document):
    """The pod after it was deleted."""
    return {**document, "metadata": {**document["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


async def test_promised_room():
    """What a preemptor was promised others can't have, until it has it, or is gone."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8))
        preemptor, greedy = pod("a", "p", 2), pod("b", "again", 1)
        _, victims = await evicted(host, preemptor)
        for each in victims:
            host.cluster.remove_pod(each)
        assert "nothing is left to borrow" in await refusal(host, greedy)
        assert await refusal(host, preemptor) is None

        event = ClusterEvent("Pod", Action.DELETE, old=msgspec.json.encode(preemptor))
        assert [[True]] == await host.hints([greedy], event)
        assert await refusal(host, greedy) is None


async def test_promise_kept():
    """Once the preemptor is placed it counts once."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8))
        preemptor = pod("a", "p", 2)
        _, victims = await evicted(host, preemptor)
        for each in victims:
            host.cluster.remove_pod(each)
        await host.place(preemptor, "n0")
        assert "nothing is left to borrow" in await refusal(host, pod("b", "again", 1))
        host.cluster.remove_pod(uid(preemptor))
        assert await refusal(host, pod("b", "again", 2)) is None


async def test_promise_that_is_not_redeemed():
    """Half a minute after the last victim has gone a promise holds no more."""
    async with at_work(QUOTAS) as host:
        place(host, *borrowing(8))
        _, victims = await evicted(host, pod("a", "p", 2))
        await host.set_time(100.0)
        for each in victims:
            host.cluster.remove_pod(each)
        assert "nothing is left to borrow" in await refusal(host, pod("b", "again"))
        await host.set_time(130.5)
        assert await refusal(host, pod("b", "again")) is None
