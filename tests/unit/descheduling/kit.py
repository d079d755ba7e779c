"""Clusters to deschedule, and what is planned for them."""

import json
from datetime import UTC, datetime, timedelta

from berth.config.descheduling.policy_file import read_policy
from berth.config.loading import load
from berth.descheduling.cluster import read_files
from berth.descheduling.planner import plan
from berth.simulation.running.options import SimulationOptions
from tests.unit.simulation.kit import node, pod, profiles, written

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
DESCHEDULE = (
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingInterPodAntiAffinity",
    "RemovePodsHavingTooManyRestarts",
    "PodLifeTime",
    "RemoveFailedPods",
)
ZONE = "topology.kubernetes.io/zone"
MOST_ALLOCATED = profiles(
    {
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
        ]
    }
)


def policy(*strategies, evictor=None, **fields):
    """A policy document: strategies by name, or as pairs of name and arguments."""
    pairs = [each if isinstance(each, tuple) else (each, {}) for each in strategies]
    configs = [{"name": name, "args": args} for name, args in pairs]
    points = {
        "deschedule": {"enabled": [name for name, _ in pairs if name in DESCHEDULE]},
        "balance": {"enabled": [name for name, _ in pairs if name not in DESCHEDULE]},
    }
    chosen = [{"name": "DefaultEvictor", "args": evictor or {}}, *configs]
    profile = {"name": "p", "pluginConfig": chosen, "plugins": points}
    head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return {**head, "profiles": [profile], **fields}


def running(name, on, owner="rs", age=0, status=None, **fields):
    """A pod on a node; further keywords are as `pod` takes them."""
    made = pod(name, **fields)
    made["spec"]["nodeName"] = on
    made["metadata"]["creationTimestamp"] = (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        made["metadata"]["ownerReferences"] = [reference]
    started = {"phase": "Running", "startTime": made["metadata"]["creationTimestamp"]}
    made["status"] = {**started, **(status or {})}
    return made


def budget(name, allowed, **labels):
    """A PodDisruptionBudget."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}
    return {**head, "spec": spec, "status": {"disruptionsAllowed": allowed, "observedGeneration": 1}}


def cluster(tmp_path, policy, *documents):
    """The documents, read as a file, to be descheduled by that policy."""
    return read_files([written(tmp_path / "cluster.json", *documents)], policy)


def planned(tmp_path, written_policy, *documents, configuration=None):
    """The plan for these documents."""
    loaded = load(None if configuration is None else json.dumps(configuration))
    found = read_policy(json.dumps(written_policy).encode(), "policy.yaml")
    return plan(cluster(tmp_path, found, *documents), found, SimulationOptions(loaded), NOW)


def moves(found):
    """The moves of a plan: pod, from, to."""
    return [(move.pod.partition("/")[2], move.from_, move.to) for move in found.moves]


def why(found, name):
    """Why a pod is left alone."""
    return [left.why for left in found.left_alone if left.pod == f"default/{name}"]


__all__ = ["MOST_ALLOCATED", "NOW", "ZONE", "budget", "moves", "node", "planned", "policy", "running", "why"]
