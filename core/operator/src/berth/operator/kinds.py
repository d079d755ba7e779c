"""Where the operator's own kinds and those that it keeps live in the API."""

from typing import Any, Final, NamedTuple

from berth.client.resources import CONFIG_MAPS, POD_DISRUPTION_BUDGETS, SERVICES, Resource

Json = dict[str, Any]

GROUP: Final = "berth.dev"
VERSION: Final = f"{GROUP}/v1alpha1"

_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS: Final = Resource(_RBAC, "v1", "clusterrolebindings", namespaced=False)
CLUSTER_ROLES: Final = Resource(_RBAC, "v1", "clusterroles", namespaced=False)
EVENTS: Final = Resource("", "v1", "events", namespaced=True)
SECRETS: Final = Resource("", "v1", "secrets", namespaced=True)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", namespaced=True)
CRON_JOBS: Final = Resource("batch", "v1", "cronjobs", namespaced=True)
API_SERVICES: Final = Resource("apiregistration.k8s.io", "v1", "apiservices", namespaced=False)
SERVICE_MONITORS: Final = Resource("monitoring.coreos.com", "v1", "servicemonitors", namespaced=True)

KEPT: Final[dict[str, Resource]] = {
    "ServiceAccount": Resource("", "v1", "serviceaccounts", namespaced=True),
    "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
    "Role": Resource(_RBAC, "v1", "roles", namespaced=True),
    "RoleBinding": Resource(_RBAC, "v1", "rolebindings", namespaced=True),
    "ConfigMap": CONFIG_MAPS,
    "Deployment": DEPLOYMENTS,
    "CronJob": CRON_JOBS,
    "Service": SERVICES,
    "PodDisruptionBudget": POD_DISRUPTION_BUDGETS,
    "NetworkPolicy": Resource("networking.k8s.io", "v1", "networkpolicies", namespaced=True),
    "ServiceMonitor": SERVICE_MONITORS,
}
"""What is kept for a Scheduler, by kind, in the order in which it is applied."""

EXPLAIN_API: Final = "v1alpha1.explain.berth.dev"
"""The APIService through which the API server has pods explained."""
AUTHORITY: Final = "berth-operator-ca"
"""Secret and ConfigMap in the operator's namespace: its certificate authority, with and without keys."""
SERVING_SECRET: Final = "berth-serving-certificates"  # noqa: S105 (a name)
"""The Secret with what the schedulers of a namespace serve with; to others the operator has no right."""
PLUGIN_SECRETS: Final = "berth-plugin-"
"""What Secrets have in their names that SchedulerPlugins may refer to; a kustomization may prefix names."""

FIELD_MANAGER: Final = "berth-operator"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTANCE: Final = "app.kubernetes.io/instance"
SCHEDULER: Final = f"{GROUP}/scheduler"
SCHEDULER_NAMESPACE: Final = f"{GROUP}/scheduler-namespace"


class SchedulerKey(NamedTuple):
    """A Scheduler, by name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key_of(document: Json) -> SchedulerKey:
    """Give the name of a Scheduler or SchedulerPlugin."""
    metadata = document["metadata"]
    return SchedulerKey(metadata["namespace"], metadata["name"])


def scheduler_of(document: Json) -> SchedulerKey | None:
    """Give the Scheduler that an object is kept for, by its labels."""
    labels = document["metadata"].get("labels") or {}
    if SCHEDULER not in labels:
        return None
    namespace = document["metadata"].get("namespace") or labels.get(SCHEDULER_NAMESPACE, "")
    return SchedulerKey(namespace, labels[SCHEDULER])
