"""Whatever is taken back, and by whom: it comes to an end, and nothing that was taken back is lost again."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_queues.budgets import Budgets
from berth_queues.candidates import Candidates
from berth_queues.cluster import Cluster
from berth_queues.plan import Claimant, PlanState, Wanted
from berth_queues.planner import Planner
from berth_queues.queue_objects import QueueObject, queue_name
from berth_queues.settings import SYSTEM_CLUSTER_CRITICAL
from berth_queues.tree import QueueSpec
from berth_queues.waiting import WaitingPod
from berth_sdk import Clock
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.testing import make_node, make_pod

CORES = 8
PROFILE = "default-scheduler"


class Day:
    """A cluster in which pods of several queues want more than there is, and reclaim it from each other."""

    def __init__(self, random, *, by_fair_share, priorities=(0,)):
        self.random, self.by_fair_share = random, by_fair_share
        self.cluster = Cluster(Clock())
        self.nodes = [decode(make_node(f"n{i}"), decode_node) for i in range(random.randint(2, 5))]
        for index, node in enumerate(self.nodes):
            self.cluster.put_node(index, node)
        self._queues()
        self.pods, self.reclaimed, self.evictions, self.priority = {}, set(), [], {}
        for number in range(random.randint(8, 40)):
            team = random.choice(self.teams)
            self.pods[f"p{number}"] = (team, random.choice((1, 1, 2, 4)) * 1000)
            self.priority[f"p{number}"] = random.choice(priorities)
            self.wait(f"p{number}")

    def _queues(self):
        random, specs = self.random, {"root": ("", 0)}
        self.teams = []
        for department in range(random.randint(1, 3)):
            name = f"d{department}"
            specs[name] = ("root", 0)
            for team in range(random.randint(1, 3)):
                specs[f"{name}t{team}"] = (name, random.randint(0, 10) * 1000)
                self.teams.append(f"{name}t{team}")
        for name, (parent, quota) in specs.items():
            spec = QueueSpec(
                queue_name(name),
                queue_name(parent) if parent else "",
                {"cpu": quota},
                weight=random.choice((1.0, 2.0)),
                owns_nodes=not parent,
            )
            self.cluster.registry.objects.by_name[name] = QueueObject(spec, (name,), None)
        self.cluster.registry.changed()

    def wait(self, uid):
        team, cores = self.pods[uid]
        amounts = {"cpu": cores, "pods": 1}
        self.cluster.waiting.put(
            WaitingPod(uid, team, queue_name(team), PROFILE, self.priority[uid], 0, amounts)
        )

    def place(self, uid, node_name):
        team, cores = self.pods[uid]
        document = make_pod(uid, namespace=team, requests={"cpu": f"{cores}m"}, priority=self.priority[uid])
        document["metadata"]["uid"] = uid
        self.cluster.place(decode(document, decode_pod), node_name, 0)
        self.cluster.waiting.leave(uid)

    def fill(self):
        """Place what fits, in any order."""
        waiting = list(self.cluster.waiting.by_uid)
        self.random.shuffle(waiting)
        for uid in waiting:
            _, cores = self.pods[uid]
            for node in self.nodes:
                used = self.cluster.ledger.on_node.get(node.name, {})
                if used.get("cpu", 0) + cores <= CORES * 1000:
                    self.place(uid, node.name)
                    break

    def round(self, *, fills):
        """Let each waiting pod reclaim what it may; whether one did. Free room is used where it `fills`."""
        before = len(self.evictions)
        waiting = list(self.cluster.waiting.by_uid)
        self.random.shuffle(waiting)
        for uid in waiting:
            team, cores = self.pods[uid]
            entitled = self.cluster.entitlement(by_fair_share=self.by_fair_share)
            state = PlanState(
                self.cluster.ledger,
                self.cluster.promises,
                Budgets(),
                self.cluster.groups,
                self.cluster.devices,
                entitled,
                SYSTEM_CLUSTER_CRITICAL,
            )
            planner = Planner(state, reclaims=True)
            wanted = [Wanted(uid, {"cpu": cores, "pods": 1})]
            claimant = Claimant(uid, queue_name(team), self.priority[uid], wanted)
            plan = planner.plan(claimant, Candidates(self.nodes))
            if plan is not None and (plan.victims or fills):
                self._carry_out(uid, plan, entitled)
        return len(self.evictions) > before

    def _carry_out(self, uid, plan, entitled):
        for victim in plan.victims:
            queue = self.cluster.registry.queue(victim.queue)
            if victim.namespace == self.pods[uid][0]:
                assert victim.priority < self.priority[uid]
            else:
                assert entitled.is_over(queue, victim.requests)
            self.cluster.remove(victim.uid)
            self.wait(victim.uid)
            self.evictions.append(victim.uid)
        self.place(uid, plan.places[uid].node_name)
        if plan.victims:
            self.reclaimed.add(uid)


def decode(document, decoder):
    return decoder(msgspec.json.encode(document))


@pytest.mark.parametrize("by_fair_share", [False, True], ids=["quota", "fair share"])
@given(seed=st.integers(0, 10**6))
def test_no_two_queues_evict_each_other_in_turn(by_fair_share, seed):
    """No pod that came by reclaiming is evicted, none is evicted twice, and then no pod may reclaim more."""
    day = Day(Random(seed), by_fair_share=by_fair_share)
    day.fill()
    while day.round(fills=False):
        assert len(day.evictions) <= len(day.pods)

    assert not day.reclaimed & set(day.evictions)
    assert len(day.evictions) == len(set(day.evictions))


@pytest.mark.parametrize("by_fair_share", [False, True], ids=["quota", "fair share"])
@given(seed=st.integers(0, 10**6))
def test_it_comes_to_an_end(by_fair_share, seed):
    """Also where queues that had enough use what larger victims leave, and more important pods go first."""
    day = Day(Random(seed), by_fair_share=by_fair_share, priorities=(0, 0, 1, 2))
    day.fill()
    rounds = 0
    while day.round(fills=True):
        rounds += 1
        assert rounds <= len(day.pods)
