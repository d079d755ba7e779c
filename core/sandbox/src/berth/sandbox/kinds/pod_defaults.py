"""What the API server fills into a new pod before it is stored.

Source: pkg/apis/core/v1/defaults.go; plugin/pkg/admission/{priority,defaulttolerationseconds,serviceaccount};
pkg/registry/core/pod/strategy.go (v1.36).
"""

from typing import Any, Final

from berth.sandbox.kinds.quantities import canonical_map
from berth.sandbox.store import Json

GRACE_SECONDS: Final = 30
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS: Final = 300
_CONTAINER_LISTS: Final = ("initContainers", "containers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUME_MODE: Final = 420


def set_defaults(spec: Json) -> None:
    """Fill in everything that does not depend on other objects."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    host_network = bool(spec.get("hostNetwork"))
    for field in _CONTAINER_LISTS:
        for container in spec.get(field) or ():
            _container(container, host_network=host_network)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    if "resources" in spec:
        _requests_from_limits(spec["resources"])
    if "overhead" in spec:
        canonical_map(spec["overhead"])


def set_tolerations(spec: Json) -> None:
    """Let the pod stay for five minutes on a node that stops answering, unless it says otherwise."""
    tolerations = spec.setdefault("tolerations", [])
    for key in _TOLERATED:
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
            )


def merge_match_label_keys(spec: Json, labels: dict[str, str]) -> None:
    """Turn matchLabelKeys and mismatchLabelKeys into requirements on the labels the pod has now."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, "matchLabelKeys", "In", labels)
    affinity = spec.get("affinity")
    if not affinity:
        return
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [weighted["podAffinityTerm"] for weighted in preferred if "podAffinityTerm" in weighted]
        for term in terms:
            _merge_keys(term, "matchLabelKeys", "In", labels)
            _merge_keys(term, "mismatchLabelKeys", "NotIn", labels)


def qos_class(spec: Json) -> str:
    """Give Guaranteed, Burstable or BestEffort."""
    if spec.get("resources"):
        holders = [spec["resources"]]
    else:
        containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
        holders = [container.get("resources") or {} for container in containers]
    asked = [_compute(holder.get("requests")) for holder in holders]
    limited = [_compute(holder.get("limits")) for holder in holders]
    if not any(asked) and not any(limited):
        return "BestEffort"
    full = {"cpu", "memory"}
    pairs = zip(asked, limited, strict=True)
    guaranteed = all(limits.keys() == full and limits == requests for requests, limits in pairs)
    return "Guaranteed" if guaranteed else "Burstable"


def _compute(quantities: Any) -> dict[str, str]:
    found = quantities or {}
    return {name: found[name] for name in ("cpu", "memory") if found.get(name, "0") != "0"}


def _container(container: Json, *, host_network: bool) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
    _requests_from_limits(container["resources"])
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")
    for name in _PROBES:
        if name in container:
            _probe(container[name])


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _requests_from_limits(resources: Json) -> None:
    limits = resources.get("limits")
    requests = resources.get("requests")
    if requests:
        canonical_map(requests)
    if limits:
        canonical_map(limits)
        requests = resources.setdefault("requests", {})
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)


def _probe(probe: Json) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _volume(volume: Json) -> None:
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if source in volume:
            volume[source].setdefault("defaultMode", _VOLUME_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if len(volume) == 1:
        volume["emptyDir"] = {}


def _covers(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def _merge_keys(term: Json, field: str, operator: str, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for key in term.get(field) or ():
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(requirement)
