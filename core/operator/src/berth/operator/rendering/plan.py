"""All objects of a Scheduler, in the order in which they are applied."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from berth.config.releases.release import Release, shown
from berth.operator.kinds import GROUP, Json, SchedulerKey, key_of
from berth.operator.rendering.configuration import SECURE_PORT, Configuration, configuration
from berth.operator.rendering.descheduler import descheduler_objects
from berth.operator.rendering.names import (
    CA_FILE,
    CLUSTER_ROLE,
    RBAC,
    base_name,
    cluster_wide,
    lease,
    owned,
    selector,
    serving_names,
)
from berth.operator.rendering.pod import metrics_port, pod_template
from berth.operator.rendering.rights import cluster_roles, lease_rules
from berth.operator.rendering.settings import SchedulerDefaults

APPLIED = f"{GROUP}/applied"
PROFILES = f"{GROUP}/profiles"
"""Annotation of a Deployment: the profiles that its pods serve, as a JSON list."""


class SchedulerPlan(msgspec.Struct, frozen=True):
    """What a Scheduler is to become."""

    objects: tuple[Json, ...]
    configuration: Configuration
    fingerprint: str
    """Of what a scheduler has to be started anew for."""


def plan(scheduler: Json, plugins: Mapping[str, Json], settings: SchedulerDefaults) -> SchedulerPlan:
    """Give the plan for a Scheduler; `plugins` are the SchedulerPlugins of its namespace by name.

    Raises: PlanError when it cannot work.
    """
    key = key_of(scheduler)
    made = configuration(scheduler, plugins, lease(scheduler), settings.release)
    fingerprint = _fingerprint(made, settings.release)
    objects = tuple(_marked(one) for one in _objects(scheduler, key, made, fingerprint, settings))
    return SchedulerPlan(objects, made, fingerprint)


def _fingerprint(made: Configuration, release: Release) -> str:
    static = "\n".join((made.scheduler_yaml, *made.feature_gates, shown(release)))
    return hashlib.sha256(static.encode()).hexdigest()[:16]


def _marked(document: Json) -> Json:
    """Give the object with a mark of what it was made of, so that what it no longer says is noticed too."""
    mark = hashlib.sha256(repr(document).encode()).hexdigest()[:16]
    metadata = document["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: mark}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _objects(
    scheduler: Json, key: SchedulerKey, made: Configuration, fingerprint: str, settings: SchedulerDefaults
) -> Iterator[Json]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": owned(scheduler, key)}
    yield from _bindings(scheduler, key, made, settings)
    config_map = f"{base_name(key)}-config-{fingerprint[:10]}"
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(scheduler, key, config_map),
        "immutable": True,
        "data": {"scheduler.yaml": made.scheduler_yaml},
    }
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(scheduler, key, f"{base_name(key)}-plugins"),
        "data": {"plugins.yaml": made.plugins_yaml},
    }
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(scheduler, key, _authority(key)),
        "data": {CA_FILE: settings.authority},
    }
    template = pod_template(scheduler, key, made, settings, config_map=config_map, fingerprint=fingerprint)
    yield _deployment(scheduler, key, template)
    yield from _network(scheduler, key, made.plugins, settings)
    if scheduler["spec"].get("replicas", 1) > 1:
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": owned(scheduler, key),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": selector(key)}},
        }
    yield from descheduler_objects(scheduler, key, made, settings)


def _bindings(
    scheduler: Json, key: SchedulerKey, made: Configuration, settings: SchedulerDefaults
) -> Iterator[Json]:
    subjects = [{"kind": "ServiceAccount", "name": base_name(key), "namespace": key.namespace}]
    api = f"{RBAC}/v1"
    for role in cluster_roles(made.loaded, made.plugins, settings):
        yield {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": cluster_wide(key, f"{role}:{key.namespace}:{key.name}"),
            "roleRef": {"apiGroup": RBAC, "kind": CLUSTER_ROLE, "name": role},
            "subjects": subjects,
        }
    # In another namespace than these two the operator gives no rights; who shares a lease there gives them.
    elects, (namespace, name) = made.loaded.configuration.leader_election.leader_elect, lease(scheduler)
    if elects and namespace == key.namespace:
        metadata = owned(scheduler, key, f"{base_name(key)}-lease")
        yield {"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": lease_rules(name)}
        yield {
            "apiVersion": api,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": metadata["name"]},
            "subjects": subjects,
        }


def _deployment(scheduler: Json, key: SchedulerKey, template: Json) -> Json:
    spec, rollout = scheduler["spec"], scheduler["spec"].get("rollout") or {}
    made: Json = {
        "replicas": spec.get("replicas", 1),
        "selector": {"matchLabels": selector(key)},
        "strategy": _strategy(spec, rollout),
        "progressDeadlineSeconds": rollout.get("progressDeadlineSeconds", 600),
        "revisionHistoryLimit": 3,
        # Said in any case: a Deployment that is paused by hand would keep every change back.
        "paused": rollout.get("paused", False),
        "minReadySeconds": rollout.get("minReadySeconds", 0),
        "template": template,
    }
    names = json.dumps([profile["schedulerName"] for profile in spec["profiles"]])
    metadata = {**owned(scheduler, key), "annotations": {PROFILES: names}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": made}


def _strategy(spec: Json, rollout: Json) -> Json:
    if not (spec.get("leaderElection") or {}).get("leaderElect", True):
        # Nothing but their order keeps the old pod and the new one from both scheduling.
        return {"type": "Recreate"}
    rolling = {"maxSurge": rollout.get("maxSurge", 1), "maxUnavailable": rollout.get("maxUnavailable", 0)}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def _authority(key: SchedulerKey) -> str:
    """Give the name of the ConfigMap by which clients of a scheduler verify its certificate."""
    return f"{base_name(key)}-ca"


def _network(
    scheduler: Json, key: SchedulerKey, plugins: Sequence[Json], settings: SchedulerDefaults
) -> Iterator[Json]:
    spec = scheduler["spec"]
    secure: Json = {"name": "https", "port": SECURE_PORT, "targetPort": "https", "protocol": "TCP"}
    measured = [metrics_port(plugin, "port") for plugin in plugins if "metricsPort" in plugin["spec"]]
    ports = [secure, *({**port, "targetPort": port["name"]} for port in measured)]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned(scheduler, key),
        "spec": {"selector": selector(key), "ports": ports},
    }
    if spec.get("networkPolicy", True):
        # The API server, collectors and plugins may be anywhere: only what comes in is restricted.
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": owned(scheduler, key),
            "spec": {
                "podSelector": {"matchLabels": selector(key)},
                "policyTypes": ["Ingress"],
                "ingress": [{"ports": [{"port": port["port"], "protocol": "TCP"} for port in ports]}],
            },
        }
    metrics = (spec.get("telemetry") or {}).get("metrics") or {}
    if settings.service_monitors and metrics.get("serviceMonitor", True):
        yield _service_monitor(scheduler, key, measured, metrics.get("interval", "30s"))


def _service_monitor(scheduler: Json, key: SchedulerKey, measured: Sequence[Json], interval: str) -> Json:
    secure = {
        "port": "https",
        "scheme": "https",
        "interval": interval,
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {
            "ca": {"configMap": {"name": _authority(key), "key": CA_FILE}},
            "serverName": serving_names(key)[0],
        },
    }
    plain = [{"port": port["name"], "scheme": "http", "interval": interval} for port in measured]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": owned(scheduler, key),
        "spec": {"selector": {"matchLabels": selector(key)}, "endpoints": [secure, *plain]},
    }
