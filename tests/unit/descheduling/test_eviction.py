"""A plan is carried out one pod at a time, and only on pods that are as they were planned."""

import json

import pytest

from berth.client.errors import NotFoundError, RejectedError, ThrottledError
from berth.descheduling.eviction import Evicting, MoveResult
from berth.descheduling.plan import DeschedulePlan, Move
from tests.failures.reporting import reports

BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


def move(name, **fields):
    given = {
        "pod": f"default/{name}",
        "uid": name,
        "from_": "n0",
        "to": "n1",
        "profile": "p",
        "strategy": "RemoveDuplicates",
        "found": "2 pods of its owner are on n0",
        "gain": "",
    }
    return Move(**{**given, **fields})


def pod(name, uid=None, node="n0", **metadata):
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid or name, **metadata},
        "spec": {"nodeName": node},
    }


class Server:
    """In place of an Api: pods by name, evictions as they came, and what is answered to them."""

    def __init__(self, *pods, stay=()):
        self.pods = {each["metadata"]["name"]: each for each in pods}
        self.evictions = []
        self.refusals = {}
        self.stay = stay
        self.slept = []

    async def get(self, resource, namespace, name):
        del resource, namespace
        if name not in self.pods:
            raise NotFoundError(404, "NotFound", f'pods "{name}" not found')
        return json.dumps(self.pods[name]).encode()

    async def call(self, method, path, body, *, retry):
        del retry
        assert "POST" == method
        name = path.split("/")[-2]
        assert path.endswith(f"/namespaces/default/pods/{name}/eviction")
        if name in self.refusals:
            raise self.refusals[name]
        self.evictions.append(json.loads(body))
        if name not in self.stay:
            del self.pods[name]

    async def sleep(self, seconds):
        self.slept.append(seconds)

    async def carried_out(self, *moves, **options):
        plan = DeschedulePlan(nodes=2, pods=2, moves=list(moves), left_alone=[])
        evicting = Evicting(self, max_per_minute=30, sleep=self.sleep, **options)
        return [
            (each.pod.partition("/")[2], each.result, each.message) for each in await evicting.carry_out(plan)
        ]


async def test_an_eviction_says_why():
    """It names the strategy, and holds for that pod only."""
    server = Server(pod("a"))

    assert [("a", MoveResult.EVICTED, "")] == await server.carried_out(move("a"), grace_period_seconds=5)
    (eviction,) = server.evictions
    assert {
        "reason": "triggered by p/RemoveDuplicates: 2 pods of its owner are on n0",
        "requested-by": "berth",
    } == eviction["metadata"]["annotations"]
    assert {"preconditions": {"uid": "a"}, "gracePeriodSeconds": 5} == eviction["deleteOptions"]


async def test_evictions_are_paced():
    """Between two evictions passes what their number a minute asks for."""
    server = Server(pod("a"), pod("b"), pod("c"))

    await server.carried_out(move("a"), move("b"), move("c"))

    assert [2.0, 2.0] == server.slept


@pytest.mark.parametrize(
    ("there", "why"),
    [
        pytest.param((), "it is gone by now", id="gone"),
        pytest.param((pod("a", uid="other"),), "another pod has its name by now", id="another"),
        pytest.param((pod("a", node="n2"),), "it is on n2 by now", id="moved"),
        pytest.param(
            (pod("a", deletionTimestamp="2026-11-23T08:00:00Z"),), "it is being deleted already", id="leaving"
        ),
    ],
)
async def test_pods_that_are_others_by_now(there, why):
    """They are skipped, and nothing is sent."""
    server = Server(*there)

    assert [("a", MoveResult.SKIPPED, why)] == await server.carried_out(move("a"))
    assert [] == server.evictions


@reports("eviction-refused", answer="the result of `berth deschedule`: the pod and the API server's words")
async def test_a_budget_that_refuses_is_not_asked_again():
    """Other pods of that budget are left to the next plan; those of another go."""
    server = Server(pod("a"), pod("b"), pod("c"))
    server.refusals["a"] = ThrottledError(429, "TooManyRequests", BUDGET, 0)

    done = await server.carried_out(
        move("a", budgets=("default/x",)),
        move("b", budgets=("default/x",)),
        move("c", budgets=("default/y",)),
    )

    assert [
        ("a", MoveResult.REFUSED, BUDGET),
        ("b", MoveResult.REFUSED, "another eviction of default/x was not made"),
        ("c", MoveResult.EVICTED, ""),
    ] == done


async def test_a_group_is_broken_off():
    """Once a move of a group was not made the rest of it would bring nothing."""
    server = Server(pod("b"))

    done = await server.carried_out(move("a", group="g"), move("b", group="g"))

    assert [MoveResult.SKIPPED, MoveResult.REFUSED] == [result for _, result, _ in done]
    assert [] == server.evictions


@reports("eviction-refused", answer="the result of `berth deschedule`: the pod and the API server's words")
async def test_other_refusals_cost_one_pod():
    """What the server refuses for the pod itself stops no other."""
    server = Server(pod("a"), pod("b"))
    server.refusals["a"] = RejectedError(403, "Forbidden", "no")

    assert [("a", MoveResult.REFUSED, "no"), ("b", MoveResult.EVICTED, "")] == await server.carried_out(
        move("a"), move("b")
    )


async def test_moves_wait_for_those_before_to_leave():
    """A pod that does not leave in time stops the plan: what follows counts on its room."""
    server = Server(pod("a"), pod("b"), stay={"a"})

    done = await server.carried_out(move("a"), move("b"), patience_seconds=3)

    assert [
        ("a", MoveResult.EVICTED, ""),
        ("b", MoveResult.REFUSED, "default/a is still leaving its node"),
    ] == done
    assert [1.0] * 3 == server.slept
