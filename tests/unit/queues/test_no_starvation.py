"""A queue below its share gets its next pod in the time of the longest drain and one attempt.

    every second: what has ended leaves -> pods come -> each waiting pod is tried once, in the queues' order

A drain is the time from a pod's eviction until it is gone. Nodes have what is promised: quotas add up to no
more than they offer, and a place that a pod waits for is free for it once its victim is gone.
"""

from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth_queues.admission import refusal
from berth_queues.budgets import Budgets
from berth_queues.candidates import Candidates
from berth_queues.cluster import Cluster
from berth_queues.plan import Claimant, PlanState, Wanted
from berth_queues.planner import Planner
from berth_queues.promises import Promise, counted, counting
from berth_queues.queue_objects import QueueObject, queue_name
from berth_queues.settings import SYSTEM_CLUSTER_CRITICAL
from berth_queues.tree import QueueSpec
from berth_queues.waiting import WaitingPod
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.testing import make_node, make_pod
from tests.unit.queues.test_reclaim_rounds import CORES, PROFILE, decode

ONE = {"cpu": 1000, "pods": 1}
LONGEST_DRAIN = 4
AN_ATTEMPT = 1
SECONDS = 20
MAX_WAITING = 3


class Hour:
    """Queues whose pods of one core come and end by chance, on nodes that are too few. Units: seconds."""

    def __init__(self, random, *, by_fair_share):
        self.random, self.by_fair_share, self.now = random, by_fair_share, 0.0
        self.cluster = Cluster(SimpleNamespace(now=lambda: self.now))
        self.nodes = [decode(make_node(f"n{i}"), decode_node) for i in range(random.randint(1, 2))]
        for index, node in enumerate(self.nodes):
            self.cluster.put_node(index, node)
        self.teams, self.ends, self.owed = [], {}, {}
        self.longest, self.count = 0.0, 0
        specs, left = {"root": ("", 0)}, CORES * len(self.nodes)
        for department in range(random.randint(1, 2)):
            specs[f"d{department}"] = ("root", 0)
            for team in range(random.randint(1, 3)):
                quota = random.randint(0, min(4, left))
                left -= quota
                specs[f"d{department}t{team}"] = (f"d{department}", quota * 1000)
                self.teams.append(f"d{department}t{team}")
        for name, (parent, quota) in specs.items():
            above, weight = queue_name(parent) if parent else "", random.choice((1.0, 2.0))
            spec = QueueSpec(queue_name(name), above, {"cpu": quota}, weight=weight, owns_nodes=not parent)
            self.cluster.registry.objects.by_name[name] = QueueObject(spec, (name,), None)
        self.cluster.registry.changed()

    def second(self):
        """Let a second pass."""
        for uid in [uid for uid, at in self.ends.items() if at <= self.now]:
            self._gone(uid)
        for team in self.teams:
            waiting = self.cluster.waiting.lines.get(queue_name(team))
            room = MAX_WAITING - (len(waiting.pods) if waiting else 0)
            for _ in range(min(room, self.random.choice((0, 0, 0, 1, 12)))):
                self.count += 1
                self._wait(f"p{self.count}", team)
        for pod, _ in list(self.cluster.order.keys(queue_name("root"))):
            self._attempt(pod)
        self._note()
        self.now += 1

    def _gone(self, uid):
        team = self.cluster.ledger.by_uid[uid].namespace
        evicted = self.cluster.ledger.by_uid[uid].leaving
        del self.ends[uid]
        self.cluster.remove(uid)
        if evicted:
            self._wait(f"{uid}+", team)

    def _wait(self, uid, team):
        self.cluster.waiting.put(WaitingPod(uid, team, queue_name(team), PROFILE, 0, 0, ONE))

    def _place(self, uid, team, node_name, *, leaving=False):
        document = make_pod(uid, namespace=team, requests={"cpu": "1"})
        document["metadata"]["uid"] = uid
        if leaving:
            document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.cluster.place(decode(document, decode_pod), node_name, 0)

    def _attempt(self, pod):
        before, held = self.cluster.promises.take(pod.uid), list(self.cluster.promises.held())
        others = list(counting(held, self.cluster.ledger, pod.uid, pod.queue, 0))
        with counted(others, self.cluster.registry):
            refused = refusal(self.cluster.registry, pod.queue, ONE)
        node = None if refused else self._free_node(others)
        if node is not None:
            self.cluster.waiting.leave(pod.uid)
            self._place(pod.uid, pod.namespace, node)
            self.owed.pop(pod.namespace, None)
            self.ends[pod.uid] = self.now + self.random.randint(1, 40)
        elif before is not None and before.victims:
            self.cluster.promises.by_key[pod.uid] = before
        else:
            self._reclaim(pod)

    def _free_node(self, others):
        for node in self.nodes:
            held = self.cluster.ledger.by_uid
            there = {uid for uid, each in held.items() if each.node_name == node.name}
            leaving = len(there & self.cluster.promises.victims())
            coming = sum(place.node_name == node.name for _, place in others)
            if len(there) + max(0, coming - leaving) < CORES:
                return node.name
        return None

    def _reclaim(self, pod):
        books = self.cluster
        state = PlanState(
            books.ledger,
            books.promises,
            Budgets(),
            books.groups,
            books.devices,
            books.entitlement(by_fair_share=self.by_fair_share),
            SYSTEM_CLUSTER_CRITICAL,
        )
        planner = Planner(state, reclaims=True)
        plan = planner.plan(Claimant(pod.uid, pod.queue, 0, [Wanted(pod.uid, ONE)]), Candidates(self.nodes))
        if plan is None:
            return
        victims = {victim.uid for victim in plan.victims}
        promise = Promise(pod.uid, pod.queue, 0, plan.places, set(victims), entitled=plan.entitled)
        promise.staying = set(victims)
        self.cluster.promises.give(promise)
        for victim in plan.victims:
            self._place(victim.uid, victim.namespace, victim.node_name, leaving=True)
            self.ends[victim.uid] = self.now + self.random.randint(1, LONGEST_DRAIN)

    def _note(self):
        """Note how long queues wait for a pod with which they would be within their share."""
        entitled = self.cluster.entitlement(by_fair_share=self.by_fair_share)
        for team in self.teams:
            queue = self.cluster.registry.queue(queue_name(team))
            queue.use(ONE)
            within = entitled.levels_within(queue, ONE)
            queue.use(ONE, -1)
            if within and self.cluster.waiting.lines.get(queue.name):
                self.longest = max(self.longest, self.now - self.owed.setdefault(team, self.now))
            else:
                self.owed.pop(team, None)


@pytest.mark.parametrize("by_fair_share", [False, True], ids=["quota", "fair share"])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_no_queue_starves(by_fair_share, seed):
    """Whatever comes and ends, no queue waits longer for what it is entitled to."""
    hour = Hour(Random(seed), by_fair_share=by_fair_share)
    for _ in range(SECONDS):
        hour.second()

    assert hour.longest <= LONGEST_DRAIN + AN_ATTEMPT
