"""Where kube-scheduler and Berth differ on one pod, in words."""

import copy
import json
from dataclasses import dataclass, field
from random import Random

from msgspec import to_builtins

from berth.objects.quantity import nanos
from tests.chance.scheduler_log import Scored
from tests.golden import preempt, schedule
from tests.golden.cluster import build, pod_of

ORDERS = 100
"""How many orders of tied pods are tried before a difference counts as one."""


@dataclass
class Decided:
    """What kube-scheduler has done with a pod."""

    node: str = ""
    message: str = ""
    nominated: str = ""
    victims: set[str] = field(default_factory=set)
    devices: dict[str, list[dict]] = field(default_factory=dict)
    """What the pod's claims got, by claim."""
    scored: Scored = field(default_factory=Scored)


async def differences(scenario, theirs):
    """Each thing that Berth decides otherwise."""
    ours, _ = await schedule.answer(scenario)
    if ours["schedule"]["outcome"] != "scheduled":
        if theirs.node:
            return [f"bound to {theirs.node}: {ours['schedule']['message']}"]
        return await _why_not(scenario, ours, theirs)
    if not theirs.node:
        return [f"{theirs.message}: would go to {ours.get('best')}"]
    found = [*_choice(ours, theirs), *_scores(ours, theirs)]
    return found or await _devices(scenario, theirs)


def _choice(ours, theirs):
    if theirs.node not in ours["best"]:
        yield f"bound to {theirs.node}: would go to {ours['best']}"
    if theirs.scored.hinted:
        return
    feasible = set(theirs.scored.totals) or {theirs.node}
    if feasible != set(ours["feasible"]):
        yield f"feasible: {sorted(feasible)}: {ours['feasible']}"


def _scores(ours, theirs):
    """Sums, and the plugins' parts; a plugin that has nothing to say says 0 to all nodes."""
    if not theirs.scored.totals:
        return
    if theirs.scored.totals != ours["total"]:
        yield f"sums {_apart(theirs.scored.totals, ours['total'])}"
    parts = {
        plugin: {node: triple[2] for node, triple in part.get("nodes", {}).items()}
        for plugin, part in ours["scores"].items()
    }
    for plugin in sorted(theirs.scored.parts.keys() | parts.keys()):
        apart = _apart(theirs.scored.parts.get(plugin, {}), parts.get(plugin, {}))
        if apart:
            yield f"{plugin} {apart}"


def _apart(theirs, ours):
    return {
        node: (theirs.get(node), ours.get(node))
        for node in sorted(theirs.keys() | ours.keys())
        if theirs.get(node, 0) != ours.get(node, 0)
    }


async def _devices(scenario, theirs):
    """The devices that each claim gets on the node that was chosen."""
    if not theirs.devices:
        return []
    cluster, pod = build(scenario), pod_of(scenario["pod"])
    framework = cluster.frameworks[pod.spec.scheduler_name]
    attempt = cluster.attempt(pod)
    await cluster.search().find(framework, attempt, cluster.answers(pod))
    status = framework.plugins.by_name["DynamicResources"].reserve(attempt.state, pod, theirs.node)
    assert status.ok, status
    tracker, ours = cluster.listers.claim_tracker, {}
    for claim in (*tracker, *tracker.all_in_flight()):
        if claim.allocation is not None and claim.name in theirs.devices:
            ours[claim.name] = comparable(to_builtins(claim.allocation.devices.results))
    return [f"devices {theirs.devices}: {ours}"] if theirs.devices != ours else []


def comparable(results):
    """The devices of an allocation: amounts as numbers, without the random name of a share."""
    found = json.loads(json.dumps(results))
    for each in found:
        each.pop("shareID", None)
        taken = each.get("consumedCapacity", {})
        each["consumedCapacity"] = {name: nanos(amount) for name, amount in taken.items()}
    return [{name: value for name, value in each.items() if value} for each in found]


def _error(ours, theirs):
    """Which node's error it is that ends an attempt is up to chance: nodes are asked at the same time."""
    words = {ours["schedule"]["message"]}
    for plugin, answers in ours["filter"].items():
        for status in answers.values() if isinstance(answers, dict) else ():
            if status["code"] == "Error":
                words.add(f'running "{plugin}" filter plugin: {", ".join(status["reasons"])}')
    if theirs.message not in words:
        yield f"{theirs.message}: {words}"


async def _why_not(scenario, ours, theirs):
    if ours["schedule"]["outcome"] == "error":
        return list(_error(ours, theirs))
    found = await preempt.preempted(preempt.in_order(scenario))
    if not theirs.nominated:
        message = found.get("messageAfterPostFilter", ours["schedule"]["message"])
        return [] if theirs.message == message else [f"{theirs.message}: {message}"]
    would_be = []
    for ordered in _orders(scenario):
        found = await preempt.preempted(ordered)
        if theirs.nominated in found["best"]:
            victims = set(found["candidates"][theirs.nominated]["victims"])
            if victims == theirs.victims:
                return []
            would_be.append(sorted(victims))
        else:
            would_be.append(found["best"])
    apart = sorted({str(each) for each in would_be})
    return [f"nominated to {theirs.nominated}, victims {sorted(theirs.victims)}: {apart}"]


def _orders(scenario):
    """The scenario with its pods in orders of all kinds.

    Of pods that are equally important and started in the same second it is the order on their node that
    decides which one is spared, and with that which node is the best; it is not known from outside.
    """
    yield preempt.in_order(scenario)
    yield preempt.in_order(copy.deepcopy(scenario), backwards=True)
    draw = Random(ORDERS)
    for _ in range(ORDERS):
        shuffled = copy.deepcopy(scenario)
        draw.shuffle(shuffled["objects"]["pods"])
        yield shuffled
