"""The pod template: the scheduler, its plugins as native sidecars, and a volume for the socket of each.

The scheduler alone has the token of the service account, unless a plugin asks for it; sidecars do
not see each other's files.
"""

from collections.abc import Sequence
from pathlib import Path

from berth.aggregated_api.replicas import AUDIENCE, TOKEN_FILE
from berth.operator.kinds import SERVING_SECRET, Json, SchedulerKey
from berth.operator.rendering.configuration import (
    CERTIFICATES,
    SECURE_PORT,
    SOCKETS,
    Configuration,
    address,
)
from berth.operator.rendering.names import base_name, dashed, labels, selector, serving_files, sidecar_name
from berth.operator.rendering.settings import SchedulerDefaults
from berth.operator.rendering.tracing import plugin_variables, scheduler_variables
from berth.scheduler.sidecars.plugin_changes import KEPT_BY
from berth.serving.listening import ADDRESS

CONTAINER = "scheduler"
HASH = "berth.dev/configuration-hash"
_CONFIG_FOLDER = "/etc/berth/config"
_PLUGINS_FOLDER = "/etc/berth/plugins"
_SERVING_FOLDER = "/etc/berth/serving"
USER = 65532
_GROUP_READS = 0o440
POD_SECURITY: Json = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_NAMESPACE: Json = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
_TOKEN: Json = {
    "name": "service-account",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
# As the admission plugin ServiceAccount gives it to every container of a pod.
_TOKEN_SOURCES: list[Json] = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": _NAMESPACE}]}},
]
# By which schedulers know each other; no plugin gets it.
_REPLICA_TOKEN: Json = {"name": "replica-token", "mountPath": str(Path(TOKEN_FILE).parent), "readOnly": True}
_REPLICA_TOKEN_SOURCE: Json = {
    "serviceAccountToken": {"audience": AUDIENCE, "path": Path(TOKEN_FILE).name, "expirationSeconds": 3607}
}
_REQUESTS: Json = {"requests": {"cpu": "100m", "memory": "256Mi"}}
_PLUGIN_REQUESTS: Json = {"requests": {"cpu": "50m", "memory": "64Mi"}}


def pod_template(
    scheduler: Json,
    key: SchedulerKey,
    configuration: Configuration,
    settings: SchedulerDefaults,
    *,
    config_map: str,
    fingerprint: str,
) -> Json:
    """Give the template of a scheduler's pods."""
    spec = scheduler["spec"]
    pod = spec.get("pod") or {}
    annotations = {
        **(pod.get("annotations") or {}),
        "kubectl.kubernetes.io/default-container": CONTAINER,
        HASH: fingerprint,
    }
    made: Json = {
        "serviceAccountName": base_name(key),
        "automountServiceAccountToken": False,
        "schedulerName": pod.get("schedulerName", "default-scheduler"),
        "priorityClassName": pod.get("priorityClassName") or settings.priority_class,
        "securityContext": {**POD_SECURITY, "fsGroup": USER},
        "terminationGracePeriodSeconds": 30,
        "topologySpreadConstraints": pod.get("topologySpreadConstraints") or _spread(key),
        "containers": [_scheduler(spec, key, configuration, spec.get("image") or settings.image)],
        "volumes": _volumes(key, configuration, config_map),
    }
    sidecars = _sidecars(configuration)
    if sidecars:
        tracing = (spec.get("telemetry") or {}).get("tracing")
        made["initContainers"] = [_sidecar(plugin, tracing) for plugin in sidecars]
    made |= placing(pod)
    metadata = {"labels": {**(pod.get("labels") or {}), **labels(key)}, "annotations": annotations}
    return {"metadata": metadata, "spec": made}


def placing(pod: Json) -> Json:
    """Give what users choose of where pods may be, and whence their images come."""
    names = ("nodeSelector", "tolerations", "affinity", "imagePullSecrets")
    return {name: pod[name] for name in names if pod.get(name)}


def _spread(key: SchedulerKey) -> list[Json]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": topology,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(key)},
        }
        for topology in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]


def _scheduler(spec: Json, key: SchedulerKey, configuration: Configuration, image: str) -> Json:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": spec.get("imagePullPolicy", "IfNotPresent"),
        "args": _arguments(spec, configuration),
        "env": _environment(spec, key),
        "ports": [{"name": "https", "containerPort": SECURE_PORT, "protocol": "TCP"}],
        "resources": spec.get("resources") or _REQUESTS,
        "securityContext": RESTRICTED,
        "startupProbe": _probe("/livez", periodSeconds=2, failureThreshold=60),
        "livenessProbe": _probe("/livez", periodSeconds=10, failureThreshold=6),
        "readinessProbe": _probe("/readyz", periodSeconds=5, failureThreshold=3),
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": "plugins", "mountPath": _PLUGINS_FOLDER, "readOnly": True},
            {"name": "serving", "mountPath": _SERVING_FOLDER, "readOnly": True},
            _TOKEN,
            _REPLICA_TOKEN,
            *(_socket_mount(plugin) for plugin in _sidecars(configuration)),
            *(_tls_mount(plugin) for plugin in _over_tls(configuration)),
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 (the container's own)
        ],
    }


def _sidecars(configuration: Configuration) -> list[Json]:
    return [plugin for plugin in configuration.plugins if "image" in plugin["spec"]]


def _over_tls(configuration: Configuration) -> list[Json]:
    return [plugin for plugin in configuration.plugins if "tls" in plugin["spec"]]


def _tls_volume(name: str) -> str:
    return f"tls-{dashed(name)}"


def _tls_mount(plugin: Json) -> Json:
    name = plugin["metadata"]["name"]
    return {"name": _tls_volume(name), "mountPath": f"{CERTIFICATES}/{name}", "readOnly": True}


def _socket_mount(plugin: Json) -> Json:
    name = plugin["metadata"]["name"]
    return {"name": _socket_volume(name), "mountPath": f"{SOCKETS}/{name}"}


def _socket_volume(name: str) -> str:
    return f"socket-{dashed(name)}"


def _tmp_volume(name: str) -> str:
    return f"tmp-{dashed(name)}"


def _arguments(spec: Json, configuration: Configuration) -> list[str]:
    telemetry = spec.get("telemetry") or {}
    logging = telemetry.get("logging") or {}
    arguments = [
        "scheduler",
        f"--config={_CONFIG_FOLDER}/scheduler.yaml",
        f"--plugins={_PLUGINS_FOLDER}/plugins.yaml",
        "--bind-address=0.0.0.0",
        f"--secure-port={SECURE_PORT}",
        f"--tls-cert-file={_SERVING_FOLDER}/tls.crt",
        f"--tls-private-key-file={_SERVING_FOLDER}/tls.key",
    ]
    if configuration.feature_gates:
        arguments.append(f"--feature-gates={','.join(configuration.feature_gates)}")
    if logging.get("format", "text") != "text":
        arguments.append(f"--logging-format={logging['format']}")
    if logging.get("verbosity"):
        arguments.append(f"--v={logging['verbosity']}")
    if telemetry.get("livePage"):
        arguments.append("--live-page")
    return arguments


def _environment(spec: Json, key: SchedulerKey) -> list[Json]:
    pod: list[Json] = [
        {"name": KEPT_BY, "value": str(key)},
        *(
            {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
            for name, path in (
                ("POD_NAME", "metadata.name"),
                ("POD_NAMESPACE", "metadata.namespace"),
                (ADDRESS, "status.podIP"),
            )
        ),
    ]
    tracing = (spec.get("telemetry") or {}).get("tracing")
    return _by_name(*pod, *scheduler_variables(tracing, CONTAINER))


def _by_name(*variables: Json) -> list[Json]:
    """Each variable once, where it first stood, with what was last said of it."""
    return list({one["name"]: one for one in variables}.values())


def _probe(path: str, **times: int) -> Json:
    return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, "timeoutSeconds": 5, **times}


def _sidecar(plugin: Json, tracing: Json | None) -> Json:
    spec, name = plugin["spec"], plugin["metadata"]["name"]
    container: Json = {
        "name": sidecar_name(name),
        "image": spec["image"],
        "imagePullPolicy": spec.get("imagePullPolicy", "IfNotPresent"),
        "restartPolicy": "Always",
        "env": _by_name(
            *_socket(plugin), *plugin_variables(tracing, sidecar_name(name)), *(spec.get("env") or ())
        ),
        "resources": spec.get("resources") or _PLUGIN_REQUESTS,
        "securityContext": {**RESTRICTED, **_user(plugin)},
        "volumeMounts": [
            _socket_mount(plugin),
            {"name": _tmp_volume(name), "mountPath": "/tmp"},  # noqa: S108 (the container's own)
            *([_TOKEN] if spec.get("automountServiceAccountToken") else []),
        ],
    }
    if "metricsPort" in spec:
        container["ports"] = [metrics_port(plugin, "containerPort")]
    return container | {field: spec[field] for field in ("command", "args") if spec.get(field)}


def metrics_port(plugin: Json, field: str) -> Json:
    """Give the port at which a sidecar shows its metrics, its number under that field."""
    port = plugin["spec"]["metricsPort"]
    return {"name": f"metrics-{port}", field: port, "protocol": "TCP"}


def _socket(plugin: Json) -> list[Json]:
    """Where the plugin listens and shows metrics; one of another user opens its socket to the pod's group."""
    variables = {"BERTH_PLUGIN_ADDRESS": address(plugin)}
    if _user(plugin):
        variables["BERTH_PLUGIN_SOCKET_SHARED"] = "true"
    if "metricsPort" in plugin["spec"]:
        variables["BERTH_METRICS_ADDRESS"] = f"0.0.0.0:{plugin['spec']['metricsPort']}"
    return [{"name": name, "value": value} for name, value in variables.items()]


def _user(plugin: Json) -> Json:
    return {"runAsUser": plugin["spec"]["runAsUser"]} if "runAsUser" in plugin["spec"] else {}


def _volumes(key: SchedulerKey, configuration: Configuration, config_map: str) -> Sequence[Json]:
    names = [plugin["metadata"]["name"] for plugin in _sidecars(configuration)]
    return [
        {"name": "config", "configMap": {"name": config_map}},
        {"name": "plugins", "configMap": {"name": f"{base_name(key)}-plugins"}},
        _serving_volume(key),
        {"name": _TOKEN["name"], "projected": {"sources": _TOKEN_SOURCES}},
        {"name": _REPLICA_TOKEN["name"], "projected": {"sources": [_REPLICA_TOKEN_SOURCE]}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
        *({"name": _socket_volume(name), "emptyDir": {"sizeLimit": "1Mi"}} for name in names),
        *({"name": _tmp_volume(name), "emptyDir": {"sizeLimit": "16Mi"}} for name in names),
        *(
            {
                "name": _tls_volume(plugin["metadata"]["name"]),
                "secret": {"secretName": plugin["spec"]["tls"]["secretName"], "defaultMode": _GROUP_READS},
            }
            for plugin in _over_tls(configuration)
        ),
    ]


def _serving_volume(key: SchedulerKey) -> Json:
    """Of the namespace's certificates this scheduler's, and no other's."""
    files = zip(serving_files(key.name), ("tls.crt", "tls.key"), strict=True)
    items = [{"key": name, "path": path} for name, path in files]
    source = {"secretName": SERVING_SECRET, "defaultMode": _GROUP_READS, "items": items}
    return {"name": "serving", "secret": source}
