"""Names and labels of what is made of a Scheduler."""

from berth.operator.kinds import (
    FIELD_MANAGER,
    INSTANCE,
    MANAGED_BY,
    SCHEDULER,
    SCHEDULER_NAMESPACE,
    VERSION,
    Json,
    SchedulerKey,
    key_of,
)

CA_FILE = "ca.crt"
SELECTED = {"app.kubernetes.io/name": "berth-scheduler"}
"""Label of the pods of all schedulers: what the Service of explanations selects."""
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE = "ClusterRole"


def base_name(key: SchedulerKey) -> str:
    """Give the name of most of what is made."""
    return f"berth-{key.name}"


def descheduler_name(key: SchedulerKey) -> str:
    """Give the name of what is made of a Scheduler's descheduler."""
    return f"{base_name(key)}-descheduler"


def lease(scheduler: Json) -> SchedulerKey:
    """Give the lease by which a scheduler's replicas take turns."""
    key, election = key_of(scheduler), scheduler["spec"].get("leaderElection") or {}
    return SchedulerKey(
        election.get("resourceNamespace") or key.namespace, election.get("resourceName") or base_name(key)
    )


def selector(key: SchedulerKey) -> dict[str, str]:
    """Give the labels by which a scheduler's pods are selected; they never change."""
    return {**SELECTED, INSTANCE: key.name}


def labels(key: SchedulerKey) -> dict[str, str]:
    """Give the labels of everything that is made."""
    return {
        **selector(key),
        "app.kubernetes.io/component": "scheduler",
        "app.kubernetes.io/part-of": "berth",
        MANAGED_BY: FIELD_MANAGER,
        SCHEDULER: key.name,
    }


def owned(scheduler: Json, key: SchedulerKey, name: str = "") -> Json:
    """Give the metadata of an object in the Scheduler's namespace, which goes with the Scheduler."""
    owner = {**owner_reference(scheduler), "controller": True}
    name = name or base_name(key)
    return {"name": name, "namespace": key.namespace, "labels": labels(key), "ownerReferences": [owner]}


def owner_reference(scheduler: Json) -> Json:
    """Give the reference by which something goes with the Scheduler."""
    metadata = scheduler["metadata"]
    return {"apiVersion": VERSION, "kind": "Scheduler", "name": metadata["name"], "uid": metadata["uid"]}


def serving_files(name: str) -> tuple[str, str]:
    """Give what a Scheduler's certificate and key are called in the Secret of its namespace."""
    return f"{name}.crt", f"{name}.key"


def serving_names(key: SchedulerKey, explain_service: str = "") -> tuple[str, ...]:
    """Give the names that a scheduler's certificate is valid for, the first of them for who verifies it.

    The last is that of the Service by which the API server reaches any scheduler of the namespace.
    """
    name = base_name(key)
    explains = (f"{explain_service}.{key.namespace}.svc",) if explain_service else ()
    return f"{name}.{key.namespace}.svc", f"{name}.{key.namespace}", name, *explains


def cluster_wide(key: SchedulerKey, name: str) -> Json:
    """Give the metadata of an object in no namespace: nothing in one can own it, the operator collects it."""
    return {"name": name, "labels": {**labels(key), SCHEDULER_NAMESPACE: key.namespace}}


def sidecar_name(plugin: str) -> str:
    """Give the name of a plugin's container."""
    return f"plugin-{dashed(plugin)}"


def dashed(name: str) -> str:
    """Give a plugin's name as part of a DNS label."""
    return name.replace(".", "-")
