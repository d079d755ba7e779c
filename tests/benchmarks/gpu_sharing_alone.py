"""One run of the experiment with the plugin alone, in this process: for many seeds in little time.

What the scheduler does beside it is one line here: CPU, memory, and the highest score. Ties have to be the
plugin's own, then the outcome is that of the real processes, task by task (tests/e2e/test_gpu_sharing.py).
"""

import time
from collections import Counter

import numpy as np
from msgspec.json import encode

from berth_gpu_share import GpuShare
from berth_gpu_share.contract import Demand
from berth_sdk import SKIP, Call, PlacedPod, PodKey, PodStage
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.plugin import answering

PROFILE = "alone"


def alone(experiment, policy, ties, seed):
    """The figures of one run, as `gpu_sharing_run.allocation` gives them."""
    if ties == "any":
        raise ValueError("ties that the scheduler decides need the scheduler: leave --alone out")
    started, cpu_started = time.monotonic(), time.process_time()
    plugin, nodes = set_up(experiment, policy, ties, seed)
    memory_left = np.array([node.allocatable("memory") for node in nodes])
    bound = 0
    for number, document in enumerate(experiment.pods):
        pod = decode_pod(encode({**document, "metadata": {**document["metadata"], "uid": str(number)}}))
        node = chosen(plugin, pod, nodes, memory_left)
        if node is None:
            continue
        plugin.reserve(pod, nodes[node])
        plugin.pod_upserted(PlacedPod(pod, pod.uid, nodes[node].name, PodStage.ASSUMED, 1))
        memory_left[node] -= pod.request("memory")
        bound += 1
    table = plugin.table
    return {
        "allocation": round(100 * (1 - float(table.free.sum()) / (1000 * int(table.count.sum()))), 3),
        "pods": len(experiment.pods),
        "bound": bound,
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu_started, 1),
    }


def set_up(experiment, policy, ties, seed):
    """The plugin as `berth-gpu-share` makes it, with all nodes."""
    usual = Counter()
    for kind in experiment.workload:
        usual[Demand(kind["count"], kind["milli"], frozenset(kind["models"]), kind["cpu"])] += kind["number"]
    plugin = GpuShare(policy, seed, usual)
    plugin.configure({"ties": ties, "cpuPods": True}, PROFILE)
    nodes = [decode_node(encode(node)) for node in experiment.nodes]
    for index, node in enumerate(nodes):
        plugin.node_upserted(index, node)
    return plugin, nodes


def chosen(plugin, pod, nodes, memory_left):
    """The index of the node that the task goes to, None where it fits nowhere."""
    answering.set(Call(PROFILE, PodKey(pod.uid, 1)))
    fits = (plugin.table.cpu_left >= pod.request("cpu")) & (memory_left >= pod.request("memory"))
    if plugin.pre_filter(pod) is not SKIP:
        fits &= plugin.filter_nodes(pod, nodes) == 0
    candidates = np.flatnonzero(fits)
    if not candidates.size:
        return None
    return int(candidates[plugin.score_nodes(pod, nodes).points[candidates].argmax()])
