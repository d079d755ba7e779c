"""The model's objects as the API has them."""

from datetime import UTC, datetime, timedelta

from berth.objects.decode import from_document
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.objects.pods.pod_decoding import pod_from_document
from berth.objects.workloads import PodDisruptionBudget

PER_POD = "1Gi"
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def group_of(group):
    """A PodGroup or CompositePodGroup."""
    count = "minGroupCount" if group.composite else "minCount"
    spec = {
        "schedulingPolicy": {"basic": {}} if group.needed is None else {"gang": {count: group.needed}},
        "priority": group.priority,
        "disruptionMode": {"all": {}} if group.disrupted_as_one else {"single": {}},
        "parentCompositePodGroupName": group.parent,
    }
    if group.topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": group.topology}]}
    document = {"metadata": _metadata(group.name), "spec": spec}
    return from_document(document, CompositePodGroup if group.composite else PodGroup)


def pod_of(pod):
    """A pod that prefers nodes by weight; one on a node runs."""
    requests = {"cpu": str(pod.cpu), "memory": PER_POD}
    spec = {
        "schedulerName": "default-scheduler",
        "priority": pod.priority,
        "preemptionPolicy": "PreemptLowerPriority" if pod.preempts else "Never",
        "containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": _terms(pod)}},
        **({"schedulingGroup": {"podGroupName": pod.group}} if pod.group else {}),
        **({"nodeName": pod.node} if pod.node else {}),
    }
    status = {"phase": "Running", "startTime": started(pod).isoformat()} if pod.node else {"phase": "Pending"}
    document = {
        "metadata": _metadata(pod.name) | {"labels": {"app": pod.app}},
        "spec": spec,
        "status": status,
    }
    return pod_from_document(document)


def started(pod):
    """When the pod began to run."""
    return BEGUN + timedelta(seconds=pod.started)


def budget_of(app):
    """A budget that allows no disruption of pods with that label."""
    document = {
        "metadata": _metadata(f"budget-{app}"),
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": 0},
    }
    return from_document(document, PodDisruptionBudget)


def _metadata(name):
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}


def _terms(pod):
    return [
        {
            "weight": weight,
            "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]},
        }
        for name, weight in pod.weights.items()
    ]
