"""Kinds `requests`, `gates` and `queuesort`: what is asked of pods without looking at nodes."""

import functools

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.objects.pods.pod_requests import fit_requests
from berth.plugins.node_resources_balanced_allocation import BalancedRequest
from berth.plugins.node_resources_fit.plugin import ScoredRequest
from berth.snapshot.pod_info import PodInfo
from tests.golden.cluster import build, pod_of
from tests.golden.schedule import amounts, spelled

SCORERS = {"NodeResourcesFit": ScoredRequest, "NodeResourcesBalancedAllocation": BalancedRequest}


async def requests(scenario):
    """What the pod asks for in total, by each way of counting."""
    pod = pod_of(scenario["pod"])
    placed = PodInfo(pod)
    found = {
        "fitRequest": amounts(fit_requests(pod)),
        "accounted": amounts(placed.requests),
        "accountedNonZero": {"milliCPU": placed.non_zero[0], "memory": placed.non_zero[1]},
        "scoringRequests": _scoring_requests(build(scenario), pod),
    }
    return found, set()


def _scoring_requests(cluster, pod):
    framework = cluster.frameworks[pod.spec.scheduler_name]
    found = {}
    for plugin in framework.plugins.pre_score:
        if plugin.name in SCORERS:
            state = CycleState()
            status = plugin.pre_score(state, pod, cluster.snapshot, None)
            amounts = {} if status.skip else state.read(SCORERS[plugin.name]).amounts
            found[plugin.name] = "Skip" if status.skip else [amounts.get("cpu", 0), amounts.get("memory", 0)]
    return found


async def gates(scenario):
    """Each PreEnqueue plugin's status."""
    cluster, pod = build(scenario), pod_of(scenario["pod"])
    plugins = cluster.frameworks[pod.spec.scheduler_name].plugins.pre_enqueue
    return {"preEnqueue": {p.name: spelled(p.pre_enqueue(pod)) for p in plugins}}, cluster.missing


async def queuesort(scenario):
    """The order in which waiting pods are taken."""
    (framework,) = build(scenario).frameworks.values()
    (sorter,) = framework.plugins.queue_sort
    pods = [pod_of(document) for document in scenario["pods"]]
    waiting = [QueuedPodInfo(pod, pod.metadata.creation_timestamp.timestamp()) for pod in pods]

    def compare(a, b):
        return -1 if sorter.less(a, b) else int(sorter.less(b, a))

    ordered = sorted(waiting, key=functools.cmp_to_key(compare))
    return {"order": [info.pod.key for info in ordered]}, set()
